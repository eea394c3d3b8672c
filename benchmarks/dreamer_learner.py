"""How long one DreamerV3 update takes on this machine's accelerator.

    python benchmarks/dreamer_learner.py                            16 x 64 images of 64 x 64, bfloat16
    python benchmarks/dreamer_learner.py --sizes 12m --set compute.path=plain
    python benchmarks/dreamer_learner.py --sizes 12m --profile 40   and where the time goes
    python benchmarks/dreamer_learner.py --sizes 1m --batch 2 --length 8 --updates 2 --repeats 2 --warmup 1     a test

Prints for each size: milliseconds per update (median of the repeats), replayed transitions per second, operations of
the matrix products and convolutions as written (plain path) and as executed, the rate at which the written ones were
done, the ratio to the reference's time on one H200, and the floor: how long the written operations would take at the
rate of one large product on this device, measured first. Batches come from host memory, a new one for every update,
staged one ahead.

Each size is a process of its own with a time limit (--limit-s), compiling included, and its row is printed when it is
done: a size that fails or exceeds the limit is reported, and the others are still measured. It needs only JAX and
numpy, so a machine without a package index can run it from a checkout with its own JAX. Compiling takes about a minute
per size on an H200; with JAX_COMPILATION_CACHE_DIR set, a second call reuses the result.
"""

from __future__ import annotations

import argparse
import collections
import copy
import glob
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "workers", "dreamer_worker"))

import jax
import jax.numpy as jnp
import numpy as np
from dreamer_worker.agent import Space, make_agent
from dreamer_worker.agent.config import AgentConfig
from dreamer_worker.agent.model import Model

REFERENCE_MS = {"12m": 35.23, "50m": 56.33, "200m": 110.48}  # one H200, the same batch and dtype


def spaces(pixels: int, numbers: int = 0) -> tuple[dict[str, Space], dict[str, Space]]:
    """Images and 17 choices, or that many numbers and 6 continuous actions."""
    flags = {key: Space("bool") for key in ("is_first", "is_last", "is_terminal")}
    if numbers:
        obs = {"position": Space("float32", (numbers,)), "reward": Space("float32"), **flags}
        return obs, {"action": Space("float32", (6,), -1, 1)}
    obs = {"image": Space("uint8", (pixels, pixels, 3)), "reward": Space("float32"), **flags}
    return obs, {"action": Space("int32", (), 0, 17)}


def batches(agent: Any, batch: int, length: int, count: int = 4) -> list[dict[str, np.ndarray]]:
    rng = np.random.default_rng(0)
    every = {**agent.obs_space, **agent.act_space, **agent.ext_space}
    found = []
    for _ in range(count):
        data = {key: space.sample(rng, batch, length) for key, space in every.items()}
        # Every env sends this, even if it is not among its spaces.
        data["reward"] = rng.standard_normal((batch, length), np.float32)
        data |= {key: rng.random((batch, length)) < 0.01 for key in ("is_first", "is_last", "is_terminal")}
        found.append(data)
    return found


def operations(jaxpr: Any) -> float:
    """Floating-point operations of all products and convolutions, loops counted as often as they run."""
    total = 0.0
    for eqn in jaxpr.eqns:
        if eqn.primitive.name == "dot_general":
            (contract, _), _ = eqn.params["dimension_numbers"]
            left = eqn.invars[0].aval.shape
            total += 2 * math.prod(eqn.outvars[0].aval.shape) * math.prod(left[i] for i in contract)
        elif eqn.primitive.name == "conv_general_dilated":
            kernel, numbers = eqn.invars[1].aval.shape, eqn.params["dimension_numbers"].rhs_spec
            total += 2 * math.prod(eqn.outvars[0].aval.shape) * math.prod(kernel[i] for i in numbers[1:])
        times = eqn.params.get("length", 1) if eqn.primitive.name == "scan" else 1
        total += times * sum(operations(inner) for inner in _inner(eqn.params))
    return total


def _inner(params: dict[str, Any]) -> list[Any]:
    found = []
    for name, value in params.items():
        if name in ("jvp_jaxpr_fun", "fwd_jaxpr_thunk", "bwd", "jvp_jaxpr_thunk"):
            continue
        for item in value if isinstance(value, tuple | list) else [value]:
            item = getattr(item, "jaxpr", item)
            if hasattr(item, "eqns"):
                found.append(item)
    return found


def counted(agent: Any, args: argparse.Namespace) -> float:
    """Operations of one update; nothing is computed."""
    data = batches(agent, args.batch, args.length + 1, 1)[0]
    jaxpr = jax.make_jaxpr(agent._updated)(agent.train_state, agent.init_train(args.batch), dict(agent.stage(data)))
    return operations(jaxpr.jaxpr)


def plainly(agent: Any, settings: dict[str, Any]) -> Any:
    """The same agent with the same weights on the plain path; nothing is compiled for it."""
    written = {**settings, "compute": {**settings.get("compute", {}), "path": "plain"}}
    plain = copy.copy(agent)
    plain.config = AgentConfig.from_dict(written)
    plain.model = Model(agent.obs_space, agent.act_space, plain.config)
    return plain


def product_rate(side: int, times: int = 10) -> float:
    """Operations per second of one large product on this device, in bfloat16 as the update's."""
    a = jax.random.normal(jax.random.key(0), (side, side), jnp.bfloat16)
    multiply = jax.jit(jnp.matmul)
    jax.block_until_ready(multiply(a, a))
    start = time.perf_counter()
    for _ in range(times):
        found = multiply(a, a)
    jax.block_until_ready(found)
    return 2 * side**3 * times / (time.perf_counter() - start)


def timed(agent: Any, args: argparse.Namespace) -> tuple[list[float], float]:
    """Milliseconds per update in each repeat, and the seconds until the first was done."""
    data, each = prepared(agent, args)
    carry = agent.init_train(args.batch)
    start = time.perf_counter()
    carry, _, metrics = agent.train(carry, agent.stage(data[0], each))
    assert np.isfinite(metrics["loss/total"])
    compiled = time.perf_counter() - start
    for i in range(args.warmup):
        carry, _, metrics = agent.train(carry, agent.stage(data[i % len(data)], each))
    jax.block_until_ready(metrics)
    return [_repeat(agent, carry, data, args.updates, each) for _ in range(args.repeats)], compiled


def prepared(agent: Any, args: argparse.Namespace) -> tuple[list[dict[str, np.ndarray]], int]:
    """Batches in host memory, each for as many updates as the second value says."""
    each = getattr(args, "per_call", 1)
    return batches(agent, each * args.batch, args.length + 1), each


def _repeat(agent: Any, carry: Any, data: list[dict[str, np.ndarray]], updates: int, each: int = 1) -> float:
    calls = max(1, updates // each)
    start = time.perf_counter()
    waiting = agent.stage(data[0], each)
    for i in range(calls):
        staged, waiting = waiting, agent.stage(data[(i + 1) % len(data)], each)
        carry, _, metrics = agent.train(carry, staged)
    jax.block_until_ready((carry, metrics))
    assert np.isfinite(metrics["loss/total"])
    return (time.perf_counter() - start) / (calls * each) * 1e3


def launched(agent: Any, args: argparse.Namespace, updates: int = 20) -> float:
    """Milliseconds of the host per update: how long `train` takes to return when the device has nothing else to do."""
    data, each = prepared(agent, args)
    carry, spent = agent.init_train(args.batch), []
    for i in range(max(2, updates // each)):
        staged = agent.stage(data[i % len(data)], each)
        jax.block_until_ready(dict(staged))
        start = time.perf_counter()
        carry, _, metrics = agent.train(carry, staged)
        spent.append((time.perf_counter() - start) * 1e3 / each)
        jax.block_until_ready((carry, metrics))
    return statistics.median(spent)


def profiled(agent: Any, args: argparse.Namespace, updates: int = 5) -> None:
    """Device time per part of the update and per kernel, in milliseconds per update."""
    data, each = prepared(agent, args)
    updates *= each
    carry = agent.init_train(args.batch)
    carry, _, metrics = agent.train(carry, agent.stage(data[0], each))
    jax.block_until_ready(metrics)
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            _repeat(agent, carry, data, updates, each)
        path = glob.glob(f"{folder}/**/*.xplane.pb", recursive=True)[0]
        parts, kernels, counts = _times(path)
    for title, table in (("part", parts), ("kernel", kernels)):
        print(f"\n| ms per update | launches | {title} |\n|---|---|---|")
        for name, spent in table.most_common(args.profile):
            print(f"| {spent / updates:.3f} | {counts[name] / updates:.0f} | {name} |")
        print(f"| {sum(table.values()) / updates:.3f} | | all |")


SCOPES = ("encoder", "observe", "decoder", "imagine", "heads", "world", "behaviour", "replay_value", "optimizer")


def _times(path: str) -> tuple[Any, Any, Any]:
    parts: collections.Counter[str] = collections.Counter()
    kernels: collections.Counter[str] = collections.Counter()
    counts: collections.Counter[str] = collections.Counter()
    for plane in jax.profiler.ProfileData.from_file(path).planes:
        if "GPU" not in plane.name:
            continue
        for line in plane.lines:
            if "Stream" not in line.name:
                continue
            for event in line.events:
                stats = dict(event.stats)
                scope = str(stats.get("name", stats.get("tf_op", "")))
                part = next((name for name in SCOPES if f"/{name}/" in f"/{scope}/" or f"({name})" in scope), "rest")
                part += " back" if "transpose(" in scope else ""
                for table, key in ((parts, part), (kernels, f"{event.name[:60]} [{part}]")):
                    table[key] += event.duration_ns / 1e6
                    counts[key] += 1
    return parts, kernels, counts


def settings_of(size: str, changes: list[str]) -> dict[str, Any]:
    settings: dict[str, Any] = {"size": size}
    for change in changes:
        path, value = change.split("=", 1)
        *groups, name = path.split(".")
        inner = settings
        for group in groups:
            inner = inner.setdefault(group, {})
        inner[name] = value in ("true", "True") if value.lower() in ("true", "false") else value
    return settings


HEADS = (
    "size, ms per update, spread %, transitions/s, GFLOP written and executed, TFLOP/s, of the reference, "
    "floor ms, times the floor, first s"
)


def row(size: str, agent: Any, settings: dict[str, Any], times: list[float], first: float, args: Any) -> str:
    ms = statistics.median(times)
    written = counted(plainly(agent, settings), args)
    floor_ms = 1e3 * written / product_rate(args.product)
    reference = REFERENCE_MS.get(size.removeprefix("size"))
    cells = [
        size,
        f"{ms:.2f}",
        f"{100 * (max(times) - min(times)) / ms:.1f}",
        f"{args.batch * args.length / ms * 1e3:,.0f}",
        f"{written / 1e9:,.0f}, {counted(agent, args) / 1e9:,.0f}",
        f"{written / ms / 1e9:.3g}",
        f"{ms / reference:.2f}" if reference and _is_reference_batch(args) else "-",
        f"{floor_ms:.2f}",
        f"{ms / floor_ms:.1f}",
        f"{first:.0f}",
    ]
    return "| " + " | ".join(cells) + " |"


def _is_reference_batch(args: argparse.Namespace) -> bool:
    return bool((args.batch, args.length, args.pixels) == (16, 64, 64) and not args.numbers)


def measure(size: str, args: argparse.Namespace) -> None:
    """One size, in this process."""
    device = jax.devices()[0].device_kind
    print(f"{size}: jax {jax.__version__} on {device}, compiling", file=sys.stderr, flush=True)
    settings = settings_of(size, args.set)
    agent = make_agent(*spaces(args.pixels, args.numbers), settings)
    times, first = timed(agent, args)
    # Printed before the operations are counted, in case that fails.
    summary = f"{statistics.median(times):.2f} ms per update, {first:.0f} s to the first"
    print(f"{size}: {summary}, {launched(agent, args):.2f} ms to start one", file=sys.stderr, flush=True)
    print(row(size, agent, settings, times, first, args), flush=True)
    if args.profile:
        profiled(agent, args)


def measure_each(args: argparse.Namespace) -> None:
    """Every size in a process of its own, none longer than its limit."""
    for size in args.sizes.split(","):
        command = [sys.executable, os.path.abspath(__file__), *sys.argv[1:], "--sizes", size, "--one"]
        try:
            code = subprocess.run(command, timeout=args.limit_s).returncode
        except subprocess.TimeoutExpired:
            print(f"| {size} | not done in {args.limit_s:.0f} s |", flush=True)
            continue
        if code:
            print(f"| {size} | failed with exit code {code} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default="12m,50m,200m")
    parser.add_argument("--set", action="append", default=[], metavar="GROUP.NAME=VALUE", help="an agent setting")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--length", type=int, default=64)
    parser.add_argument("--pixels", type=int, default=64)
    parser.add_argument("--numbers", type=int, default=0, help="instead of images, observe that many numbers")
    parser.add_argument("--per-call", type=int, default=1, help="updates that the device does without the host")
    parser.add_argument("--updates", type=int, default=50)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--warmup", type=int, default=5)
    parser.add_argument("--product", type=int, default=8192, help="side of the large product that gives the floor")
    parser.add_argument("--profile", type=int, default=0, metavar="ROWS", help="show where the time goes")
    parser.add_argument("--limit-s", type=float, default=240.0, help="time limit for one size, including compilation")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        measure(args.sizes, args)
        return
    print(f"jax {jax.__version__}; {args.batch} x {args.length}, {args.set or 'as shipped'}\n")
    print("| " + " | ".join(HEADS.split(", ")) + " |\n" + "|---" * 10 + "|", flush=True)
    measure_each(args)


if __name__ == "__main__":
    main()
