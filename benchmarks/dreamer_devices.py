"""What several devices would compute and exchange per DreamerV3 update, by XLA's cost model: nothing is executed.

    python benchmarks/dreamer_devices.py                           12m, batch 16 x 64, images, on 1 and on 8 devices
    python benchmarks/dreamer_devices.py --sizes 1m --numbers 24 --devices 1,2,4,8

The update is compiled for devices of this machine's CPU (XLA_FLAGS is set for as many as are asked for), without most
optimisations: a minute of CPU each. XLA counts the body of a loop once, so the steps of the recurrent scans count as
one each, and what they exchange in each step is listed as `per step`.
"""

from __future__ import annotations

import argparse
import math
import os
import re
from collections import defaultdict
from typing import NamedTuple

WIDTHS = {"pred": 1, "s8": 1, "u8": 1, "bf16": 2, "f16": 2, "s32": 4, "u32": 4, "f32": 4}
EXCHANGE = re.compile(r"= (.*?) (all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute)(?:-start)?\(")
ARRAY = re.compile(rf"({'|'.join(WIDTHS)})\[([\d,]*)\]")
BEGINS = re.compile(r"^(?:ENTRY )?%?([\w.\-]+) \(.*\{$")


class Exchanged(NamedTuple):
    count: int
    bytes: int


def exchanges(compiled: str) -> dict[tuple[str, bool], Exchanged]:
    """Of a compiled program: its kinds of exchange between devices, and whether they are inside a loop."""
    loops, inside = set(re.findall(r"body=%?([\w.\-]+)", compiled)), False
    found: dict[tuple[str, bool], Exchanged] = defaultdict(lambda: Exchanged(0, 0))
    for line in compiled.splitlines():
        if begins := BEGINS.match(line):
            inside = begins[1] in loops
        elif exchange := EXCHANGE.search(line):
            before = found[exchange[2], inside]
            found[exchange[2], inside] = Exchanged(before.count + 1, before.bytes + size_of(exchange[1]))
    return dict(found)


def size_of(arrays: str) -> int:
    shapes = [(WIDTHS[kind], [int(axis) for axis in axes.split(",") if axis]) for kind, axes in ARRAY.findall(arrays)]
    return sum(width * math.prod(axes) for width, axes in shapes)


def measure(size: str, devices: int, args: argparse.Namespace) -> tuple[float, float, str]:
    """Operations and bytes of memory per device, and what it exchanges."""
    import jax
    from dreamer_learner import batches, spaces
    from dreamer_worker.agent import make_agent

    jax.config.update("jax_disable_most_optimizations", True)
    settings = {"size": size, "compute": {"devices": devices, "kernels": "xla"}}
    agent = make_agent(*spaces(64, args.numbers), settings)
    batch = agent.stage(batches(agent, args.batch, args.length + 1, 1)[0])
    with agent.devices.together():
        compiled = agent._update.lower(agent._parts, agent.init_train(args.batch), dict(batch)).compile()
    cost = compiled.cost_analysis()
    words = [
        f"{count} {kind}{' per step' if inside else ''}, {bytes_ / 1e6:.2f} MB"
        for (kind, inside), (count, bytes_) in sorted(exchanges(compiled.as_text()).items())
    ]
    return cost["flops"], cost["bytes accessed"], "; ".join(words) or "nothing"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default="12m")
    parser.add_argument("--devices", default="1,8")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--length", type=int, default=64)
    parser.add_argument("--numbers", type=int, default=0, help="observe that many numbers instead of images")
    args = parser.parse_args()
    counts = [int(count) for count in args.devices.split(",")]
    os.environ["JAX_PLATFORMS"] = "cpu"
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={max(counts)}"
    print("| size | devices | operations per device | memory traffic per device | exchanged per update |")
    print("|---|---|---|---|---|")
    for size in args.sizes.split(","):
        first: tuple[float, float] = (0.0, 0.0)
        for devices in counts:
            flops, traffic, words = measure(size, devices, args)
            first = first if any(first) else (flops, traffic)
            shares = f"{flops / first[0]:.3f} × | {traffic / first[1]:.3f} ×"
            print(f"| {size} | {devices} | {flops / 1e9:.1f} G, {shares} | {words} |", flush=True)


if __name__ == "__main__":
    main()
