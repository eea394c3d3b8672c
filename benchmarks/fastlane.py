"""What frames cost: a publish beside a plain copy, a step that nobody watches, and whether a frame is ever torn.

    .venv/bin/python benchmarks/fastlane.py [READS]

Rounds of everything compared are interleaved and their order is turned every round, so that the machine's moods hit all
alike; ratios are within this run. With gymnasium (and minigrid, ale-py) beside mosaic_sdk, real envs are shown as well.
"""

import importlib.util
import mmap
import os
import resource
import secrets
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from mosaic_sdk.fastlane import FastLaneConfig, FastLaneMetrics, FastLaneReader, FastLaneWriter, maybe_wrap_env

SIZES = {"84×84": (84, 84, 1.6), "640×480": (640, 480, 1.15), "1920×1080": (1920, 1080, 1.1)}  # and the ratio to reach
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
    print("\npublish beside numpy.copyto into four slots of shared memory; p50 in µs")
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
    """The floor: no sequence, no lease, no metrics; only four slots, as many as the ring has."""
    fd = os.memfd_create("floor")
    os.posix_fallocate(fd, 0, 4 * config.frame_bytes)
    memory = mmap.mmap(fd, 4 * config.frame_bytes, flags=mmap.MAP_SHARED | mmap.MAP_POPULATE)
    os.close(fd)
    slots = [
        np.frombuffer(memory, np.uint8, config.frame_bytes, slot * config.frame_bytes).reshape(config.shape)
        for slot in range(4)
    ]
    number = 0

    def copy() -> None:
        nonlocal number
        number += 1
        np.copyto(slots[number % 4], frames[number % 3])

    return copy


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
import sys, time
from mosaic_sdk.fastlane import FastLaneReader
reader = FastLaneReader.attach(sys.argv[1], lease_s=1000)
print("ready", flush=True)
while True:
    reader.latest_frame()
    time.sleep(1 / 60)
"""


def report_reader_cost() -> None:
    """A 60 Hz reader comes and goes every round; what it costs is the change of the writer's CPU per frame."""
    print("\na reader at 60 Hz, 640×480: the writer's CPU per frame with it, beside without")
    run_id = new_run_id()
    writer = FastLaneWriter.create(run_id, FastLaneConfig(640, 480))
    keeper = FastLaneReader.attach(run_id, lease_s=1000)
    publish = publisher(writer, sources(FastLaneConfig(640, 480)))
    reader = subprocess.Popen([sys.executable, "-c", READER, run_id], stdout=subprocess.PIPE)
    assert reader.stdout
    reader.stdout.readline()
    ratios = []
    try:
        for _ in range(15):
            reader.send_signal(19)  # SIGSTOP
            alone = cpu_per_call(publish, 2000)
            reader.send_signal(18)  # SIGCONT
            ratios.append(cpu_per_call(publish, 2000) / alone)
    finally:
        reader.kill()
        reader.wait()
        keeper.close()
        writer.close()
        writer.unlink()
    ratio = statistics.median(ratios)
    print(f"  {ratio:.3f}  target ≤ 1.03  {verdict(ratio <= 1.03)}")


def cpu_per_call(call: Callable[[], object], calls: int) -> float:
    start = time.process_time_ns()
    for _ in range(calls):
        call()
    return (time.process_time_ns() - start) / calls


class Null:
    """An env whose step costs nothing: what remains is the wrapper."""

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
    print("\na step that nobody watches, and one that is watched but not due; ns above the bare step")
    bare = Null()
    shown, run_id = show(Null())
    rows = {"unwatched": step_cost(bare, shown, 300)}
    with_reader = FastLaneReader.attach(run_id, lease_s=1000)
    rows["watched, not due"] = step_cost(bare, shown, None)
    with_reader.close()
    shown.close()
    for name, (ns, target) in rows.items():
        print(f"  {name:<18}{ns:>6.0f}" + (f"  target ≤ {target}  {verdict(ns <= target)}" if target else ""))


def step_cost(bare: Any, shown: Any, target: int | None) -> tuple[float, int | None]:
    steps = 2000
    subjects = {"bare": lambda: repeat_step(bare, steps), "shown": lambda: repeat_step(shown, steps)}
    costs = interleave(subjects, 60, 1)
    return (statistics.median(costs["shown"]) - statistics.median(costs["bare"])) / steps, target


def repeat_step(env: Any, steps: int) -> None:
    step = env.step
    for _ in range(steps):
        step(0)


def report_envs() -> None:
    """Training CPU with a viewer at 30 Hz, beside what 30 renders and copies per second cost by themselves."""
    if not importlib.util.find_spec("gymnasium"):
        print("\nreal envs: skipped, because gymnasium is not installed here")
        return
    import gymnasium  # type: ignore[import-not-found]

    print("\na viewer at 30 Hz: CPU that it takes, beside 30 × (render + copy)")
    print(
        f"  {'env':<24}{'step µs':>9}{'unwatched':>11}{'render µs':>11}{'share of a core':>16}{'ratio':>11}, target 1.1"
    )
    for env_id, package in ENVS.items():
        if importlib.util.find_spec(package):
            importlib.import_module(package)
            report_env(env_id, lambda env_id=env_id: gymnasium.make(env_id, render_mode="rgb_array"))


def report_env(env_id: str, make: Callable[[], Any]) -> None:
    bare = make()
    shown, run_id = show(make())
    for env in (bare, shown):
        env.reset(seed=1)
        play(env, 0.3)
    pairs = [(play(bare, 0.2), play(shown, 0.2)) for _ in range(9)]
    step = statistics.median(bare for bare, _ in pairs)
    unwatched = statistics.median(shown / bare for bare, shown in pairs)
    render = render_cost(bare)
    extra, frames, seconds = viewer_cost(shown, run_id)
    # What is to be seen must stand out of the machine's noise.
    ratio = f"{extra / frames / render:.2f}" if 30 * render > 1e7 else "too small"
    print(
        f"  {env_id:<24}{step / 1000:>9.1f}{unwatched:>10.3f}×{render / 1000:>11.0f}"
        f"{extra / seconds / 1e9:>16.1%}{ratio:>11}"
    )
    shown.close()
    bare.close()


def render_cost(env: Any) -> float:
    """Mean CPU ns of a render and a copy in the middle of a training, where its caches are cold."""
    place = env.render().copy()
    costs = []
    for _ in range(60):
        cpu_steps(env, 0.01)
        costs.append(cpu_per_call(lambda: np.copyto(place, env.render()), 1))
    return statistics.mean(sorted(costs)[:-3])


def viewer_cost(env: Any, run_id: str) -> tuple[float, int, float]:
    """CPU ns that the viewer took, its frames, and wall seconds: pairs of short times with it and without it."""
    extras, frames, seconds = [], [], []
    for _ in range(25):
        without = cpu_steps(env, 0.2)
        reader = FastLaneReader.attach(run_id, lease_s=0.4)
        first = reader.latest_frame()
        watched = cpu_steps(env, 0.4)
        last = reader.latest_frame()
        extras.append(watched[0] - watched[1] * without[0] / without[1])
        frames.append((last.number if last else 0) - (first.number if first else 0))
        seconds.append(watched[2] / 1e9)
        reader.close()
        wait_until_unwatched(env)
    return statistics.median(extras), round(statistics.mean(frames)), statistics.mean(seconds)


def wait_until_unwatched(env: Any) -> None:
    while env._lane._writer.is_watched:
        time.sleep(0.01)


def play(env: Any, seconds: float) -> float:
    """CPU ns per step."""
    cpu, steps, _ = cpu_steps(env, seconds)
    return cpu / steps


def cpu_steps(env: Any, seconds: float) -> tuple[float, int, float]:
    """CPU ns, steps and wall ns of playing on."""
    steps = 0
    action = env.action_space.sample()
    wall, cpu = time.monotonic_ns(), time.process_time_ns()
    while time.monotonic_ns() - wall < seconds * 1e9:
        for _ in range(10):
            outcome = env.step(action)
            if outcome[2] or outcome[3]:
                env.reset()
        steps += 10
    return time.process_time_ns() - cpu, steps, time.monotonic_ns() - wall


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
    print(f"  {number:,} frames written, {int(distinct):,} different ones seen")


def verdict(ok: bool) -> str:
    return "ok" if ok else "MISSED"


if __name__ == "__main__":
    main()
