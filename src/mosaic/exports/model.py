"""A run's trained model as a folder that can be given away.

    FOLDER/
    ├── README.md            the model card (model_card.py)
    ├── model.safetensors    the weights, if the worker exports them; else its checkpoint as it is
    ├── config.json          the settings in force and what the run was
    ├── evaluations.json     the scores of the card, with all digits
    └── replay.mp4           if there is a video

Everything in a run's folder belongs to its worker, which can put links there: only regular files are copied, and no
link is followed, so that nothing from elsewhere is published.
"""

import json
import os
import shutil
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mosaic import __version__
from mosaic.catalog.export import Exported, Exporter
from mosaic.catalog.secrets import redact
from mosaic.exports.evaluations import Score, evaluations_of, scores_of
from mosaic.exports.model_card import Card
from mosaic.exports.target import new_folder
from mosaic.model.errors import MosaicError
from mosaic.model.nearest import did_you_mean
from mosaic.model.rundir import RunDir, StateRoot
from mosaic.present.checkpoints import CheckpointFile, find_checkpoints
from mosaic.present.folder_size import files_below
from mosaic.present.run_files import read_run_json

if TYPE_CHECKING:
    from mosaic.client import Run, TrainerClient

BEST, LAST = "best", "last"
VIDEOS = (".mp4", ".webm", ".gif")  # the Hub plays replay.mp4
_LARGEST_PROVENANCE = 4 << 20


@dataclass(frozen=True)
class Model:
    """What was written."""

    folder: str
    run_id: str
    checkpoint: str
    files: list[str]
    scores: list[Score]
    is_converted: bool  # by its worker; else the checkpoint was copied
    clip: str

    def to_dict(self) -> dict[str, Any]:
        about = {"folder": self.folder, "run_id": self.run_id, "checkpoint": self.checkpoint, "files": self.files}
        scores = [score.to_dict() for score in self.scores]
        return {**about, "converted": self.is_converted, "clip": self.clip, "evaluations": scores}


def export_model(
    client: "TrainerClient",
    root: StateRoot,
    run: "Run",
    folder: str,
    *,
    checkpoint: str = "",
    as_is: bool = False,
    force: bool = False,
    tell: Callable[[str], None] = lambda _: None,
) -> Model:
    """Write `folder`, or raise MosaicError and leave nothing. `checkpoint`: best, last, or the name of one."""
    chosen = choose_checkpoint(root, run, checkpoint)
    exporter = None if as_is else Exporter.of(root, _worker_section(run))
    with new_folder(folder, force) as place:
        tell(f"exporting {os.path.basename(chosen.path)}")
        exported = exporter.run(Path(chosen.path), place) if exporter else copied(chosen, run, place)
        tell("reading the evaluations")
        scores = scores_of(client, run, os.path.basename(chosen.path))
        clip = copy_clip(client, run, place)
        document = config_document(run, chosen)
        _write_json(place / "config.json", document)
        _write_json(place / "evaluations.json", [score.to_dict() for score in scores])
        card = _card(run, exported, scores, clip, document, bool(exporter))
        (place / "README.md").write_text(card.text(), encoding="utf-8")
        files = sorted(entry.name for entry in place.iterdir())
    return Model(os.path.abspath(folder), run.run_id, chosen.path, files, scores, bool(exporter), clip)


def choose_checkpoint(root: StateRoot, run: "Run", wanted: str = "") -> CheckpointFile:
    """The best one if there is one, else the newest; or the one that is asked for."""
    found = find_checkpoints(root, run.run_id)
    if not found:
        raise MosaicError(
            f"Run {run.name or run.run_id} has no complete checkpoint, so there is no model to export. "
            f"Its files are in {run.run_dir}."
        )
    best = next((each for each in found if each.is_best), None)
    last = max(
        (each for each in found if not each.is_best), key=lambda each: (each.step or 0, each.saved_at), default=best
    )
    named = {os.path.basename(each.path): each for each in found} | {BEST: best, LAST: last}
    chosen = named.get(os.path.basename(wanted)) if wanted else best or last
    if chosen is None:
        names = [name for name, each in named.items() if each]
        hint = did_you_mean(wanted, names) or f"It has: {', '.join(names)}."
        raise MosaicError(f"Run {run.name or run.run_id} has no checkpoint '{wanted}'. {hint}")
    if not is_inside(Path(chosen.path), run.run_dir):
        raise MosaicError(f"{chosen.path} is a link that leads out of the run's folder, so it is not exported.")
    return chosen


def copied(chosen: CheckpointFile, run: "Run", place: Path) -> Exported:
    """The checkpoint as it is: a file, or the files of a folder."""
    source = Path(chosen.path)
    base = source if source.is_dir() else source.parent
    paths = sorted(files_below(source)) if source.is_dir() else [source]
    files: dict[str, str] = {}
    skipped: list[str] = []
    for path in paths:
        name = path.relative_to(base).as_posix().replace("/", "-")
        if copy_regular(path, place / name, run.run_dir):
            files[name] = f"a file of the checkpoint, as {run.worker_name or 'the program'} saved it"
        else:
            skipped.append(f"{name}: it is a link or not a regular file")
    if not files:
        raise MosaicError(f"The checkpoint {source} has no regular file, so there is nothing to export.")
    return Exported(library=run.worker_name or "mosaic", files=files, left_out=tuple(skipped))


def copy_regular(source: Path, target: Path, run_dir: str) -> bool:
    """Copy a regular file in a run's folder; False for a link, for what links lead to, and for anything else."""
    if not is_inside(source, run_dir):
        return False
    try:
        fd = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    with os.fdopen(fd, "rb") as file:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return False
        with open(target, "wb") as copy:
            shutil.copyfileobj(file, copy, 1 << 20)
    return True


def is_inside(path: Path, run_dir: str) -> bool:
    """Whether it is in the run's folder after all links have been followed."""
    return path.resolve().is_relative_to(Path(run_dir).resolve())


def copy_clip(client: "TrainerClient", run: "Run", place: Path) -> str:
    """The newest video of the run's evaluations, else of the run itself; empty if there is none."""
    for owner in [*evaluations_of(client, run), run]:
        for path in _videos(RunDir(owner.run_dir).videos):
            name = f"replay{path.suffix}"
            if copy_regular(path, place / name, owner.run_dir):
                return name
    return ""


def _videos(folder: Path) -> list[Path]:
    found = [path for path in files_below(folder) if path.suffix in VIDEOS and not path.is_symlink()]
    return sorted(found, key=lambda path: (VIDEOS.index(path.suffix), -path.lstat().st_mtime))


def config_document(run: "Run", chosen: CheckpointFile) -> dict[str, Any]:
    about = {"run_id": run.run_id, "name": run.name, "worker": run.worker_name, "algo": run.algo, "env_id": run.env_id}
    more = {"seed": run.seed, "experiment": run.experiment, "axes": redact(run.axes), "mosaic": __version__}
    checkpoint = {"name": os.path.basename(chosen.path), "step": chosen.step, "best": chosen.is_best}
    return {**about, **more, "checkpoint": checkpoint, "settings": redact(run.settings or {})}


def _card(
    run: "Run", exported: Exported, scores: list[Score], clip: str, document: Mapping[str, Any], is_converted: bool
) -> Card:
    notes = (
        [] if is_converted else ["The checkpoint was not converted: it has the format of the library that saved it."]
    )
    own = {
        **exported.files,
        "config.json": "the settings in force, and what the run was",
        "evaluations.json": "the results of this card, with all digits",
    }
    return Card(
        name=run.name or run.run_id,
        library=exported.library or run.worker_name,
        algo=run.algo or exported.algo,
        env_id=run.env_id,
        files=own,
        scores=scores,
        settings=document["settings"],
        provenance=provenance(run, document),
        usage=exported.usage,
        left_out=exported.left_out,
        clip=clip,
        notes=notes,
    )


def provenance(run: "Run", document: Mapping[str, Any]) -> dict[str, str]:
    """Where the model comes from. Paths and host names of this machine are left out."""
    recorded = read_run_json(RunDir(run.run_dir).provenance, _LARGEST_PROVENANCE) or {}
    step = document["checkpoint"]["step"]
    found = {
        "run": run.run_id,
        "checkpoint": f"{document['checkpoint']['name']}" + (f", step {step:,}" if step is not None else ""),
        "trained": f"{datetime.fromtimestamp(run.created_at, UTC):%Y-%m-%d %H:%M} UTC, state {run.state}",
        "seed": "unknown" if run.seed is None else str(run.seed),
        "worker": run.worker_name + _commit(recorded.get("worker")),
        "MOSAIC": __version__ + _commit(recorded.get("mosaic")),
    }
    python = recorded.get("python")
    if isinstance(python, dict):
        found["Python"] = str(python.get("version", ""))
        found["packages"] = _packages(python.get("packages"))
    return {name: text for name, text in found.items() if text}


_NAMED = ("torch", "jax", "flax", "numpy", "gymnasium", "stable-baselines3", "sb3-contrib", "sbx-rl", "ray", "xuance")


def _packages(lines: Any) -> str:
    known = [line for line in lines if isinstance(line, str)] if isinstance(lines, list) else []
    return ", ".join(line for line in known if line.partition("==")[0].lower() in _NAMED)


def _commit(part: Any) -> str:
    git = part.get("git") if isinstance(part, dict) else None
    if not isinstance(git, dict) or not git.get("commit"):
        return ""
    return f" (git {str(git['commit'])[:12]}{', with uncommitted changes' if git.get('dirty') else ''})"


def _worker_section(run: "Run") -> Mapping[str, Any]:
    section = ((run.config or {}).get("metadata") or {}).get("worker")
    return section if isinstance(section, dict) else {}


def _write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")
