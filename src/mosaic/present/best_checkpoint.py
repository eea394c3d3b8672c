"""The best checkpoint of a run, from checkpoints/best/best.json, which its worker writes."""

from dataclasses import dataclass
from pathlib import Path

from mosaic.present.run_files import read_run_json


@dataclass(frozen=True)
class Best:
    """A checkpoint and its score in the evaluation that selected it."""

    score: float
    step: int
    episodes: int  # 0: the worker does not report it


def read_best(run_dir: str) -> Best | None:
    """The best checkpoint; None if there is none or its file is invalid, as a worker can write anything into it."""
    content = read_run_json(Path(run_dir) / "checkpoints" / "best" / "best.json") if run_dir else None
    if content is None or not _is_number(content.get("score")) or not _is_count(content.get("step")):
        return None
    episodes = content.get("episodes")
    # Some workers write a list with the return of each episode.
    many = len(episodes) if isinstance(episodes, list) else episodes
    return Best(float(content["score"]), content["step"], many if isinstance(many, int) and _is_count(many) else 0)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63
