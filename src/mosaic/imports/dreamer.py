"""DreamerV3's log folders: metrics.jsonl and scores.jsonl, each line an object with a `step`, and config.yaml.

The lines have no times. Those between the first and the last write of the folder are interpolated, and the run's
history says so.
"""

import json
from collections.abc import Iterator
from typing import Any

from mosaic.imports.block import Block, Episode, Gathering
from mosaic.imports.files import Changed, Damaged, lines_after, modified_at, read_yaml
from mosaic.imports.source import Source
from mosaic.imports.values import flatten, ns_of, numbers_in, step_of

METRICS, SCORES = "metrics.jsonl", "scores.jsonl"
SCORE, LENGTH = "episode/score", "episode/length"
NOTE = "its files contain no times; they are estimated from the times of the files"
Row = tuple[int, dict[str, float], int]  # step, values, the offset behind it


class Dreamer(Source):
    format = "dreamer"

    def blocks(self) -> Iterator[Block]:
        gathering = Gathering()
        self.about.notes.append(NOTE)
        self.about.seen(modified_at(self.path("config.yaml")))
        for name in (SCORES, METRICS):
            if name not in self.found.files:
                continue
            try:
                for step, values, end, at in self._timed(name):
                    self._add(name, step, values, ns_of(at), gathering)
                    self.advance(name, end)
                    if gathering.block.is_full:
                        yield gathering.take()
            except (OSError, Changed, Damaged) as error:
                self.fail(name, error)
        yield gathering.take()
        self._finish()

    def _timed(self, name: str) -> Iterator[tuple[int, dict[str, float], int, float]]:
        """The new lines with their estimated times."""
        rows = list(self._rows(name))
        ended = modified_at(self.path(name))
        began = float(self.state.get(f"end of {name}") or self.about.began or ended)
        self.about.seen(ended)
        self.state[f"end of {name}"] = ended
        for number, (step, values, end) in enumerate(rows, 1):
            yield step, values, end, began + (ended - began) * number / len(rows)

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
            values = numbers_in(found, frozenset({"step"}))
            yield step, {key: value for key, value in values.items() if self.is_name(key)}, end

    def _add(self, name: str, step: int, values: dict[str, float], ts_ns: int, gathering: Gathering) -> None:
        # metrics.jsonl may repeat the scores.
        repeats = name == METRICS and SCORES in self.found.files
        if SCORE in values and not repeats:
            length = values.get(LENGTH, 0.0)
            gathering.add_episode(Episode(ts_ns, values[SCORE], int(length) if 0 <= length < 2**63 else 0, step))
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
