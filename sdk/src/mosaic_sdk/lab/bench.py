"""The checks of the conformance lab, in the order of a worker's life."""

import json
import os
import subprocess
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from mosaic_sdk import names
from mosaic_sdk.lab.dialogue import Dialogue
from mosaic_sdk.lab.ground import Ground, files_below
from mosaic_sdk.lab.questions import DESCRIBE, ROUND_TRIP
from mosaic_sdk.lab.scorecard import Check, Fault, Skip, judge
from mosaic_sdk.lab.trial import Trial, kind_of
from mosaic_sdk.lab.warm import WarmPython
from mosaic_sdk.schema import LAB_KEY

_REWARDS = 50
_FORKED = ("short", "long")  # configs whose runs can be forks of a process that has imported the libraries
_PROGRESS_KEYS = ("progress", "step", "global_step")
_NEVER_RAN = "the worker never ran, so there is nothing to check"
_REQUIRED = {names.STEP: ("step_index",), names.EPISODE: ("episode_index", "total_reward"), names.METRIC: ("step",)}


class Bench:
    """Each check is a method. Its docstring is the requirement of the contract, its result a note."""

    def __init__(
        self,
        module: str,
        entry_point: str,
        lab: Mapping[str, Mapping[str, Any]],
        python: str,
        env: Mapping[str, str],
        grace_s: float,
        limit_s: float,
        warm: Sequence[str] = (),
    ) -> None:
        self.module = module
        self.entry_point = entry_point
        self.lab = dict(lab)
        self.python = python
        self.env = env
        self.grace_s = grace_s
        self.limit_s = limit_s
        self.warm_modules = warm
        self.warm: Optional[WarmPython] = None
        self.schema: Dict[str, Any] = {}
        self.package_folder = ""  # known once the worker has described itself, if it is a package
        self.has_run = False  # a short run printed something or succeeded

    def checks(self) -> Iterator[Check]:
        yield judge(self.descriptor)
        self.lab = {**self.schema.get(LAB_KEY, {}), **self.lab}
        yield judge(self.config_round_trip)
        yield judge(self.dry_run)
        if "refuses" in self.lab:
            yield from self._operator_checks()
        elif self.warm_modules:
            yield from self._warm_run_checks()
        else:
            yield from self._run_checks()
        if "agent" in self.lab:
            yield judge(self.agent)

    def _operator_checks(self) -> Iterator[Check]:
        """For a worker that has no run of its own."""
        leftovers: List[str] = []
        yield judge(self.plain_run_refused, leftovers)
        for check in (self.bad_config, self.interactive):
            yield judge(check)
        yield judge(self.no_leftovers, leftovers)

    def _warm_run_checks(self) -> Iterator[Check]:
        """The runs are forks of one process that has imported the libraries."""
        with Trial(self.module, {}, self.python, self.env) as place:
            self.warm = place.warm_python(self.python, self.warm_modules)
            try:
                yield from self._run_checks(place.ground)
            finally:
                self.warm.close()
                self.warm = None

    def _run_checks(self, imported_in: Optional[Ground] = None) -> Iterator[Check]:
        """`imported_in`: where libraries were imported before; files that they wrote there count too."""
        before = self._package_files()
        with self._trial("short") as trial:
            trial.run(self.limit_s)
            self.has_run = trial.code == 0 or bool(trial.objects())
            for check in (self.exit_code, self.lifecycle, self.whole_lines, self.telemetry, self.heartbeats):
                yield judge(check, trial)
            outside = trial.ground.files_outside() + self._changed(before)
            outside += imported_in.files_outside() if imported_in else []
            leftovers, cached = trial.leftovers, trial.ground.files_cached()
            rewards = trial.rewards(_REWARDS)
        yield judge(self.seed, rewards)
        yield judge(self.bad_config)
        yield judge(self.run_failed)
        yield judge(self.sigterm, leftovers)
        yield judge(self.no_leftovers, leftovers)
        yield judge(self.files_inside, outside, cached)
        yield judge(self.interactive)

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
        keys = {**self.lab.get(self._plain, {}), "run_id": "LAB", "seed": 3}
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
        with self._trial(self._plain, "--dry-run") as trial:
            trial.run(self.limit_s)
            if trial.code == 2 and "--dry-run" in trial.last_words:
                raise Skip("the worker has no --dry-run")
            if trial.code != 0:
                raise Fault(f"{trial.ended}; last line of stderr: {trial.last_words}")
            if trial.measurements():
                raise Fault(f"{len(trial.measurements())} lines of telemetry")

    def plain_run_refused(self, leftovers: List[str]) -> None:
        """A worker that only plays as an operator refuses a run: run_failed says why, and the exit code is not 0."""
        with self._trial("refuses") as trial:
            trial.run(self.limit_s)
            self.has_run = True
            leftovers += trial.leftovers
            if not trial.events(names.RUN_FAILED) or trial.measurements():
                raise Fault(f"events {_short([line[names.EVENT_KEY] for line in trial.events()])}")
            if not trial.code or not trial.last_words:
                raise Fault(f"{trial.ended}; last line of stderr: {trial.last_words}")

    def exit_code(self, trial: Trial) -> None:
        """A successful run exits with code 0."""
        if trial.code != 0:
            raise Fault(f"{trial.ended}; last line of stderr: {trial.last_words}")

    def lifecycle(self, trial: Trial) -> None:
        """run_started first, run_completed last, each once, with this run's id."""
        events = [line[names.EVENT_KEY] for line in trial.events()]
        if events[:1] != [names.RUN_STARTED] or events.count(names.RUN_STARTED) != 1:
            raise Fault(f"events {_short(events)}: run_started is not the first, or not the only one")
        if events[-1:] != [names.RUN_COMPLETED] or events.count(names.RUN_COMPLETED) != 1:
            raise Fault(f"events {_short(events[-5:])}: run_completed is not the last, or not the only one")
        other = [line["run_id"] for line in trial.events() if line.get("run_id", trial.run_id) != trial.run_id]
        if other:
            raise Fault(f"another run_id: {other[0]}")

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
        """A training run reports steps, episodes or metrics."""
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
            raise Fault(f"progress that decreases: {_short(counts)}")

    def seed(self, rewards: List[Tuple[Any, ...]]) -> None:
        """Two runs with one seed have the same first rewards."""
        if not rewards:
            raise Skip("no rewards to compare")
        with self._trial("short") as trial:
            again = trial.run(self.limit_s).rewards(_REWARDS)
        for number, one in enumerate(rewards):
            other = again[number] if number < len(again) else ("", "missing")
            if one != other:
                raise Fault(f"reward {number} was {one[1]} and then {other[1]}")

    def bad_config(self) -> None:
        """A config that is not JSON makes the worker exit with a nonzero code before it measures anything."""
        if not self.has_run:
            raise Skip(f"{_NEVER_RAN}: it fails with a good config too")
        with Trial(self.module, {}, self.python, self.env, config_text="{ this is not JSON") as trial:
            trial.run(self.limit_s)
            if trial.code == 0:
                raise Fault("exit code 0")
            if trial.code is None:
                raise Fault(f"it was still running after {self.limit_s:g} s")
            if trial.measurements():
                raise Fault(f"{trial.ended}, after {len(trial.measurements())} lines of telemetry")

    def run_failed(self) -> None:
        """A run that fails reports run_failed, not run_completed, and exits with a nonzero code."""
        if "fails" not in self.lab:
            raise Skip(f"there is no config that fails; add one to the schema: {LAB_KEY}.fails")
        with self._trial("fails") as trial:
            trial.run(self.limit_s)
            if not trial.events(names.RUN_FAILED) or trial.events(names.RUN_COMPLETED):
                raise Fault(f"events {_short([line[names.EVENT_KEY] for line in trial.events()])}")
            if not trial.code:
                raise Fault(trial.ended)

    def sigterm(self, leftovers: List[str]) -> None:
        """After SIGTERM the worker exits within the grace period and does not report run_completed."""
        has_long = "long" in self.lab
        with self._trial("long" if has_long else "short") as trial:
            trial.start()
            if not trial.wait_for(lambda: bool(trial.measurements()), self.limit_s):
                raise Fault("no telemetry, so that it is unknown when it works")
            trial.terminate()
            if trial.wait(self.grace_s) is None:
                raise Fault(f"it was still running {self.grace_s:g} s after SIGTERM")
            leftovers += trial.leftovers
            if trial.events(names.RUN_COMPLETED) and not has_long:
                raise Skip(f"it ended before it could be stopped; add a long run to the schema: {LAB_KEY}.long")
            if trial.events(names.RUN_COMPLETED):
                raise Fault("run_completed, although it was stopped")

    def no_leftovers(self, leftovers: List[str]) -> None:
        """After the worker has exited, no process and no shared memory of it remain."""
        if leftovers:
            raise Fault("; ".join(leftovers))
        if not self.has_run:
            raise Skip(_NEVER_RAN)

    def files_inside(self, outside: List[str], cached: List[str]) -> Optional[str]:
        """All files are in the run folder, and temporary files are removed; only a cache may be elsewhere."""
        if outside:
            raise Fault("; ".join(outside))
        if not self.has_run:
            raise Skip(_NEVER_RAN)
        return f"it keeps a cache: {', '.join(cached[:3])}{' …' if len(cached) > 3 else ''}" if cached else None

    def interactive(self) -> None:
        """ping is answered; reset → ready; step → step, and after the last one episode_done; stop → exit code 0."""
        if "interactive" not in self.lab:
            raise Skip("the worker does not claim an interactive mode")
        with self._trial("interactive", "--interactive") as trial:
            trial.start(stdin=subprocess.PIPE)
            dialogue = Dialogue(trial, self.limit_s, self.grace_s)
            dialogue.ask([], cmd=names.PING)
            dialogue.play_episode()
            dialogue.play_episode()
            dialogue.stop()

    def agent(self) -> None:
        """init_agent → agent_ready; select_action → action_selected with an action; stop → exit code 0."""
        config = dict(self.lab["agent"])
        observation = config.pop("observation", [0.0])
        space = config.pop("action_space", None)
        with Trial(self.module, {"seed": 1, **config}, self.python, self.env, ["--interactive"]) as trial:
            trial.start(stdin=subprocess.PIPE)
            dialogue = Dialogue(trial, self.limit_s, self.grace_s)
            dialogue.choose_action(observation, space)
            dialogue.stop()

    @property
    def _plain(self) -> str:
        """The config of the lab that every worker has."""
        return "refuses" if "refuses" in self.lab else "short"

    def _trial(self, name: str, *arguments: str) -> Trial:
        config = {"seed": 1, **self.lab.get(name, {})}
        # Other runs start by themselves: they end before the worker imports its library, or read commands.
        warm = self.warm if name in _FORKED else None
        return Trial(self.module, config, self.python, self.env, arguments, warm=warm)

    def _ask(self, code: str, *arguments: str) -> Any:
        """The last line that a program prints in the worker's Python, as JSON."""
        with Trial(self.module, {}, self.python, self.env, program=("-c", code, *arguments)) as trial:
            trial.run(self.limit_s)
            if trial.code != 0:
                raise Fault(f"{trial.ended}; last line of stderr: {trial.last_words}")
            return json.loads(trial.stdout.strip().split(b"\n")[-1])

    def _package_files(self) -> Dict[str, int]:
        """The files of the worker's own package, with their times: some libraries write beside their code."""
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
        raise Fault(f"a line that is truncated or mixed: {_short(text)}") from None
    for name in _REQUIRED.get(kind_of(value), ()):
        if not isinstance(value.get(name), (int, float)) or isinstance(value.get(name), bool):
            raise Fault(f"a {kind_of(value)} without a number in {name}: {_short(text)}")


def _progress(beat: Mapping[str, Any]) -> Optional[int]:
    payload = beat.get("payload")
    fields = payload if isinstance(payload, dict) else {}
    return next((fields[key] for key in _PROGRESS_KEYS if isinstance(fields.get(key), int)), None)


def _short(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return text if len(text) <= 160 else text[:159] + "…"
