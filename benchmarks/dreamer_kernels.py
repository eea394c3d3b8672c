"""The observed scan and the hidden layers alone, by the compiler's kernels and by the hand-written ones.

    python benchmarks/dreamer_kernels.py                             size 1m on this machine's GPU
    python benchmarks/dreamer_kernels.py --sizes debug --batch 16 --length 3 --kernels interpreted      a test on a CPU

Prints per part and size: milliseconds forward, forward with gradients, both ways; and how far the results are apart,
as a share of their size: the states or outputs, and the worst gradient. In bfloat16 some draws of the scan fall
otherwise (`same draws` is the share of equal ones), and from there on the sequences differ: compare the float32 rows.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from functools import partial
from typing import Any

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "workers", "dreamer_worker"))

import jax
import jax.numpy as jnp
import numpy as np
from dreamer_worker.agent import observation
from dreamer_worker.agent.config import AgentConfig, Rssm
from dreamer_worker.agent.layers import Init, cast, kernels_by, mlp
from dreamer_worker.agent.observation import Carried, Given, Weights

SMALL = Rssm(deter=256, hidden=32, stoch=8, classes=4, blocks=8)


def inputs(rssm: Rssm, batch: int, length: int, dtype: Any, seed: int = 0) -> tuple[Weights, Carried, Given]:
    rng = np.random.default_rng(seed)
    blocks, width, hidden, size = rssm.blocks, rssm.deter // rssm.blocks, rssm.hidden, rssm.stoch * rssm.classes

    def some(*shape: int, scale: float = 1.0) -> Any:
        return jnp.asarray(scale * rng.standard_normal(shape, np.float32), dtype)

    def ones(*shape: int) -> Any:
        return jnp.asarray(1 + 0.1 * rng.standard_normal(shape), jnp.float32)

    weights = Weights(
        stoch_in=some(size, hidden, scale=size**-0.5),
        bias=some(2, 1, hidden, scale=0.1),
        scale=ones(2, 1, hidden),
        hidden=some(blocks, width + 2 * hidden, width, scale=(width + 2 * hidden) ** -0.5),
        hidden_scale=ones(blocks, 1, width),
        gates=some(blocks, width, 3 * width, scale=width**-0.5),
        gates_bias=some(blocks, 1, 3 * width, scale=0.1),
        both=some(blocks, width, 2 * hidden, scale=rssm.deter**-0.5),
        look_scale=ones(hidden),
        logits=some(hidden, size, scale=hidden**-0.5),
        logits_bias=some(size, scale=0.1),
    )
    drawn = jnp.asarray(rng.integers(0, rssm.classes, (batch, rssm.stoch)))
    stoch = jax.nn.one_hot(drawn, rssm.classes, dtype=dtype).reshape(batch, size)
    given = Given(
        hidden=some(length, blocks, batch, width, scale=0.3),
        look=some(length, batch, hidden),
        keep=jnp.asarray(rng.random((length, batch, 1)) > 0.05, dtype),
        gumbel=jnp.asarray(rng.gumbel(size=(length, batch, rssm.stoch, rssm.classes)), jnp.float32),
    )
    return weights, Carried(some(blocks, batch, width, scale=0.5), stoch, some(batch, hidden)), given


def timed(run: Any, args: Any, repeats: int) -> tuple[float, Any]:
    """Milliseconds, and the result."""
    found = jax.block_until_ready(run(*args))
    spent = []
    for _ in range(repeats):
        start = time.perf_counter()
        for _ in range(5):
            found = run(*args)
        jax.block_until_ready(found)
        spent.append((time.perf_counter() - start) / 5 * 1e3)
    return statistics.median(spent), found


def measure(rssm: Rssm, args: argparse.Namespace, dtype: Any, kind: str) -> tuple[float, float, Any, Any]:
    weights, start, given = inputs(rssm, args.batch, args.length, dtype)
    rng = np.random.default_rng(1)
    shapes = given.hidden.shape, (args.length, args.batch, rssm.stoch * rssm.classes)
    aims = [jnp.asarray(rng.standard_normal(shape), jnp.float32) for shape in shapes]
    return compared(partial(observation._scan, rssm, args.unroll, kind), (weights, start, given), aims, args)


def compared(run: Any, given: tuple[Any, ...], aims: list[Any], args: argparse.Namespace) -> tuple[Any, ...]:
    """Milliseconds forward and with gradients; the results, and the gradients of the first two arguments."""

    def loss(*given: Any) -> Any:
        return sum((x.astype(jnp.float32) * aim).sum() for x, aim in zip(run(*given), aims, strict=True))

    forward, states = timed(jax.jit(run), given, args.repeats)
    both, gradients = timed(jax.jit(jax.grad(loss, (0, 1))), given, args.repeats)
    return forward, both, states, gradients


def measure_layers(rssm: Rssm, args: argparse.Namespace, dtype: Any, kind: str) -> tuple[Any, ...]:
    """Three layers, for all states of a dream."""
    rng, count, units = np.random.default_rng(0), 16 * args.batch * args.length, rssm.hidden
    params = Init(jnp.asarray(rng.standard_normal(4 * rssm.deter * units), jnp.float32)).mlp(rssm.deter, units, 3)
    params = jax.tree.map(lambda x: x + 0.1 * jnp.asarray(rng.standard_normal(x.shape), jnp.float32), params)
    x, aim = (jnp.asarray(rng.standard_normal((count, width)), jnp.float32) for width in (rssm.deter, units))

    def run(params: Any, x: Any) -> Any:
        with kernels_by(kind):
            return (mlp(params, x),)

    return compared(run, (cast(params, dtype), x.astype(dtype)), [aim], args)


def apart(found: Any, wanted: Any) -> float:
    """The largest relative distance of two trees' leaves."""
    pairs = zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True)
    wide = [(np.asarray(one, np.float64), np.asarray(other, np.float64)) for one, other in pairs]
    return max(float(np.linalg.norm(one - other) / (1e-9 + np.linalg.norm(other))) for one, other in wide)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default="1m")
    parser.add_argument("--kernels", default="triton")
    parser.add_argument("--dtypes", default="float32,bfloat16")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--length", type=int, default=64)
    parser.add_argument("--unroll", type=int, default=16)
    parser.add_argument("--repeats", type=int, default=5)
    args = parser.parse_args()
    heads = "part, size, dtype, kernels, ms forward, ms with gradients, same draws, results apart, worst gradient apart"
    print("| " + " | ".join(heads.split(", ")) + " |\n" + "|---" * 9 + "|", flush=True)
    for size in args.sizes.split(","):
        rssm = SMALL if size == "debug" else AgentConfig.preset(size).rssm
        for dtype in args.dtypes.split(","):
            # float32 is for the comparison: exact products, since the card's own are rounded to tf32.
            with jax.default_matmul_precision("highest" if dtype == "float32" else "default"):
                for part, work in (("scan", measure), ("layers", measure_layers)):
                    rows(part, work, size, rssm, args, dtype)


def rows(part: str, work: Any, size: str, rssm: Rssm, args: argparse.Namespace, dtype: str) -> None:
    wanted: Any = None
    for kind in ("xla", args.kernels):
        try:
            forward, both, states, gradients = work(rssm, args, jnp.dtype(dtype), kind)
        except Exception as error:  # noqa: BLE001  the edge: the next row may succeed
            print(f"| {part} | {size} | {dtype} | {kind} | {type(error).__name__}: {str(error)[:300]!r} |", flush=True)
            continue
        cells = ["", "", ""]
        if wanted is not None:
            same = f"{(np.asarray(states[1]) == np.asarray(wanted[0][1])).mean():.6f}" if part == "scan" else ""
            cells = [same, f"{apart(states[0], wanted[0][0]):.2e}", f"{apart(gradients, wanted[1]):.2e}"]
        wanted = wanted or (states, gradients)
        print(f"| {part} | {size} | {dtype} | {kind} | {forward:.3f} | {both:.3f} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
