"""The cost of frames: publishing compared with a plain copy, an unwatched step, and whether a frame is ever torn.

    PYTHONPATH=sdk/src .venv-frames/bin/python benchmarks/fastlane.py [READS]

Rounds are interleaved and their order is rotated, so that other load on the machine affects all of them equally. Ratios
are within this run, and of CPU time where a call takes longer than reading that clock. Real envs are left out if
gymnasium (minigrid, ale-py) is not installed, as in MOSAIC's own environment.
"""

import contextlib
import importlib.util
import itertools
import mmap
import os
import random
import resource
import secrets
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from mosaic_sdk.fastlane import FastLaneConfig, FastLaneMetrics, FastLaneReader, FastLaneWriter, maybe_wrap_env
from mosaic_sdk.fastlane.control import LEASE
from mosaic_sdk.fastlane.ring import config_of

SIZES = {"84×84": (84, 84, 1.6), "640×480": (640, 480, 1.15), "1920×1080": (1920, 1080, 1.1)}  # with the target ratio
METRICS = FastLaneMetrics(1.0, 2.0, 3.0)
ENVS = {"CartPole-v1": "gymnasium", "MiniGrid-Empty-8x8-v0": "minigrid", "ALE/Breakout-v5": "ale_py"}


def main() -> None:
    reads = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    report_publish()
    report_reader_cost()
    report_unwatched()
    report_envs()
    report_torn(reads)


def new_run_id() -> str:
    return f"bench-{os.getpid()}-{secrets.token_hex(4)}"


def interleave(subjects: dict[str, Callable[[], object]], rounds: int, calls: int) -> dict[str, list[int]]:
    """ns of every call of each subject."""
    costs: dict[str, list[int]] = {name: [] for name in subjects}
    for number in range(rounds):
        for name in list(subjects) if number % 2 else list(reversed(subjects)):
            costs[name] += time_calls(subjects[name], calls)
    return costs


def time_calls(call: Callable[[], object], calls: int) -> list[int]:
    clock = time.perf_counter_ns
    costs = []
    for _ in range(calls):
        start = clock()
        call()
        costs.append(clock() - start)
    return costs


def report_publish() -> None:
    print("\npublish compared with numpy.copyto into four slots of shared memory: p50 in µs")
    print(f"  {'frame':<12}{'copy':>9}{'publish':>9}{'ratio':>7}{'target':>8}  faults per publish")
    for name, (width, height, target) in SIZES.items():
        config = FastLaneConfig(width, height)
        frames = sources(config)
        run_id = new_run_id()
        writer = FastLaneWriter.create(run_id, config)
        reader = FastLaneReader.attach(run_id, lease_s=1000)
        subjects = {"copy": copier(config, frames), "publish": publisher(writer, frames)}
        interleave(subjects, 2, 50)
        costs = interleave(subjects, 200, max(4, 2_000_000 // config.frame_bytes))
        copy, publish = (statistics.median(costs[subject]) for subject in ("copy", "publish"))
        ratio = publish / copy
        print(
            f"  {name:<12}{copy / 1000:>9.2f}{publish / 1000:>9.2f}{ratio:>7.2f}{f'≤ {target}':>8}"
            f"  {faults_per_call(subjects['publish']):.2f}  {verdict(ratio <= target)}"
        )
        reader.close()
        writer.close()
        writer.unlink()


def sources(config: FastLaneConfig) -> list[Any]:
    return [np.random.default_rng(seed).integers(0, 256, config.shape, np.uint8) for seed in range(3)]


def copier(config: FastLaneConfig, frames: list[Any]) -> Callable[[], object]:
    """The lower bound: a copy into four slots, as in the ring, without sequence numbers, lease or metrics."""
    slots = four_slots(config)
    number = 0

    def copy() -> None:
        nonlocal number
        number += 1
        np.copyto(slots[number % 4], frames[number % 3])

    return copy


def four_slots(config: FastLaneConfig) -> list[Any]:
    """Shared memory for as many frames as a ring has."""
    fd = os.memfd_create("floor")
    os.posix_fallocate(fd, 0, 4 * config.frame_bytes)
    memory = mmap.mmap(fd, 4 * config.frame_bytes, flags=mmap.MAP_SHARED | mmap.MAP_POPULATE)
    os.close(fd)
    return [
        np.frombuffer(memory, np.uint8, config.frame_bytes, slot * config.frame_bytes).reshape(config.shape)
        for slot in range(4)
    ]


def publisher(writer: FastLaneWriter, frames: list[Any]) -> Callable[[], object]:
    number = 0

    def publish() -> None:
        nonlocal number
        number += 1
        writer.publish(frames[number % 3], METRICS)

    return publish


def faults_per_call(call: Callable[[], object], calls: int = 200) -> float:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(calls):
        call()
    return (resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) / calls


READER = """
import os, sys, time
from mosaic_sdk.fastlane import FastLaneReader
reader = FastLaneReader.attach(sys.argv[1], lease_s=1000)
while True:
    reader.latest_frame()
    os.write(1, b".")
    time.sleep(1 / 60)
"""


class Visitor:
    """A lane and a process that reads it at 60 Hz while it is active."""

    def __init__(self) -> None:
        run_id = new_run_id()
        config = FastLaneConfig(640, 480)
        self._writer = FastLaneWriter.create(run_id, config)
        self._keeper = FastLaneReader.attach(run_id, lease_s=1000)
        self.publish = publisher(self._writer, sources(config))
        self.publish()
        self._process = subprocess.Popen([sys.executable, "-c", READER, run_id], stdout=subprocess.PIPE)
        assert self._process.stdout
        self._reads = self._process.stdout.fileno()
        os.read(self._reads, 1)
        os.set_blocking(self._reads, False)
        self._process.send_signal(signal.SIGSTOP)

    def __enter__(self) -> None:
        self.count_reads()
        self._process.send_signal(signal.SIGCONT)

    def __exit__(self, *_: object) -> None:
        self._process.send_signal(signal.SIGSTOP)

    def count_reads(self) -> int:
        """How often it has read since the last call."""
        try:
            return len(os.read(self._reads, 1 << 16))
        except BlockingIOError:
            return 0

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()
        self._keeper.close()
        self._writer.close()
        self._writer.unlink()


def report_reader_cost(rounds: int = 100, frames: int = 4000) -> None:
    """Readers are switched on and off; the cost of one is the change in CPU per frame of a continuous writer.

    The control is a reader of an idle lane, which shows the cost that the machine itself adds. On a busy machine a
    reader may read more or less often than 60 times per second of the writer's CPU; the ratio is scaled to 60.
    """
    print(f"\na reader at 60 Hz, 640×480: CPU per frame of a continuous writer; medians of {rounds} rounds")
    visitors = {"of an idle lane": Visitor(), "of the writer's lane": Visitor()}
    *_, busy = visitors.values()
    cpu_per_call(busy.publish, 2000)
    ratios: dict[str, list[float]] = {who: [] for who in visitors}
    rates: dict[str, list[float]] = {who: [] for who in visitors}
    try:
        for _ in range(rounds):
            costs = {}
            for who in random.sample([*visitors, "none"], len(visitors) + 1):
                with visitors.get(who, contextlib.nullcontext()):
                    costs[who] = cpu_per_call(busy.publish, frames)
                if who in visitors:
                    rates[who].append(visitors[who].count_reads() * 1e9 / (frames * costs[who]))
            for who in visitors:
                ratios[who].append(costs[who] / costs["none"])
    finally:
        for visitor in visitors.values():
            visitor.close()
    for who in visitors:
        share = 60 / statistics.mean(rates[who])
        ratio, error = 1 + (statistics.median(ratios[who]) - 1) * share, standard_error(ratios[who]) * share
        target = f"  target ≤ 1.03  {verdict(ratio <= 1.03)}" if visitors[who] is busy else ""
        print(f"  with a reader {who:<28}{ratio:.3f} ± {error:.3f} × without{target}", end="")
        print(f"  (a read: {(ratio - 1) / 60 * 1e6:.0f} µs of the writer's CPU time, {60 / share:.0f} reads/s)")


def standard_error(values: list[float]) -> float:
    """The standard error of the median of these values."""
    low, _, high = statistics.quantiles(values, n=4)
    return float(0.93 * (high - low) / len(values) ** 0.5)


def cpu_per_call(call: Callable[[], object], calls: int) -> float:
    start = time.process_time_ns()
    for _ in range(calls):
        call()
    return (time.process_time_ns() - start) / calls


class Null:
    """An env whose step costs nothing, so that only the wrapper is measured."""

    render_mode = "rgb_array"
    outcome = (None, 1.0, False, False, {})  # type: ignore[var-annotated]

    def reset(self) -> Any:
        return None, {}

    def step(self, action: int) -> Any:
        return self.outcome

    def render(self) -> Any:
        return np.zeros((4, 4, 3), np.uint8)

    def close(self) -> None:
        pass


def show(env: Any, interval_ms: float = 1000 / 30) -> tuple[Any, str]:
    """`env` in its wrapper, as under MOSAIC, and its run."""
    run_id = new_run_id()
    os.environ |= {"MOSAIC_RUN_ID": run_id, "GYM_GUI_FASTLANE_ONLY": "1"}
    os.environ["CLEANRL_FASTLANE_INTERVAL_MS"] = str(interval_ms)
    return maybe_wrap_env(env), run_id


def report_unwatched() -> None:
    print("\nan unwatched step, and a watched one without a frame due: ns of CPU above the bare step")
    bare = Null()
    shown, run_id = show(Null())
    rows: dict[str, tuple[tuple[float, float], int | None]] = {"null env, unwatched": (step_cost(bare, shown), 300)}
    with_reader = FastLaneReader.attach(run_id, lease_s=1000)
    rows["null env, watched, not due"] = (step_cost(bare, shown), None)
    with_reader.close()
    shown.close()
    if importlib.util.find_spec("gymnasium"):
        bare = make_env("CartPole-v1")
        shown, _ = show(make_env("CartPole-v1"))
        rows["CartPole, unwatched"] = (step_cost(bare, shown), 300)
        shown.close()
    for name, ((quiet, middle), target) in rows.items():
        judged = f"  target ≤ {target}  {verdict(quiet <= target)}" if target else ""
        print(f"  {name:<28}{quiet:>6.0f} (median {middle:.0f}){judged}")


def step_cost(bare: Any, shown: Any) -> tuple[float, float]:
    """The difference between the fastest 5 % of the rounds, which were not disturbed, and between the medians."""
    for env in (bare, shown):
        env.reset()
        play_on(env, 2000)
    costs: dict[int, list[float]] = {0: [], 1: []}
    for number in range(1500):
        for which in (0, 1) if number % 2 else (1, 0):
            costs[which].append(play_on((bare, shown)[which], 400))
    quick = [statistics.quantiles(costs[which], n=20)[0] for which in (0, 1)]
    return quick[1] - quick[0], statistics.median(costs[1]) - statistics.median(costs[0])


def play_on(env: Any, steps: int) -> float:
    """CPU ns per step."""
    step = env.step
    start = time.process_time_ns()
    for _ in range(steps):
        outcome = step(1)
        if outcome[2] or outcome[3]:
            env.reset()
    return (time.process_time_ns() - start) / steps


def make_env(env_id: str) -> Any:
    import gymnasium  # type: ignore[import-not-found]

    return gymnasium.make(env_id, render_mode="rgb_array")


def report_envs() -> None:
    """The cost of a viewer at 30 Hz to a training, compared with 30 renders and copies per second."""
    if not importlib.util.find_spec("gymnasium"):
        print("\nreal envs: skipped, because gymnasium is not installed")
        return
    print("\na viewer at 30 Hz: CPU per frame, compared with rendering and copying by hand every 33 ms between steps")
    names = f"{'env':<24}{'step µs':>9}{'by hand µs':>12}{'watched µs':>12}{'of a core':>11}"
    print(f"  {names}   ratio, target 1.1")
    for env_id, package in ENVS.items():
        if importlib.util.find_spec(package):
            importlib.import_module(package)
            report_env(env_id)


def report_env(env_id: str) -> None:
    shown, _ = show(make_env(env_id))
    shown.reset(seed=1)
    costs = frame_costs(shown, 300)
    medians = {kind: statistics.median(values) for kind, values in costs.items()}
    hand, watched = medians["by hand"] - medians["nothing"], medians["watched"] - medians["not due"]
    ratio = watched / hand
    error = ratio * sum(standard_error(costs[kind]) / medians[kind] for kind in ("by hand", "watched"))
    step = play_on(shown, 500)
    print(
        f"  {env_id:<24}{step / 1000:>9.1f}{hand / 1000:>12.1f}{watched / 1000:>12.1f}"
        f"{30 * watched / 1e9:>11.2%}   {ratio:.2f} ± {error:.2f}  {verdict(ratio <= 1.1)}"
    )
    shown.close()


def frame_costs(shown: Any, count: int) -> dict[str, list[float]]:
    """CPU ns of four actions, each 30 times per second between the steps of a watched training.

    A frame shown by the wrapper; a render and a plain copy by hand; and, as the baseline of each, a check that finds no
    frame due, and nothing. The order is random, so that all of them find the same cold caches.
    """
    lane, render = shown._lane, shown.env.render
    slots = itertools.cycle(four_slots(config_of(render())))
    kinds: dict[str, Callable[[], object]] = {
        "nothing": lambda: None,
        "by hand": lambda: np.copyto(next(slots), render()),
        "not due": lambda: lane.look(render, 1.0),
        "watched": lambda: lane.look(render, 1.0),
    }
    costs: dict[str, list[float]] = {kind: [] for kind in kinds}
    lane.page.words[LEASE] = time.monotonic_ns() + 10**13
    for _ in range(count):
        for kind in random.sample(list(kinds), len(kinds)):
            lane._next_ns = 10**19  # not due until it is set below
            play_for(shown, 1 / 30 / len(kinds))
            shown_before = shown_frames(lane)
            lane._next_ns = 0 if kind == "watched" else 10**19
            start = time.thread_time_ns()
            kinds[kind]()
            costs[kind].append(time.thread_time_ns() - start)
            assert shown_frames(lane) - shown_before == (kind == "watched")
    return costs


def shown_frames(lane: Any) -> int:
    ring = lane._writer.ring
    return ring.number if ring else 0


def step_once(env: Any) -> None:
    outcome = env.step(env.action_space.sample())
    if outcome[2] or outcome[3]:
        env.reset()


def play_for(env: Any, seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        step_once(env)


SPINNER = """
import sys
from mosaic_sdk.fastlane import FastLaneReader
reader = FastLaneReader.attach(sys.argv[1], lease_s=100_000)
torn = mixed = none = distinct = last = 0
while reader.latest_frame() is None: pass
for _ in range(int(sys.argv[2])):
    frame = reader.latest_frame()
    if frame is None:
        none += 1
        continue
    number = frame.metrics.last_reward
    torn += not (frame.pixels == frame.pixels[0, 0, 0]).all()
    mixed += frame.pixels[0, 0, 0] != number % 251 or frame.metrics != (number, -number, 2 * number)
    distinct += frame.number != last
    last = frame.number
print(torn, mixed, none, distinct)
"""


def report_torn(reads: int) -> None:
    print(f"\n{reads:,} reads of a spinning reader, every byte checked; the writer at full speed")
    run_id = new_run_id()
    size = FastLaneConfig(84, 84)
    writer = FastLaneWriter.create(run_id, size)
    frames = [np.full(size.shape, value, np.uint8) for value in range(251)]
    reader = subprocess.Popen([sys.executable, "-c", SPINNER, run_id, str(reads)], stdout=subprocess.PIPE, text=True)
    number = 0
    try:
        while reader.poll() is None:
            for _ in range(1000):
                number += writer.publish(frames[number % 251], FastLaneMetrics(number, -number, 2 * number))
    finally:
        reader.kill()
        writer.close()
        writer.unlink()
    torn, mixed, none, distinct = reader.communicate()[0].split()
    good = torn == mixed == none == "0"
    print(f"  {torn} torn, {mixed} with metrics of another frame, {none} None  {verdict(good)}")
    print(f"  {number:,} frames written, {int(distinct):,} distinct ones read")


def verdict(ok: bool) -> str:
    return "ok" if ok else "MISSED"


if __name__ == "__main__":
    main()
