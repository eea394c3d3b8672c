"""DreamerV3's log folders: metrics.jsonl and scores.jsonl, each line an object with a `step`, and config.yaml.

The lines of the original have no times. Those between the first and the last write of the folder are interpolated, and
the run's history says so. Our worker dreamer writes times, and a line for each episode.
"""

import contextlib
import json
from collections.abc import Iterator
from typing import Any

from mosaic.imports.block import Block, Episode, Gathering
from mosaic.imports.files import Changed, Damaged, lines_after, modified_at, read_yaml
from mosaic.imports.source import Source
from mosaic.imports.values import flatten, ns_of, number_of, numbers_in, step_of

METRICS, SCORES = "metrics.jsonl", "scores.jsonl"
SCORE, LENGTH = "episode/score", "episode/length"
NOTE = "its files contain no times; they are estimated from the times of the files"
LINES = "episodes have lines"  # in the cursor
LATEST = 4e9  # unix seconds
TIMES = frozenset({"step", "time"})
Row = tuple[int, dict[str, Any], int]  # step, the object, the offset behind it


class Dreamer(Source):
    format = "dreamer"
    _lengths: dict[int, float]

    def blocks(self) -> Iterator[Block]:
        gathering = Gathering()
        self._lengths = self._read_lengths()
        self.about.seen(modified_at(self.path("config.yaml")))
        for name in (SCORES, METRICS):
            if name not in self.found.files:
                continue
            try:
                for step, found, end, at in self._timed(name):
                    self._add(name, step, found, ns_of(at), gathering)
                    self.advance(name, end)
                    if gathering.block.is_full:
                        yield gathering.take()
            except (OSError, Changed, Damaged) as error:
                self.fail(name, error)
        yield gathering.take()
        self._finish()

    def _timed(self, name: str) -> Iterator[tuple[int, dict[str, Any], int, float]]:
        """The new lines with their times, or estimated ones."""
        rows = list(self._rows(name))
        ended = modified_at(self.path(name))
        began = float(self.state.get(f"end of {name}") or self.about.began or ended)
        self.about.seen(ended)
        self.state[f"end of {name}"] = ended
        for number, (step, found, end) in enumerate(rows, 1):
            at = number_of(found.get("time")) or 0.0
            at = at if 0 < at < LATEST else 0.0
            if at:
                self.about.seen(at)
            elif NOTE not in self.about.notes:
                self.about.notes.append(NOTE)
            yield step, found, end, at or began + (ended - began) * number / len(rows)

    def _rows(self, name: str) -> Iterator[Row]:
        for line, end in lines_after(self.path(name), self.position(name)):
            try:
                found = json.loads(line)
            except (ValueError, RecursionError):
                found = None
            step = step_of(found.get("step")) if isinstance(found, dict) else None
            if not isinstance(found, dict) or step is None:
                self.problem(f"{self.path(name)}: the line before byte {end:,} is not an object with a step")
                continue
            yield step, found, end

    def _read_lengths(self) -> dict[int, float]:
        """The length of the episode at each step: scores.jsonl has only scores."""
        found: dict[int, float] = {}
        if {METRICS, SCORES} <= set(self.found.files):
            with contextlib.suppress(OSError, Damaged):
                for line, _ in lines_after(self.path(METRICS), 0):
                    with contextlib.suppress(ValueError, RecursionError):
                        values = json.loads(line)
                        length = values.get(LENGTH) if isinstance(values, dict) else None
                        if isinstance(length, int | float) and (step := step_of(values.get("step"))) is not None:
                            found[step] = float(length)
        return found

    def _add(self, name: str, step: int, found: dict[str, Any], ts_ns: int, gathering: Gathering) -> None:
        if (episode := _episode(found, step, ts_ns)) is not None:
            self.state[LINES] = True
            gathering.add_episode(episode)
            return
        values = {key: value for key, value in numbers_in(found, TIMES).items() if self.is_name(key)}
        # metrics.jsonl may repeat the scores.
        repeats = name == METRICS and SCORES in self.found.files
        if SCORE in values and not repeats and not self.state.get(LINES):  # else it is the mean of those lines
            length = values.get(LENGTH, self._lengths.get(step, 0.0))
            gathering.add_episode(Episode(ts_ns, values[SCORE], _count(length), step))
        if values and (name == METRICS or SCORE not in values or METRICS not in self.found.files):
            gathering.flush()
            gathering.block.add(ts_ns, step, tuple(values), list(values.values()))

    def _finish(self) -> None:
        config: dict[str, Any] = read_yaml(self.path("config.yaml"))
        self.about.settings = flatten(config)
        if config:
            self.about.settings.setdefault("algo", "dreamerv3")
            task = config.get("task")
            if isinstance(task, str):
                self.about.settings.setdefault("env_id", task)
        checkpoints = [self.path(name) for name in ("ckpt", "checkpoint.ckpt") if self.path(name).exists()]
        if checkpoints:
            self.about.artifacts = {
                "checkpoints": {"directory": str(self.found.path), "files": list(map(str, checkpoints))}
            }


def _episode(found: dict[str, Any], step: int, ts_ns: int) -> Episode | None:
    """The episode of a line of our worker: `{"step": 21, "time": …, "episode": 0, "env": 0, "eval": false, …}`."""
    score = number_of(found.get("score"))
    if score is None or "episode" not in found or not isinstance(found.get("eval"), bool):
        return None
    env, length = _count(number_of(found.get("env")) or 0.0), _count(number_of(found.get("length")) or 0.0)
    return Episode(ts_ns, score, length, step, min(env, 2**31 - 1), "eval" if found["eval"] else "")


def _count(value: float) -> int:
    return int(value) if 0 <= value < 2**63 else 0
