"""Checkpoints: what a worker saved, with the settings in force, and which of them are complete.

    path = files.write_bytes("checkpoints/checkpoint-000000050000.pt", data)
    commit(path, worker="acme", step=50_000, env_id=config.env_id, algo="ppo", settings=config.to_dict())

    checkpoint = find(config.policy_path)                # a checkpoint, or the folder of a run
    checkpoint.require(worker="acme", format=1, env_id=config.env_id)

A checkpoint is a file or a folder. What is known about it is written last, beside the file or into the folder:

    checkpoints/
    ├── checkpoint-000000050000.pt
    ├── checkpoint-000000050000.pt.commit.json
    ├── epoch-00000007/                     or a folder, with …
    │   ├── agent.npz
    │   └── commit.json                     … this file in it
    └── best/                               the one with the best evaluation
        ├── checkpoint-000000040000.pt
        └── best.json                       {"version", "path", "step", "score", "episodes", "seeds"}

    commit.json: {"version": 1, "worker": "acme", "format": 1, "sdk": "0.1.0", "step": 50000, "env_id": "CartPole-v1",
                  "algo": "ppo", "settings": {…}, "parts": {"agent.npz": {"bytes": 1234, "sha256": "…"}}}

`version` is the format of commit.json itself, `format` the worker's own number for what it saves. A folder counts as
complete only if it has a commit.json. A file counts even without one, because older versions wrote none, but nothing is
known about it.
"""

import fnmatch
import math
import os
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Union

from mosaic_sdk import __version__
from mosaic_sdk.config import ConfigError
from mosaic_sdk.files import read_json, write_json
from mosaic_sdk.names import BEST, BEST_FILE, CHECKPOINTS, COMMIT_FILE

VERSION = 1
PATTERN = "checkpoint-*"
_SIDECAR = f".{COMMIT_FILE}"
_CHUNK = 1 << 20

PathLike = Union[str, "os.PathLike[str]"]


class CheckpointError(ConfigError):
    """A checkpoint that cannot be used. The text names it and says why."""


class Checkpoint(NamedTuple):
    """A checkpoint and what its commit.json says; `about` is empty for a file that has none."""

    path: str
    about: Mapping[str, Any] = {}

    @property
    def name(self) -> str:
        return os.path.basename(self.path)

    @property
    def step(self) -> Optional[int]:
        step = self.about.get("step")
        return step if isinstance(step, int) else None

    @property
    def settings(self) -> Mapping[str, Any]:
        settings = self.about.get("settings")
        return settings if isinstance(settings, dict) else {}

    def damage(self, digests: bool = True) -> str:
        """What is wrong with its parts; empty if they are intact. Without `digests` only sizes are compared."""
        folder = self.path if os.path.isdir(self.path) else os.path.dirname(self.path)
        parts = self.about.get("parts", {})
        if not isinstance(parts, dict):
            return f"{COMMIT_FILE} does not list its parts"
        for name, known in parts.items():
            reason = _part_damage(os.path.join(folder, name), known if isinstance(known, dict) else {}, digests)
            if reason:
                return f"{name} {reason}"
        return ""

    def require(self, *, worker: str = "", format: Optional[int] = None, env_id: str = "", algo: str = "") -> None:
        """CheckpointError if it belongs to another worker, environment or algorithm, or has a newer format.

        Only what the caller passes and the checkpoint records is compared.
        """
        _refuse_newer(self.path, "format", self.about.get("format"), format)
        wanted = {"worker": worker, "env_id": env_id, "algo": algo}
        for key, mine in wanted.items():
            found = self.about.get(key)
            if mine and found and mine != found:
                remedy = "Choose another checkpoint." if key == "worker" else f"Set {key}={found}, or choose another."
                raise CheckpointError(
                    f"{self.path} is a checkpoint of the {_LABELS[key]} {found}, and this run's is {mine}. {remedy}"
                )


_LABELS = {"worker": "worker", "env_id": "environment", "algo": "algorithm"}


def commit(
    path: PathLike,
    *,
    worker: str,
    step: int,
    settings: Mapping[str, Any],
    format: int = 1,
    env_id: str = "",
    algo: str = "",
    digests: bool = False,
    **more: Any,
) -> Checkpoint:
    """Write the commit.json of a checkpoint whose files are complete. `digests`: include a SHA-256 of each part."""
    target = os.fspath(path)
    about = {"version": VERSION, "worker": worker, "format": format, "sdk": __version__, "step": step}
    about.update(env_id=env_id, algo=algo, **more)
    about.update(settings=dict(settings), parts=_parts(target, digests))
    write_json(_commit_path(target), about)
    return Checkpoint(target, about)


def read(path: PathLike) -> Checkpoint:
    """The checkpoint at a path. CheckpointError if it is missing, not committed, or was written by a newer MOSAIC."""
    target = os.fspath(path)
    if not os.path.exists(target):
        raise CheckpointError(f"There is no checkpoint {target}.")
    try:
        about = read_json(_commit_path(target))
    except FileNotFoundError:
        if os.path.isdir(target):
            raise CheckpointError(f"{target} is not a complete checkpoint: it has no {COMMIT_FILE}.") from None
        return Checkpoint(target)
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{_commit_path(target)} cannot be read: {error}. Use an older checkpoint.") from None
    _refuse_newer(target, "version", about.get("version"), VERSION)
    return Checkpoint(target, about)


def find(path: PathLike, pattern: str = PATTERN) -> Checkpoint:
    """A checkpoint by its path: itself, a run's folder, its `checkpoints` folder, or `checkpoints/best`.

    A folder of checkpoints means its newest complete one, a folder `best` the one that its best.json names.
    """
    target = os.path.expanduser(os.fspath(path))
    if not os.path.isdir(target) or os.path.exists(_commit_path(target)):
        return read(target)
    for folder in (target, os.path.join(target, CHECKPOINTS)):
        found = _named_by(folder) or Checkpoints(folder, pattern).latest()
        if found:
            return found
    raise CheckpointError(f"The folder {target} has no complete checkpoint.")


def remove(path: PathLike) -> None:
    """Remove a checkpoint and its commit.json. A checkpoint that is only partly removed does not count as complete."""
    target = os.fspath(path)
    if os.path.isdir(target) and not os.path.islink(target):  # of a link, only the link is removed
        import shutil

        _unlink(_commit_path(target))  # first: without it, the folder is not a checkpoint
        shutil.rmtree(target, ignore_errors=True)
    else:
        _unlink(target)
        _unlink(target + _SIDECAR)


class Checkpoints:
    """The checkpoints in one folder whose names match `pattern`; they sort by name, so numbers have one width."""

    def __init__(self, folder: PathLike, pattern: str = PATTERN) -> None:
        self.folder = os.fspath(folder)
        self.pattern = pattern

    def all(self) -> List[Checkpoint]:
        """The complete ones, oldest first. Sizes are compared, digests are not."""
        found = (_whole(os.path.join(self.folder, name)) for name in self._names())
        return [checkpoint for checkpoint in found if checkpoint]

    def latest(self) -> Optional[Checkpoint]:
        found = (_whole(os.path.join(self.folder, name)) for name in reversed(self._names()))
        return next((checkpoint for checkpoint in found if checkpoint), None)

    def best(self) -> Optional[Checkpoint]:
        """The one that best/best.json names, if it is complete."""
        return _named_by(os.path.join(self.folder, BEST))

    def best_score(self, **same: Any) -> Optional[float]:
        """The score in best/best.json, if its keys have the values in `same`; None without one, or if it is NaN."""
        about = _read_best(os.path.join(self.folder, BEST))
        score = about.get("score")
        if not isinstance(score, (int, float)) or any(about.get(key) != value for key, value in same.items()):
            return None
        return None if math.isnan(score) else float(score)

    def keep_best(self, path: PathLike, *, step: int, score: float, seeds: Sequence[int], **more: Any) -> str:
        """Make a checkpoint in the folder `best` the best one, and remove the others there; returns its path."""
        folder, name = os.path.split(os.fspath(path))
        about = {"version": VERSION, "path": name, "step": step, "score": score}
        about.update(episodes=len(seeds), seeds=list(seeds), **more)
        write_json(os.path.join(folder, BEST_FILE), about)
        for other in Checkpoints(folder, self.pattern)._names():
            if other != name:
                remove(os.path.join(folder, other))
        return os.fspath(path)

    def prune(self, keep: int) -> None:
        """Remove all but the newest `keep` complete ones, and incomplete ones older than the newest complete one."""
        kept = {checkpoint.name for checkpoint in self.all()[-keep:]} if keep > 0 else set()
        newest = max(kept, default="")
        for name in self._names():
            if name not in kept and name < newest:
                remove(os.path.join(self.folder, name))

    def _names(self) -> List[str]:
        try:
            names = os.listdir(self.folder)
        except (FileNotFoundError, NotADirectoryError):
            return []
        matching = (name for name in fnmatch.filter(names, self.pattern) if not name.endswith((_SIDECAR, ".tmp")))
        return sorted(matching)


def _whole(path: str) -> Optional[Checkpoint]:
    try:
        checkpoint = read(path)
    except CheckpointError:
        return None
    return None if checkpoint.damage(digests=False) else checkpoint


def _named_by(folder: str) -> Optional[Checkpoint]:
    name = _read_best(folder).get("path")
    return _whole(os.path.join(folder, name)) if isinstance(name, str) and name else None


def _read_best(folder: str) -> Dict[str, Any]:
    try:
        return read_json(os.path.join(folder, BEST_FILE))
    except (OSError, ValueError):
        return {}


def _commit_path(path: str) -> str:
    return os.path.join(path, COMMIT_FILE) if os.path.isdir(path) else path + _SIDECAR


def _parts(path: str, digests: bool) -> Dict[str, Dict[str, Any]]:
    if not os.path.isdir(path):
        return {os.path.basename(path): _describe(path, digests)}
    found = (os.path.join(folder, name) for folder, _, names in os.walk(path) for name in names)
    names = sorted(os.path.relpath(file, path) for file in found)
    return {name: _describe(os.path.join(path, name), digests) for name in names if name != COMMIT_FILE}


def _describe(path: str, digests: bool) -> Dict[str, Any]:
    size = {"bytes": os.path.getsize(path)}
    return {**size, "sha256": _digest(path)} if digests else size


def _digest(path: str) -> str:
    import hashlib

    digest = hashlib.sha256()
    with open(path, "rb") as file:
        for chunk in iter(lambda: file.read(_CHUNK), b""):
            digest.update(chunk)
    return digest.hexdigest()


def _part_damage(path: str, known: Mapping[str, Any], digests: bool) -> str:
    try:
        if known.get("bytes") not in (None, os.path.getsize(path)):
            return "does not have the size it was saved with"
        if digests and known.get("sha256") not in (None, _digest(path)):
            return "does not have the content it was saved with"
    except OSError as error:
        return f"cannot be read ({error.strerror})"
    return ""


def _refuse_newer(path: str, key: str, found: Any, known: Optional[int]) -> None:
    if known is not None and isinstance(found, int) and found > known:
        raise CheckpointError(f"{path} has {key} {found}, but this worker reads {key} {known}. Install a newer worker.")


def _unlink(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass  # it has none, or another process removed it
