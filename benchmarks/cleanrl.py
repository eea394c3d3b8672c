"""CleanRL under MOSAIC compared with the bare script: CPU per step, unwatched and watched, and time to the first step.

python benchmarks/cleanrl.py [--python ENV/bin/python] [--pairs 20] [--only ppo_upstream] [--skip-start]

All sides of a case are started together, but only one runs at a time: from one line of its script that reports a step
to a later one. The CPU time of its whole process tree between the two (user and system, all threads) is divided by the
steps. This leaves out starting and compiling, and every side runs under the same load. They are restarted every few
windows, because the memory layout of a process can change its speed by up to 5 % until it exits. The environment is the
installed worker's, or that of --python. The bare sac runs on the worker's own gym: gym 0.23 does not work with today's
Stable-Baselines3.
"""

import argparse
import contextlib
import os
import random
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mosaic_sdk.fastlane import FastLaneReader
from mosaic_sdk.fastlane.control import FastLaneError
from mosaic_sdk.lab.trial import Trial
from rig import cpu_s, lab, p50, table, verdict

from mosaic.client import TrainerClient
from mosaic.model.procfs import descendants
from mosaic.model.rundir import StateRoot

# name: the bare module, the environment, steps before the first window and in each, hyperparameters
CASES: dict[str, tuple[str, str, int, int, dict[str, Any]]] = {
    "ppo_upstream": ("cleanrl.ppo", "CartPole-v1", 2_000, 4_096, {}),
    "dqn": ("cleanrl.dqn", "CartPole-v1", 1_000, 2_000, {"learning_starts": 300}),
    "sac_continuous_action": ("cleanrl.sac_continuous_action", "Pendulum-v1", 400, 200, {"learning_starts": 200}),
}
ON_SHIM = {"sac_continuous_action"}
SHIM = Path(__file__).parents[1] / "workers" / "cleanrl_worker" / "cleanrl_worker" / "gym_shim"
BOUND, WATCHED, START = 0.97, 0.85, 1.15
FOR_EVER = 100_000_000
PER_START = 4
_HZ = 30
_POLL_S = 0.002
_TAIL_BYTES = 8192


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default="")
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--only", choices=list(CASES))
    parser.add_argument("--skip-start", action="store_true")
    args = parser.parse_args()
    python = args.python or str(StateRoot.from_environment().envs / "cleanrl" / "bin" / "python")
    os.environ["OMP_NUM_THREADS"] = "1"
    names = [args.only] if args.only else list(CASES)
    for name in names:
        title = f"CleanRL: bare CPU per step ÷ CPU per step under MOSAIC, {args.pairs} interleaved pairs"
        table(title, [HEAD, *cpu_rows(name, python, args.pairs)])
    if not args.skip_start:
        start_table(python, max(3, args.pairs // 4))


HEAD = ("", "bare µs/step", "under MOSAIC", "ratio", "95 % bound", "target", "")


def cpu_rows(name: str, python: str, pairs: int) -> list[tuple[str, ...]]:
    _, _, first, window, _ = CASES[name]
    kinds = (Bare, Worker, Watched, BareOnOurGym) if name == "ppo_upstream" else (Bare, Worker)
    found: list[list[float]] = [[] for _ in kinds]
    for _ in range(-(-pairs // PER_START)):
        with contextlib.ExitStack() as stack:
            sides = [stack.enter_context(kind(name, python)) for kind in kinds]
            for side in sides:
                side.go_to(first)
            for _ in range(PER_START):
                for side in random.sample(
                    sides, len(sides)
                ):  # in random order, so that none always follows the same one
                    side.measure(window)
        for values, side in zip(found, sides, strict=True):
            values.extend(side.us_per_step)
    bare, quiet, *more = found
    rows = [row(name, bare, quiet, BOUND)]
    if more:
        watched, same_gym = more
        rows += [row(f"{name}, watched at {_HZ} Hz", bare, watched, WATCHED)]
        rows += [row(f"{name}, bare on the same gym", same_gym, quiet, BOUND)]
    return rows


def row(title: str, bare: list[float], under: list[float], target: float) -> tuple[str, ...]:
    ratios = [one / other for one, other in zip(bare, under, strict=True)]
    bound = lower_bound(ratios)
    return (
        title,
        f"{p50(bare):.0f}",
        f"{p50(under):.0f}",
        f"{p50(ratios):.3f}",
        f"{bound:.3f}",
        f"≥ {target}",
        verdict(bound >= target),
    )


def lower_bound(ratios: list[float], rounds: int = 2000) -> float:
    """The lower end of a 95 % interval of the median, by resampling."""
    dice = random.Random(1)
    medians = sorted(statistics.median(dice.choices(ratios, k=len(ratios))) for _ in range(rounds))
    return medians[int(rounds * 0.025)]


class Side:
    """A training that is stopped except while it is measured."""

    def __init__(self, name: str, python: str) -> None:
        self.us_per_step: list[float] = []
        self._case, self._python = name, python

    def go_to(self, step: int) -> tuple[int, float]:
        """Run until a line reports this step or a later one; return that step and the CPU time used by then."""
        self._signal(signal.SIGCONT)
        while (now := self._step()) < step:
            assert self._lives(), self._last_words()
            time.sleep(_POLL_S)
        cpu = sum(map(cpu_s, self._pids()))
        self._signal(signal.SIGSTOP)
        return now, cpu

    def measure(self, steps: int) -> None:
        """Measure from one line that reports a step to another, so that the number of steps is exact."""
        start, before = self.go_to(self._step() + 1)
        end, after = self.go_to(start + steps)
        self.us_per_step.append((after - before) / (end - start) * 1e6)

    def _step(self) -> int:
        with open(self._output, "rb") as file:
            file.seek(max(0, os.path.getsize(self._output) - _TAIL_BYTES))
            found = re.findall(rb"global_step=(\d+),", file.read())
        return int(found[-1]) if found else 0

    def _signal(self, number: int) -> None:
        for pid in self._pids():
            os.kill(pid, number)

    def _pids(self) -> list[int]:
        return [self._root, *descendants(self._root)]


class Bare(Side):
    def __init__(self, name: str, python: str) -> None:
        super().__init__(name, python)
        self._is_on_our_gym = name in ON_SHIM

    def __enter__(self) -> "Bare":
        module, env_id, _, _, params = CASES[self._case]
        flags = {"total_timesteps": FOR_EVER, "env_id": env_id, "cuda": False, "seed": 1, **params}
        argv = [word for key, value in flags.items() for word in ("--" + key.replace("_", "-"), str(value))]
        path = {"PYTHONPATH": str(SHIM)} if self._is_on_our_gym else {}
        self._folder = tempfile.TemporaryDirectory()
        self._output = os.path.join(self._folder.name, "output")
        with open(self._output, "wb") as output:
            self._child = subprocess.Popen(
                [self._python, "-u", "-W", "ignore", "-m", module, *argv],
                cwd=self._folder.name,
                env=os.environ | path,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        self._root = self._child.pid
        return self

    def __exit__(self, *_: object) -> None:
        self._child.kill()
        self._child.wait()
        self._folder.cleanup()

    def _lives(self) -> bool:
        return self._child.poll() is None

    def _last_words(self) -> str:
        return Path(self._output).read_text()[-2000:]


class BareOnOurGym(Bare):
    """The bare script on the worker's environments: Gymnasium's cost more per step than those of gym 0.23."""

    def __init__(self, name: str, python: str) -> None:
        super().__init__(name, python)
        self._is_on_our_gym = True


class Worker(Side):
    """The worker as the daemon starts it, with frames enabled and no viewer."""

    def __enter__(self) -> "Worker":
        self._trial = Trial("cleanrl_worker.cli", worker_config(self._case, FOR_EVER), self._python)
        self._trial.__enter__()
        self._trial.start()
        self._output = self._trial.stdout_file
        self._root = self._trial.pid
        return self

    def __exit__(self, *error: object) -> None:
        self._trial.__exit__(*error)

    def _lives(self) -> bool:
        return self._trial.code is None

    def _last_words(self) -> str:
        return self._trial.last_words


class Watched(Worker):
    """The same with a viewer."""

    def __enter__(self) -> "Watched":
        super().__enter__()
        self._viewer = watching(self._trial.run_id)
        self._viewer.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._viewer.__exit__(None, None, None)
        super().__exit__(*error)


def worker_config(name: str, steps: int) -> dict[str, Any]:
    _, env_id, _, _, params = CASES[name]
    return {
        "algo": name,
        "env_id": env_id,
        "total_timesteps": steps,
        "seed": 1,
        "extras": {"algo_params": params},
    }


@contextmanager
def watching(run_id: str) -> Iterator[None]:
    stop = threading.Event()
    thread = threading.Thread(target=_look, args=(run_id, stop), daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _look(run_id: str, stop: threading.Event) -> None:
    reader = None
    while not stop.wait(1 / _HZ):
        try:
            reader = reader or FastLaneReader.attach(run_id)
            reader.latest_frame()
        except (OSError, FastLaneError):  # not created yet, or already removed
            reader = None


def start_table(python: str, rounds: int) -> None:
    """`mosaic run` to the first episode's end, and bare `python -m cleanrl.ppo` to the same."""
    bare, through = [], []
    with lab() as rig:
        rig.root.envs.mkdir(parents=True, exist_ok=True)
        (rig.root.envs / "cleanrl").symlink_to(Path(python).parent.parent)
        for _ in range(rounds):
            bare.append(bare_first_s(python))
            through.append(mosaic_first_s(rig.client))
    ratio = p50(through) / p50(bare)
    table(
        f"Start → the first episode that ppo on CartPole reports, p50 of {rounds}",
        [
            ("", "s", "× bare", "target", ""),
            ("bare python -m cleanrl.ppo", f"{p50(bare):.2f}", "1.0", "", ""),
            ("through MOSAIC", f"{p50(through):.2f}", f"{ratio:.2f}", f"≤ {START}", verdict(ratio <= START)),
        ],
    )


def bare_first_s(python: str) -> float:
    argv = [python, "-u", "-W", "ignore", "-m", "cleanrl.ppo", "--cuda", "False", "--seed", "1"]
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        with subprocess.Popen(argv, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as child:
            assert child.stdout
            next(line for line in child.stdout if "episodic_return" in line)
            took = time.perf_counter() - start
            child.kill()
    return took


def mosaic_first_s(client: TrainerClient) -> float:
    worker = {"module": "cleanrl_worker.cli", "config": worker_config("ppo_upstream", 10_000_000)}
    start = time.perf_counter()
    run = client.submit_run({"metadata": {"worker": worker}})
    next(client.stream_episodes(run.run_id))
    took = time.perf_counter() - start
    client.cancel_run(run.run_id)
    while not client.get_run(run.run_id).state.is_over:
        time.sleep(0.05)
    return took


if __name__ == "__main__":
    sys.exit(main())
