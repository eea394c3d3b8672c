"""Which settings and compiler options make a DreamerV3 update faster: many variants in one short call.

    python benchmarks/dreamer_variants.py --out found 12m 12m-pdl 12m-k4          the named ones; --list shows all
    python benchmarks/dreamer_variants.py --out found --tiny 1m 1m-k2             a test on a small machine

Compiling takes most of the time, and a device that compiles is a poor one to measure on. So all variants compile side
by side, in a process each, until the last is done or --compile-s have passed. Then they are timed one after the other.
A variant that fails or is late is reported, the others are still measured.

OUT/results.json has a row per variant: milliseconds per update of each repeat, milliseconds of the host to start one,
seconds to the first, the options; for a profiled variant also the time per instruction of the compiled program, whose
text is OUT/NAME.hlo.gz. Needs what dreamer_learner.py needs.
"""

from __future__ import annotations

import argparse
import collections
import glob
import gzip
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

GRAPH = "--xla_gpu_command_buffer_scheduling_mode="
PDL = "--xla_gpu_enable_pdl=true --xla_gpu_enable_pdl_launch=true"
SKIP = "--xla_gpu_command_buffer_update_mode=SKIP_TEMP"
LOOPS = "--xla_gpu_enable_command_buffer=+WHILE"
COMPILERS = ("compute.kernels=xla",)


@dataclass(frozen=True)
class Variant:
    size: str
    flags: str = ""
    per_call: int = 1
    numbers: int = 0  # observe that many numbers instead of images
    is_profiled: bool = False
    settings: tuple[str, ...] = field(default=())  # as --set of dreamer_learner.py


VARIANTS = {
    "12m": Variant("12m", is_profiled=True),
    "50m": Variant("50m"),
    "200m": Variant("200m"),
    "1m": Variant("1m", numbers=24, is_profiled=True),
    "1m-xla": Variant("1m", numbers=24, is_profiled=True, settings=COMPILERS),
    "1m-k2": Variant("1m", numbers=24, per_call=2),
    "1m-k8": Variant("1m", numbers=24, per_call=8),
    "1m-k8-pdl": Variant("1m", PDL, numbers=24, per_call=8),
    "1m-k8-loops": Variant("1m", LOOPS, numbers=24, per_call=8),
    "1m-skip": Variant("1m", SKIP, numbers=24),
    "12m-k4": Variant("12m", per_call=4),
    "12m-pdl": Variant("12m", PDL),
    "12m-concurrent": Variant("12m", GRAPH + "CONCURRENT"),
    "12m-regions": Variant("12m", GRAPH + "CONCURRENT_REGIONS"),
    "12m-skip": Variant("12m", SKIP),
    "12m-loops": Variant("12m", LOOPS),
    "12m-all": Variant("12m", f"{PDL} {SKIP} {GRAPH}CONCURRENT"),
    "12m-triton": Variant("12m", "--xla_gpu_experimental_enable_triton_heroless_priority_fusion=true"),
    "1m-regions": Variant("1m", GRAPH + "CONCURRENT_REGIONS", numbers=24),
    "1m-pdl": Variant("1m", PDL, numbers=24),
    "1m-concurrent": Variant("1m", GRAPH + "CONCURRENT", numbers=24),
    "12m-cublas": Variant("12m", "--xla_gpu_enable_triton_gemm=false"),
    "12m-plain": Variant("12m", settings=("compute.path=plain",)),
}


def row_of(name: str, out: Path, is_tiny: bool) -> None:
    """The work of one process: compile, wait for the turn, measure, write the row."""
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    import dreamer_learner as bench
    import jax

    variant = VARIANTS[name]
    batch, length, updates = (2, 8, 4) if is_tiny else (16, 64, 48)
    args = argparse.Namespace(batch=batch, length=length, per_call=variant.per_call, updates=updates, warmup=3)
    args.repeats = 3
    settings = bench.settings_of("debug" if is_tiny else variant.size, list(variant.settings))
    agent = bench.make_agent(*bench.spaces(64, variant.numbers), settings)
    started = time.perf_counter()
    data, each = bench.prepared(agent, args)
    jax.block_until_ready(agent.train(agent.init_train(batch), agent.stage(data[0], each))[2])
    first = time.perf_counter() - started
    (out / f"{name}.compiled").touch()
    while not (out / f"{name}.go").exists():
        time.sleep(0.1)
    times, _ = bench.timed(agent, args)
    row: dict[str, Any] = {"ms": times, "start_ms": bench.launched(agent, args), "first_s": first}
    row |= {"flags": variant.flags, "per_call": variant.per_call, "device": jax.devices()[0].device_kind}
    (out / f"{name}.json").write_text(json.dumps(row))
    if variant.is_profiled:
        row["instructions"] = profile_of(bench, agent, args)
        (out / f"{name}.json").write_text(json.dumps(row))
        text = compiled_text(bench, agent, args)
        (out / f"{name}.hlo.gz").write_bytes(gzip.compress(text.encode(), 6))


def profile_of(bench: Any, agent: Any, args: argparse.Namespace, updates: int = 3) -> list[list[Any]]:
    """Per instruction of the compiled program: milliseconds and launches per update, its kernel and its scope."""
    import jax

    data, each = bench.prepared(agent, args)
    carry = agent.init_train(args.batch)
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            bench._repeat(agent, carry, data, updates * each, each)
        path = glob.glob(f"{folder}/**/*.xplane.pb", recursive=True)[0]
        spent: collections.Counter[tuple[str, str, str]] = collections.Counter()
        counts: collections.Counter[tuple[str, str, str]] = collections.Counter()
        for plane in jax.profiler.ProfileData.from_file(path).planes:
            for line in plane.lines if "GPU" in plane.name else ():
                for event in line.events if "Stream" in line.name else ():
                    stats = {str(key): str(value) for key, value in event.stats}
                    scope = stats.get("name", stats.get("tf_op", ""))
                    key = (stats.get("hlo_op", "?"), event.name[:80], scope[:160])
                    spent[key] += event.duration_ns / 1e6
                    counts[key] += 1
    total = updates * each
    return [[round(ms / total, 5), round(counts[key] / total, 2), *key] for key, ms in spent.most_common(700)]


def compiled_text(bench: Any, agent: Any, args: argparse.Namespace) -> str:
    data, each = bench.prepared(agent, args)
    update = agent._update if each == 1 else agent._update_often
    staged = dict(agent.stage(data[0], each))
    return str(update.lower(agent._parts, agent.init_train(args.batch), staged).compile().as_text())


def start(name: str, out: Path, is_tiny: bool) -> subprocess.Popen[bytes]:
    command = [sys.executable, os.path.abspath(__file__), "--one", "--out", str(out), name]
    kept = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false", "JAX_COMPILATION_CACHE_DIR": str(out / "compiled")}
    flags = f"{os.environ.get('XLA_FLAGS', '')} {VARIANTS[name].flags}".strip()
    with (out / f"{name}.log").open("wb") as words:
        return subprocess.Popen(
            command + ["--tiny"] * is_tiny,
            env={**kept, **os.environ, "XLA_FLAGS": flags},
            stdout=words,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def await_all(names: list[str], running: dict[str, subprocess.Popen[bytes]], out: Path, until: float) -> list[str]:
    """The variants that have compiled when all have, or when the time is up."""
    while time.monotonic() < until:
        if all((out / f"{name}.compiled").exists() or running[name].poll() is not None for name in names):
            break
        time.sleep(0.5)
    return [name for name in names if (out / f"{name}.compiled").exists()]


def stop(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)


def measure(name: str, process: subprocess.Popen[bytes], out: Path, limit_s: float) -> dict[str, Any]:
    (out / f"{name}.go").touch()
    try:
        process.wait(limit_s)
    except subprocess.TimeoutExpired:
        pass
    path = out / f"{name}.json"
    if not path.exists():
        return {"error": (out / f"{name}.log").read_text(errors="replace")[-600:]}
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def summary(name: str, row: dict[str, Any]) -> str:
    if "error" in row:
        return f"| {name} | {row['error'][-160:].strip()!r} | | | |"
    ms, instructions = statistics.median(row["ms"]), row.get("instructions", [])
    kernels = f"{sum(one[0] for one in instructions):.2f}, {sum(one[1] for one in instructions):.0f}"
    return f"| {name} | {ms:.2f} | {row['start_ms']:.2f} | {row['first_s']:.0f} | {kernels if instructions else ''} |"


def run(args: argparse.Namespace) -> None:
    begun, out = time.monotonic(), Path(args.work)
    args.out.mkdir(parents=True, exist_ok=True)
    running = {name: start(name, out, args.tiny) for name in args.names}
    rows: dict[str, Any] = {}
    print("| variant | ms per update | host ms to start | first s | kernels: ms, launches |\n|---|---|---|---|---|")
    try:
        ready = await_all(args.names, running, out, begun + args.compile_s)
        for name in set(args.names) - set(ready):
            stop(running[name])  # what still compiles would disturb the others
        print(f"compiled {len(ready)} of {len(args.names)} in {time.monotonic() - begun:.0f} s", file=sys.stderr)
        for name in args.names:
            left = begun + args.limit_s - time.monotonic()
            late = {"error": (out / f"{name}.log").read_text(errors="replace")[-600:] + " (not compiled, or no time)"}
            rows[name] = measure(name, running[name], out, min(60.0, left)) if name in ready and left > 5 else late
            print(summary(name, rows[name]), flush=True)
            (args.out / "results.json").write_text(json.dumps(rows))
    finally:
        for process in running.values():
            stop(process)
        # Few files: a machine that is lent gives back only some.
        failed = [out / f"{name}.log" for name, row in rows.items() if "error" in row]
        for path in [*out.glob("*.hlo.gz"), *failed]:
            (args.out / path.name).write_bytes(path.read_bytes())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="VARIANT")
    parser.add_argument("--list", action="store_true", help="show the variants")
    parser.add_argument("--out", type=Path, default=Path("variants"))
    parser.add_argument("--compile-s", type=float, default=170.0)
    parser.add_argument("--limit-s", type=float, default=280.0, help="of the whole call")
    parser.add_argument("--tiny", action="store_true", help="debug sizes, to test the program")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if unknown := set(args.names) - set(VARIANTS):
        parser.error(f"there is no variant {min(unknown)!r}. Available: {', '.join(VARIANTS)}")
    if args.list:
        for name, variant in VARIANTS.items():
            print(f"{name}: {variant}")
    elif args.one:
        try:
            row_of(args.names[0], args.out, args.tiny)
        except Exception:  # noqa: BLE001  the edge of the process: its log has the reason
            traceback.print_exc()
            raise SystemExit(1) from None
    else:
        with tempfile.TemporaryDirectory() as folder:
            args.work = folder
            run(args)


if __name__ == "__main__":
    main()
