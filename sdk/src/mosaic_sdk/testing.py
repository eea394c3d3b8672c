"""The conformance lab: any worker against the contract, with a score card.

    def test_my_worker_keeps_the_contract():
        card = check_worker("my_worker.cli", entry_point="my_worker:get_worker_metadata")

        assert card.is_clean, card

What it runs comes from the worker's schema (`x-mosaic-lab`), or is given: `short` ends by itself in seconds, `long`
runs until it is stopped, `fails` raises, `interactive` is for the protocol over pipes. So does `mosaic worker test`.
"""

import json
import subprocess
import sys
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Tuple

from mosaic_sdk import names
from mosaic_sdk.schema import LAB_KEY
from mosaic_sdk.trial import Trial, kind_of

OK, FAILED, SKIPPED = "ok", "failed", "skipped"
_REWARDS = 50
_PROGRESS_KEYS = ("progress", "step", "global_step")
_MARKS = {OK: "✓", FAILED: "✗", SKIPPED: "·"}

# Asked in the worker's own Python.
_DESCRIBE = """
import dataclasses, importlib, json, sys
name, _, function = sys.argv[1].partition(":")
module = importlib.import_module(name)
answer = getattr(module, function)()
pair = answer if isinstance(answer, tuple) else ({}, answer)
def plain(value):
    return dataclasses.asdict(value) if dataclasses.is_dataclass(value) else getattr(value, "__dict__", str(value))
print("\\n" + json.dumps([*pair, getattr(module, "get_worker_schema", dict)()], default=plain))
"""
_ROUND_TRIP = """
import importlib, inspect, json, sys
module = importlib.import_module(sys.argv[1])
found = [c for c in vars(module).values() if inspect.isclass(c) and c.__module__ == module.__name__
         and hasattr(c, "from_dict") and hasattr(c, "to_dict")]
if not found:
    print("\\n" + json.dumps(None)); sys.exit()
keys = json.loads(sys.argv[2])
once = found[0].from_dict(dict(keys)).to_dict()
twice = found[0].from_dict(dict(once)).to_dict()
print("\\n" + json.dumps([once == twice, once.get("run_id"), once.get("seed")], default=str))
"""


class Fault(Exception):
    """What was seen instead of what the contract asks."""


class Skip(Exception):
    """Why a check says nothing about this worker."""


@dataclass(frozen=True)
class Check:
    """One line of the score card."""

    name: str
    outcome: str
    asks: str
    seen: str = ""

    def __str__(self) -> str:
        line = f"{_MARKS[self.outcome]} {self.name}"
        if self.outcome == FAILED:
            return f"{line}\n    the contract asks: {self.asks}\n    seen: {self.seen}"
        return f"{line} ({self.seen})" if self.seen else line


@dataclass
class ScoreCard:
    module: str
    checks: List[Check] = field(default_factory=list)

    @property
    def failed(self) -> List[str]:
        return [check.name for check in self.checks if check.outcome == FAILED]

    @property
    def is_clean(self) -> bool:
        return not self.failed

    def to_dict(self) -> Dict[str, Any]:
        return {"module": self.module, "is_clean": self.is_clean, "checks": [vars(check) for check in self.checks]}

    def __str__(self) -> str:
        counts = [sum(check.outcome == outcome for check in self.checks) for outcome in (OK, FAILED, SKIPPED)]
        total = f"{counts[0]} ok, {counts[1]} failed, {counts[2]} skipped"
        return "\n".join([self.module, *(str(check) for check in self.checks), total])


def check_worker(
    module: str,
    *,
    entry_point: str = "",
    lab: Optional[Mapping[str, Mapping[str, Any]]] = None,
    python: str = sys.executable,
    env: Optional[Mapping[str, str]] = None,
    grace_s: float = 10.0,
    limit_s: float = 120.0,
    tell: Callable[[Check], None] = lambda check: None,
) -> ScoreCard:
    """Run a worker against the contract. `tell` hears each line as it is known; `lab` adds to the schema's own."""
    bench = _Bench(module, entry_point, dict(lab or {}), python, dict(env or {}), grace_s, limit_s)
    card = ScoreCard(module)
    for check in bench.checks():
        card.checks.append(check)
        tell(check)
    return card


class _Bench:
    """The checks, in the order of a worker's life. Each is a method; its docstring is what the contract asks."""

    def __init__(
        self,
        module: str,
        entry_point: str,
        lab: Dict[str, Mapping[str, Any]],
        python: str,
        env: Dict[str, str],
        grace_s: float,
        limit_s: float,
    ) -> None:
        self.module = module
        self.entry_point = entry_point
        self.lab = lab
        self.python = python
        self.env = env
        self.grace_s = grace_s
        self.limit_s = limit_s
        self.schema: Dict[str, Any] = {}

    def checks(self) -> Iterator[Check]:
        yield _judge(self.descriptor)
        self.lab = {**self.schema.get(LAB_KEY, {}), **self.lab}
        yield _judge(self.config_round_trip)
        yield _judge(self.dry_run)
        with self._trial("short") as trial:
            trial.run(self.limit_s)
            for check in (self.exit_code, self.lifecycle, self.whole_lines, self.telemetry, self.heartbeats):
                yield _judge(check, trial)
            rewards = trial.rewards(_REWARDS)
            yield _judge(self.seed, rewards)
            leftovers, outside = trial.leftovers, trial.files_outside()
        yield _judge(self.bad_config)
        yield _judge(self.run_failed)
        yield _judge(self.sigterm, leftovers)
        yield _judge(self.no_leftovers, leftovers)
        yield _judge(self.files_inside, outside)
        yield _judge(self.interactive)

    def descriptor(self) -> None:
        """The entry point returns (WorkerMetadata, WorkerCapabilities) or the latter alone, with a worker_type."""
        if not self.entry_point:
            raise Skip("no entry point was named")
        metadata, capabilities, self.schema = self._ask(_DESCRIBE, self.entry_point)
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
        answer = self._ask(_ROUND_TRIP, f"{package}.config", json.dumps(keys))
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
                raise Fault(f"{_ended(trial.code)}; last words: {trial.last_words}")
            if trial.measurements():
                raise Fault(f"{len(trial.measurements())} lines of telemetry")

    def exit_code(self, trial: Trial) -> None:
        """A run that went well ends by itself with exit code 0."""
        if trial.code != 0:
            raise Fault(f"{_ended(trial.code)}; last words: {trial.last_words}")

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
        for line in lines[:-1]:
            if line.lstrip().startswith(b"{"):
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
        """A config that is not JSON ends the worker with an exit code that is not 0."""
        with Trial(self.module, {}, self.python, self.env, config_text="{ this is not JSON") as trial:
            trial.run(self.limit_s)
            if trial.code == 0:
                raise Fault("exit code 0")
            if trial.code is None:
                raise Fault(f"it still ran after {self.limit_s:g} s")

    def run_failed(self) -> None:
        """A run that fails says run_failed, not run_completed, and ends with an exit code that is not 0."""
        if "fails" not in self.lab:
            raise Skip(f"no config that fails is known; put one into the schema: {LAB_KEY}.fails")
        with self._trial("fails") as trial:
            trial.run(self.limit_s)
            if not trial.events(names.RUN_FAILED) or trial.events(names.RUN_COMPLETED):
                raise Fault(f"events {_short([line[names.EVENT_KEY] for line in trial.events()])}")
            if not trial.code:
                raise Fault(_ended(trial.code))

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

    def files_inside(self, outside: List[str]) -> None:
        """Everything a worker writes is in its run folder, and its temporary files are gone."""
        if outside:
            raise Fault(f"beside the run folder: {', '.join(outside)}")

    def interactive(self) -> None:
        """reset gives ready, step gives step or episode_done, stop ends it with 0."""
        if "interactive" not in self.lab:
            raise Skip("the worker does not claim an interactive mode")
        with self._trial("interactive", "--interactive") as trial:
            trial.start(stdin=subprocess.PIPE)
            self._answers(trial, "ready", cmd="reset", seed=1)
            self._answers(trial, "step episode_done episode_end", cmd="step")
            trial.tell(cmd="stop")
            if trial.wait(self.grace_s) != 0:
                raise Fault(f"after stop: {_ended(trial.code)}")

    def _answers(self, trial: Trial, wanted: str, **command: Any) -> None:
        before = len(trial.objects())
        trial.tell(**command)
        if not trial.wait_for(lambda: len(trial.objects()) > before, self.grace_s):
            raise Fault(f"no answer to {command['cmd']}; last words: {trial.last_words}")
        answer = trial.objects()[before]
        if answer.get("type") not in wanted.split():
            raise Fault(f"{command['cmd']} was answered with {_short(answer)}")

    def _trial(self, name: str, *arguments: str) -> Trial:
        config = {"seed": 1, **self.lab.get(name, {})}
        return Trial(self.module, config, self.python, self.env, arguments)

    def _ask(self, code: str, *arguments: str) -> Any:
        """The JSON that a piece of code prints last in the worker's Python."""
        with Trial(self.module, {}, self.python, self.env, program=("-c", code, *arguments)) as trial:
            trial.run(self.limit_s)
            if trial.code != 0:
                raise Fault(f"{_ended(trial.code)}; last words: {trial.last_words}")
            return json.loads(trial.stdout.strip().split(b"\n")[-1])


def _judge(check: Callable[..., None], *arguments: Any) -> Check:
    name, asks = check.__name__.replace("_", " "), " ".join((check.__doc__ or "").split())
    try:
        check(*arguments)
    except Skip as reason:
        return Check(name, SKIPPED, asks, str(reason))
    except Fault as fault:
        return Check(name, FAILED, asks, str(fault))
    return Check(name, OK, asks)


def _check_line(line: bytes) -> None:
    text = line.decode(errors="replace")
    try:
        value = json.loads(line)
    except ValueError:
        raise Fault(f"a line that is cut or mixed: {_short(text)}") from None
    wanted = {"step": ("step_index",), "episode": ("episode_index", "total_reward"), "metric": ("step",)}
    for name in wanted.get(kind_of(value), ()):
        if not isinstance(value.get(name), (int, float)) or isinstance(value.get(name), bool):
            raise Fault(f"a {kind_of(value)} without a number in {name}: {_short(text)}")


def _progress(beat: Mapping[str, Any]) -> Optional[int]:
    payload = beat.get("payload")
    told = payload if isinstance(payload, dict) else {}
    return next((told[key] for key in _PROGRESS_KEYS if isinstance(told.get(key), int)), None)


def _ended(code: Optional[int]) -> str:
    if code is None:
        return "it did not end in time"
    return f"exit code {code}" if code >= 0 else f"died of signal {-code}"


def _short(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return text if len(text) <= 160 else text[:159] + "…"
