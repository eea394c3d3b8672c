"""Stable-Baselines3: monitor.csv (episodes), evaluations.npz (evaluations), progress.csv (its logger).

Event files in the same folder belong to the same run, and then progress.csv repeats them.
"""

import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mosaic.imports.block import Block, Episode, Gathering
from mosaic.imports.files import Changed, Damaged, csv_rows, modified_at, opened
from mosaic.imports.source import Found, Source
from mosaic.imports.tensorboard import TensorBoard, checkpoints_in, event_files
from mosaic.imports.values import cell_number, ns_of, step_of

EVALUATIONS, PROGRESS = "evaluations.npz", "progress.csv"
TOTAL, ELAPSED = "time/total_timesteps", "time/time_elapsed"
LARGEST_ARRAYS = 256 << 20  # bytes of all arrays in evaluations.npz
Done = tuple[float, float, int, int]  # when an episode ended, its return, its length, its env


def monitor_files(names: "list[str] | tuple[str, ...]") -> list[str]:
    return sorted(name for name in names if name == "monitor.csv" or name.endswith(".monitor.csv"))


def is_progress(path: Path) -> bool:
    """Whether it is a progress.csv of Stable-Baselines3, and not one of Ray's."""
    try:
        return TOTAL in next(csv_rows(path), [])
    except (OSError, Damaged):
        return False


class StableBaselines3(Source):
    format = "sb3"

    def __init__(self, found: Found, cursor: dict[str, Any]) -> None:
        super().__init__(found, cursor)
        self._gathering = Gathering()
        self._times: list[tuple[int, float]] = []  # env steps and when they were reached

    def blocks(self) -> Iterator[Block]:
        yield from self._events()
        self._monitors()
        yield self._gathering.take()
        for name, read in ((PROGRESS, self._progress), (EVALUATIONS, self._evaluations)):
            if name in self.found.files and not (name == PROGRESS and event_files(self.found.files)):
                try:
                    read()
                except (OSError, Changed, Damaged, ValueError, KeyError, zipfile.BadZipFile) as error:
                    self.fail(name, error)
                yield self._gathering.take()
        self.about.artifacts |= checkpoints_in(self.found.path)

    def _events(self) -> Iterator[Block]:
        if not event_files(self.found.files):
            return
        inner = TensorBoard(self.found, self.cursor())
        inner.about = self.about
        for block in inner.blocks():
            self._positions |= inner._positions
            self.state |= inner.state
            yield block
        self.problems += inner.problems

    # ---- monitor.csv

    def _monitors(self) -> None:
        done: list[Done] = []
        for env, name in enumerate(monitor_files(self.found.files)):
            try:
                done += self._monitor(name, env)
            except (OSError, Changed, Damaged) as error:
                self.fail(name, error)
        total = int(self.state.get("env_steps") or 0)
        for at, total_reward, length, env in sorted(done):
            total += length
            self._times.append((total, at))
            self.about.seen(at)
            self._gathering.add_episode(Episode(ns_of(at), total_reward, length, total, env))
        self.state["env_steps"] = total

    def _monitor(self, name: str, env: int) -> Iterator[Done]:
        start, began, names = self.position(name), 0.0, list[str]()
        number = 0
        for row in csv_rows(self.path(name)):
            if row and row[0].startswith("#"):
                began = self._header(row)
            elif not names:
                names = row
                if not {"r", "l"} <= set(names):
                    raise Damaged("it has no columns r and l, so it is not a file of Monitor")
            elif row:
                number += 1
                if number > start:
                    yield self._episode(dict(zip(names, row, strict=False)), began, env)
                    self.advance(name, number)
        if number < start:
            raise Changed(name)

    def _header(self, row: list[str]) -> float:
        """The first line: `#{"t_start": 1700000000.0, "env_id": "CartPole-v1"}`, which csv has split at its commas."""
        try:
            found = json.loads(",".join(row).lstrip("#"))
        except (ValueError, RecursionError):
            return 0.0
        began, env_id = found.get("t_start"), found.get("env_id")
        if isinstance(env_id, str) and env_id not in ("", "None"):
            self.about.settings.setdefault("env_id", env_id[:200])
        began = float(began) if isinstance(began, int | float) else 0.0
        self.about.seen(began)
        return began

    def _episode(self, row: dict[str, str], began: float, env: int) -> Done:
        total_reward, length = cell_number(row["r"]), step_of(cell_number(row["l"]))
        if total_reward is None or length is None or length < 0:
            raise Damaged("a row has no return or no length")
        return began + (cell_number(row.get("t", "")) or 0.0), total_reward, length, env

    # ---- progress.csv and evaluations.npz

    def _progress(self) -> None:
        # The logger writes the file anew when a name is added: rows are counted, and its beginning may change.
        rows = csv_rows(self.path(PROGRESS))
        names = next(rows, [])
        known, found = int(self.state.get("rows") or 0), [_numbers(names, row) for row in rows]
        if len(found) < known:
            raise Changed(PROGRESS)
        new = found[known:]
        self._note_times(new)
        for cells in new:
            values = {name: value for name, value in cells.items() if self.is_name(name)}
            step = step_of(cells.get(TOTAL)) or 0
            at = self._when(step, cells.get(ELAPSED))
            self._gathering.block.add(ns_of(at), step, tuple(values), list(values.values()))
        self.state["rows"] = len(found)

    def _note_times(self, rows: list[dict[str, float]]) -> None:
        """The file has only the time since the start: the start is that long before its last change."""
        ended = modified_at(self.path(PROGRESS))
        if rows and not self.about.began:
            self.about.seen(ended - rows[-1].get(ELAPSED, 0.0))
            self.about.seen(ended)

    def _when(self, step: int, elapsed: float | None = None) -> float:
        """When a step was reached: from the episodes, or the time since the start, or the time of the file."""
        later = next((at for total, at in self._times if total >= step), 0.0)
        if later or elapsed is None or not self.about.began:
            return later or self.about.ended or modified_at(self.path(self.found.files[0]))
        return self.about.began + elapsed

    def _evaluations(self) -> None:
        import numpy as np

        # The file is written anew by every evaluation: its first bytes change with its sizes.
        done = int(self.state.get("evaluations") or 0)
        with opened(self.path(EVALUATIONS)) as file:
            with zipfile.ZipFile(file) as archive:
                if sum(entry.file_size for entry in archive.infolist()) > LARGEST_ARRAYS:
                    raise Damaged(f"its arrays have more than {LARGEST_ARRAYS >> 20} MiB")
            file.seek(0)
            with np.load(file, allow_pickle=False) as arrays:
                steps, results = np.asarray(arrays["timesteps"]), np.asarray(arrays["results"], dtype=float)
                lengths = np.asarray(arrays["ep_lengths"]) if "ep_lengths" in arrays else np.zeros(results.shape)
        if steps.ndim != 1 or results.ndim != 2 or len(steps) != len(results) or lengths.shape != results.shape:
            raise Damaged("its arrays do not belong together")
        if len(steps) < done:
            raise Changed(EVALUATIONS)
        for number in range(done, len(steps)):
            step = int(steps[number])
            at = self._when(step)
            self.about.seen(at)
            for total_reward, length in zip(results[number].tolist(), lengths[number].tolist(), strict=True):
                self._gathering.add_episode(Episode(ns_of(at), total_reward, int(length), step, agent_id="eval"))
        self.state["evaluations"] = len(steps)


def _numbers(names: list[str], row: list[str]) -> dict[str, float]:
    cells = zip(names, map(cell_number, row), strict=False)
    return {name: value for name, value in cells if value is not None}
