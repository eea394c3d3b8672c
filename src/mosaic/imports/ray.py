"""Ray Tune and RLlib: a trial's folder in `ray_results/`, with result.json or progress.csv, and params.json.

result.json has one object per line and iteration; progress.csv has the same numbers under keys joined by slashes.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from mosaic.imports.block import Block, Gathering
from mosaic.imports.files import Changed, Damaged, csv_rows, lines_after, modified_at, read_object
from mosaic.imports.source import Source
from mosaic.imports.values import cell_number, flatten, ns_of, number_of, numbers_in, step_of

RESULTS, PROGRESS = "result.json", "progress.csv"
# The number of env steps under the names of RLlib's versions, newest first.
STEPS = (
    "num_env_steps_sampled_lifetime",
    "env_runners/num_env_steps_sampled_lifetime",
    "timesteps_total",
    "training_iteration",
)
# Not measurements: the settings, which are in params.json, and where it ran.
SKIPPED = frozenset({"config", "pid", "timestamp", "hist_stats", "sampler_results", "done", "node_ip", "trial_id"})


class Ray(Source):
    format = "ray"

    def blocks(self) -> Iterator[Block]:
        gathering = Gathering()
        name = RESULTS if RESULTS in self.found.files else PROGRESS
        rows = self._results() if name == RESULTS else self._progress()
        try:
            for values, at in rows:
                self._add(values, gathering)
                self.advance(name, at)
                if gathering.block.is_full:
                    yield gathering.take()
        except (OSError, Changed, Damaged) as error:
            self.fail(name, error)
        yield gathering.take()
        self._finish()

    def _results(self) -> Iterator[tuple[Mapping[str, Any], int]]:
        start = self.position(RESULTS)
        for line, end in lines_after(self.path(RESULTS), start):
            try:
                found = json.loads(line)
            except (ValueError, RecursionError):
                found = None
            if isinstance(found, dict):
                yield found, end
            else:
                self.problem(f"{self.path(RESULTS)}: the line before byte {end:,} is not a JSON object")

    def _progress(self) -> Iterator[tuple[Mapping[str, Any], int]]:
        start = self.position(PROGRESS)
        rows = csv_rows(self.path(PROGRESS))
        names, number = next(rows, []), 0
        for number, row in enumerate(rows, 1):
            if number > start:
                cells = zip(names, map(cell_number, row), strict=False)
                yield {name: value for name, value in cells if value is not None}, number
        if number < start:
            raise Changed(PROGRESS)

    def _add(self, result: Mapping[str, Any], gathering: Gathering) -> None:
        values = {name: value for name, value in numbers_in(result, SKIPPED).items() if self.is_name(name)}
        at = number_of(result.get("timestamp")) or self.about.ended or modified_at(self.path(RESULTS))
        self.about.seen(at)
        step = next((step for name in STEPS if (step := step_of(values.get(name))) is not None), 0)
        if values:
            gathering.flush()
            gathering.block.add(ns_of(at), step, tuple(values), list(values.values()))

    def _finish(self) -> None:
        config = read_object(self.path("params.json"))
        self.about.settings = flatten(config)
        for ours, names in {"env_id": ("env",), "algo": ("algo_class", "_algo", "algo")}.items():
            value = next((config[name] for name in names if isinstance(config.get(name), str)), "")
            if value:
                self.about.settings.setdefault(ours, value.rpartition(".")[2].rstrip("'>") if ours == "algo" else value)
        if algo := _algo(self.found.path.name):
            self.about.settings.setdefault("algo", algo)
        if (self.path("error.txt")).is_file():
            self.about.state, self.about.reason = "FAULTED", "Ray recorded an error: see error.txt in its folder"
        self.about.artifacts = {"tensorboard": {"log_dir": str(self.found.path)}}
        folders = sorted(str(path) for path in self.found.path.glob("checkpoint_*"))[:200]
        if folders:
            self.about.artifacts["checkpoints"] = {"directory": str(self.found.path), "files": folders}


def _algo(name: str) -> str:
    """`ppo` of a trial's folder `PPO_CartPole-v1_3f5c2_00000_…`; empty if the first word is not an algorithm."""
    word = name.partition("_")[0]
    return (
        word.lower()
        if word in ("PPO", "DQN", "SAC", "IMPALA", "APPO", "DreamerV3", "BC", "MARWIL", "CQL", "IQL")
        else ""
    )
