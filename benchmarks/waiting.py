"""CPU that the dispatcher uses while runs wait: one turn with nothing to do, and one after a change.

    python benchmarks/waiting.py [--runs 5000]

A daemon takes a turn every 2 s, so 20 ms per turn are 1 % of a core.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "unit" / "dispatch"))

from dispatcher_rig import Rig

from mosaic.model.run import GpuRequest, RunConfig, WorkerSpec
from mosaic.model.ulid import new_ulid

SWEEP_S = 2.0


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=5000)
    count = parser.parse_args().runs
    with tempfile.TemporaryDirectory() as home:
        rig = Rig(Path(home), gpus=1, max_runs=0)
        try:
            asyncio.Runner().run(measure(rig, count))
        finally:
            rig.close()


async def measure(rig: Rig, count: int) -> None:
    gpus = GpuRequest(1, True)
    for _ in range(count):
        config = RunConfig(new_ulid(), "n", "runs", "toy", WorkerSpec(module="toy.cli"), gpus=gpus)
        await rig.registry.do(lambda r, config=config: r.add(config))
    print(f"{'turn with ' + str(count) + ' waiting runs':<42}{'CPU ms':>9}{'% of a core':>13}")
    print_row("the first, which notes what each waits for", await cpu_ms(rig))
    idle = [await cpu_ms(rig) for _ in range(5)]
    print_row("idle", sorted(idle)[2])
    last = config.run_id
    await rig.registry.do(lambda r: r.request_cancel(last))
    print_row("after a change of one run", await cpu_ms(rig))


async def cpu_ms(rig: Rig) -> float:
    before = time.process_time()
    await rig.dispatcher.turn()
    return (time.process_time() - before) * 1000


def print_row(what: str, ms: float) -> None:
    print(f"{what:<42}{ms:>9.1f}{ms / SWEEP_S / 10:>13.2f}")


if __name__ == "__main__":
    main()
