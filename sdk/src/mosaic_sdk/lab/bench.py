"""The checks of the conformance lab, in the order of a worker's life."""

import json
import os
import subprocess
from typing import Any, Dict, Iterator, List, Mapping, Optional, Tuple

from mosaic_sdk import names
from mosaic_sdk.lab.dialogue import Dialogue
from mosaic_sdk.lab.ground import files_below
from mosaic_sdk.lab.questions import DESCRIBE, ROUND_TRIP
from mosaic_sdk.lab.scorecard import Check, Fault, Skip, judge
from mosaic_sdk.lab.trial import Trial, kind_of
from mosaic_sdk.schema import LAB_KEY

_REWARDS = 50
_PROGRESS_KEYS = ("progress", "step", "global_step")
_NEVER_RAN = "the worker never ran, so there was nothing to look at"
_WANTED = {"step": ("step_index",), "episode": ("episode_index", "total_reward"), "metric": ("step",)}


class Bench:
    """Each check is a method; its docstring is what the contract asks, and what it returns a remark."""

    def __init__(
        self,
        module: str,
        entry_point: str,
        lab: Mapping[str, Mapping[str, Any]],
        python: str,
        env: Mapping[str, str],
        grace_s: float,
        limit_s: float,
    ) -> None:
        self.module = module
        self.entry_point = entry_point
        self.lab = dict(lab)
        self.python = python
        self.env = env
        self.grace_s = grace_s
        self.limit_s = limit_s
        self.schema: Dict[str, Any] = {}
        self.package_folder = ""  # known when the worker described itself and is a package
        self.has_run = False  # a short run said something or ended well

    def checks(self) -> Iterator[Check]:
        yield judge(self.descriptor)
        self.lab = {**self.schema.get(LAB_KEY, {}), **self.lab}
        yield judge(self.config_round_trip)
        yield judge(self.dry_run)
        before = self._package_files()
        with self._trial("short") as trial:
            trial.run(self.limit_s)
            self.has_run = trial.code == 0 or bool(trial.objects())
            for check in (self.exit_code, self.lifecycle, self.whole_lines, self.telemetry, self.heartbeats):
                yield judge(check, trial)
            outside = trial.ground.files_outside() + self._changed(before)
            leftovers, cached = trial.leftovers, trial.ground.files_cached()
            rewards = trial.rewards(_REWARDS)
        yield judge(self.seed, rewards)
        yield judge(self.bad_config)
        yield judge(self.run_failed)
        yield judge(self.sigterm, leftovers)
        yield judge(self.no_leftovers, leftovers)
        yield judge(self.files_inside, outside, cached)
        yield judge(self.interactive)
        if "agent" in self.lab:
            yield judge(self.agent)

    def descriptor(self) -> None:
        """The entry point returns (WorkerMetadata, WorkerCapabilities) or the latter alone, with a worker_type."""
        if not self.entry_point:
            raise Skip("no entry point was named")
        metadata, capabilities, self.schema, self.package_folder = self._ask(DESCRIBE, self.entry_point)
        if not isinstance(capabilities, dict) or not capabilities.get("worker_type"):
            raise Fault(f"capabilities without a worker_type: {_short(capabilities)}")
        if not isinstance(metadata, dict):
            raise Fault(f"metadata that is {_short(metadata)}")

    def config_round_trip(self) -> None:
        """The config class keeps run_id and seed, and from_dict(to_dict()) gives the same config."""
        package = self.module.partition(".")[0]
        if package == self.module:
            raise Skip("the worker is a single module")
        keys = {**self.lab.get("short", {}), "run_id": "LAB", "seed": 3}
        answer = self._ask(ROUND_TRIP, f"{package}.config", json.dumps(keys))
        if answer is None:
            raise Skip(f"no class with from_dict and to_dict in {package}.config")
        is_same, run_id, seed = answer
        if (run_id, seed) != ("LAB", 3):
            raise Fault(f"run_id 'LAB' and seed 3 became {run_id!r} and {seed!r}")
        if not is_same:
            raise Fault("the second to_dict() differs from the first")

    def dry_run(self) -> None:
        """--dry-run ends with 0 and measures nothing."""
        with self._trial("short", "--dry-run") as trial:
            trial.run(self.limit_s)
            if trial.code == 2 and "--dry-run" in trial.last_words:
                raise Skip("the worker has no --dry-run")
            if trial.code != 0:
                raise Fault(f"{trial.ended}; last words: {trial.last_words}")
            if trial.measurements():
                raise Fault(f"{len(trial.measurements())} lines of telemetry")

    def exit_code(self, trial: Trial) -> None:
        """A run that went well ends by itself with exit code 0."""
        if trial.code != 0:
            raise Fault(f"{trial.ended}; last words: {trial.last_words}")

    def lifecycle(self, trial: Trial) -> None:
        """run_started first, run_completed last, each once, with this run's id."""
        told = [line[names.EVENT_KEY] for line in trial.events()]
        if told[:1] != [names.RUN_STARTED] or told.count(names.RUN_STARTED) != 1:
            raise Fault(f"events {_short(told)}: run_started is not the first, or not the only one")
        if told[-1:] != [names.RUN_COMPLETED] or told.count(names.RUN_COMPLETED) != 1:
            raise Fault(f"events {_short(told[-5:])}: run_completed is not the last, or not the only one")
        strange = [line["run_id"] for line in trial.events() if line.get("run_id", trial.run_id) != trial.run_id]
        if strange:
            raise Fault(f"a run_id of its own: {strange[0]}")

    def whole_lines(self, trial: Trial) -> None:
        """Every telemetry line is one whole JSON object with the fields of its kind; the last line has its newline."""
        lines = trial.stdout.split(b"\n")
        if lines[-1]:
            raise Fault(f"the last line has no newline: {_short(lines[-1].decode(errors='replace'))}")
        telemetry = [line for line in lines if line.lstrip().startswith(b"{")]
        if not telemetry:
            raise Skip("it printed no telemetry line")
        for line in telemetry:
            _check_line(line)

    def telemetry(self, trial: Trial) -> None:
        """A training run tells steps, episodes or metrics."""
        if not trial.measurements():
            raise Fault("no step, episode or metric line")

    def heartbeats(self, trial: Trial) -> None:
        """Heartbeats with a counter that grows with the work (payload.progress)."""
        beats = trial.events(names.HEARTBEAT)
        if not beats:
            raise Fault("no heartbeat")
        for beat in beats:
            if _progress(beat) is None:
                raise Fault(f"a heartbeat without progress: {_short(beat)}")
        counts = [_progress(beat) or 0 for beat in beats]
        if counts != sorted(counts):
            raise Fault(f"progress that goes back: {_short(counts)}")

    def seed(self, rewards: List[Tuple[Any, ...]]) -> None:
        """Two runs with one seed give the same first rewards."""
        if not rewards:
            raise Skip("no rewards to compare")
        with self._trial("short") as trial:
            again = trial.run(self.limit_s).rewards(_REWARDS)
        for number, one in enumerate(rewards):
            other = again[number] if number < len(again) else ("", "missing")
            if one != other:
                raise Fault(f"reward {number} was {one[1]} and then {other[1]}")

    def bad_config(self) -> None:
        """A config that is not JSON ends the worker with an exit code that is not 0, before it measures anything."""
        if not self.has_run:
            raise Skip(f"{_NEVER_RAN}: it fails with a good config too")
        with Trial(self.module, {}, self.python, self.env, config_text="{ this is not JSON") as trial:
            trial.run(self.limit_s)
            if trial.code == 0:
                raise Fault("exit code 0")
            if trial.code is None:
                raise Fault(f"it still ran after {self.limit_s:g} s")
            if trial.measurements():
                raise Fault(f"{trial.ended}, after {len(trial.measurements())} lines of telemetry")

    def run_failed(self) -> None:
        """A run that fails says run_failed, not run_completed, and ends with an exit code that is not 0."""
        if "fails" not in self.lab:
            raise Skip(f"no config that fails is known; put one into the schema: {LAB_KEY}.fails")
        with self._trial("fails") as trial:
            trial.run(self.limit_s)
            if not trial.events(names.RUN_FAILED) or trial.events(names.RUN_COMPLETED):
                raise Fault(f"events {_short([line[names.EVENT_KEY] for line in trial.events()])}")
            if not trial.code:
                raise Fault(trial.ended)

    def sigterm(self, leftovers: List[str]) -> None:
        """After SIGTERM the worker ends within its grace, and does not say run_completed."""
        has_long = "long" in self.lab
        with self._trial("long" if has_long else "short") as trial:
            trial.start()
            if not trial.wait_for(lambda: bool(trial.measurements()), self.limit_s):
                raise Fault("no telemetry, so that nobody knows when it works")
            trial.terminate()
            if trial.wait(self.grace_s) is None:
                raise Fault(f"it still ran {self.grace_s:g} s after SIGTERM")
            leftovers += trial.leftovers
            if trial.events(names.RUN_COMPLETED) and not has_long:
                raise Skip(f"it was done before it could be stopped; put a long run into the schema: {LAB_KEY}.long")
            if trial.events(names.RUN_COMPLETED):
                raise Fault("run_completed, though it was stopped")

    def no_leftovers(self, leftovers: List[str]) -> None:
        """When the worker has ended, no process of it lives and no shared memory of it remains."""
        if leftovers:
            raise Fault("; ".join(leftovers))
        if not self.has_run:
            raise Skip(_NEVER_RAN)

    def files_inside(self, outside: List[str], cached: List[str]) -> Optional[str]:
        """What a worker writes is in its run folder, its temporary files are gone; only a cache may be elsewhere."""
        if outside:
            raise Fault("; ".join(outside))
        if not self.has_run:
            raise Skip(_NEVER_RAN)
        return f"it keeps a cache: {', '.join(cached[:3])}{' …' if len(cached) > 3 else ''}" if cached else None

    def interactive(self) -> None:
        """ping is answered; reset gives ready; step gives step, the last one episode_done; stop ends it with 0."""
        if "interactive" not in self.lab:
            raise Skip("the worker does not claim an interactive mode")
        with self._trial("interactive", "--interactive") as trial:
            trial.start(stdin=subprocess.PIPE)
            dialogue = Dialogue(trial, self.limit_s, self.grace_s)
            dialogue.ask([], cmd="ping")
            dialogue.play_episode()
            dialogue.play_episode()
            dialogue.stop()

    def agent(self) -> None:
        """init_agent gives agent_ready; select_action gives action_selected with an action; stop ends it with 0."""
        config = dict(self.lab["agent"])
        observation = config.pop("observation", [0.0])
        with Trial(self.module, {"seed": 1, **config}, self.python, self.env, ["--interactive"]) as trial:
            trial.start(stdin=subprocess.PIPE)
            dialogue = Dialogue(trial, self.limit_s, self.grace_s)
            dialogue.choose_action(observation)
            dialogue.stop()

    def _trial(self, name: str, *arguments: str) -> Trial:
        config = {"seed": 1, **self.lab.get(name, {})}
        return Trial(self.module, config, self.python, self.env, arguments)

    def _ask(self, code: str, *arguments: str) -> Any:
        """The JSON that a piece of code prints last in the worker's Python."""
        with Trial(self.module, {}, self.python, self.env, program=("-c", code, *arguments)) as trial:
            trial.run(self.limit_s)
            if trial.code != 0:
                raise Fault(f"{trial.ended}; last words: {trial.last_words}")
            return json.loads(trial.stdout.strip().split(b"\n")[-1])

    def _package_files(self) -> Dict[str, int]:
        """The files of the worker's own package, with their times: libraries like to write beside their code."""
        files = files_below(self.package_folder) if self.package_folder else []
        return {name: os.stat(os.path.join(self.package_folder, name)).st_mtime_ns for name in files}

    def _changed(self, before: Mapping[str, int]) -> List[str]:
        changed = sorted(name for name, time_ns in self._package_files().items() if before.get(name) != time_ns)
        return [f"in its own package: {', '.join(changed[:5])}"] if changed else []


def _check_line(line: bytes) -> None:
    text = line.decode(errors="replace")
    try:
        value = json.loads(line)
    except ValueError:
        raise Fault(f"a line that is cut or mixed: {_short(text)}") from None
    for name in _WANTED.get(kind_of(value), ()):
        if not isinstance(value.get(name), (int, float)) or isinstance(value.get(name), bool):
            raise Fault(f"a {kind_of(value)} without a number in {name}: {_short(text)}")


def _progress(beat: Mapping[str, Any]) -> Optional[int]:
    payload = beat.get("payload")
    told = payload if isinstance(payload, dict) else {}
    return next((told[key] for key in _PROGRESS_KEYS if isinstance(told.get(key), int)), None)


def _short(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return text if len(text) <= 160 else text[:159] + "…"
