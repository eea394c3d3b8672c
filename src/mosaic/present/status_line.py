"""The status line of a screen: `daemon ok · 2 running, 1 waiting for a GPU · GPU 0: cartpole s1 · disk 41 GB free`."""

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from mosaic.present.text import printable, size

if TYPE_CHECKING:
    from mosaic.client import Run
    from mosaic.wire import mosaic_pb2 as pb

FEW_GPUS = 2  # more are counted, not named
STATES = {"connecting": "connecting…", "ok": "ok", "lost": "not reachable"}


def status_line(state: str, host: str, health: "pb.Health | None", runs: "Mapping[str, Run]") -> str:
    """`state`: connecting, ok or lost. `host`: the machine if it is another one. `health`: as of the last answer."""
    parts = [_daemon(state, host, health)]
    if state != "connecting":
        parts.append(describe_live(runs.values()))
    if health and state == "ok":
        parts += [describe_gpus(health, runs), _disk(health)]
    return " · ".join(filter(None, parts))


def describe_live(runs: "Collection[Run]") -> str:
    """`2 running, 1 waiting for a GPU`."""
    live = [run for run in runs if not run.state.is_over]
    waiting = [run for run in live if run.waiting_for]
    running = len(live) - len(waiting)
    parts = [f"{running} running"] if running or not waiting else []
    if waiting:
        parts.append(f"{len(waiting)} waiting{_for_a_gpu(waiting)}")
    return ", ".join(parts) if live else "nothing running"


def describe_gpus(health: "pb.Health", runs: "Mapping[str, Run]") -> str:
    """`GPU 0: cartpole s1`; `3 of 8 GPUs in use` if there are many; empty if there are none."""
    gpus = list(health.gpus)
    if len(gpus) > FEW_GPUS:
        return f"{sum(bool(gpu.owner) for gpu in gpus)} of {len(gpus)} GPUs in use"
    return " · ".join(f"GPU {number}: {_user(gpu, runs)}" for number, gpu in enumerate(gpus))


def _daemon(state: str, host: str, health: "pb.Health | None") -> str:
    where = f" on {printable(host)}" if host else ""
    if state == "ok" and health and not health.healthy:
        return f"daemon{where}: {printable(health.problem).rstrip('.')}"
    return f"daemon{where} {STATES[state]}"


def _for_a_gpu(waiting: "list[Run]") -> str:
    return " for a GPU" if all("GPU" in run.waiting_for.split(":")[0] for run in waiting) else ""


def _user(gpu: "pb.Gpu", runs: "Mapping[str, Run]") -> str:
    if gpu.owner:
        run = runs.get(gpu.owner)
        return printable(run.name) if run and run.name else gpu.owner
    return printable(gpu.blocked) or "free"


def _disk(health: "pb.Health") -> str:
    return f"disk {size(health.disk_free_bytes)} free" if health.disk_free_bytes else ""
