"""`mosaic daemon start|stop|status`."""

import argparse
import json
import time
from typing import TYPE_CHECKING

from mosaic.cli.amounts import cpus, memory, or_auto
from mosaic.cli.connection import connected, host_of, refuse_host
from mosaic.cli.durations import format_duration
from mosaic.cli.verb import add_json, add_verb, count
from mosaic.model import procfs
from mosaic.model.errors import MosaicError, NoDaemon
from mosaic.model.machine import format_memory

if TYPE_CHECKING:
    from mosaic.cli.verb import Verbs
    from mosaic.client import TrainerClient
    from mosaic.wire import mosaic_pb2 as pb

GONE_WITHIN_S = 30.0


def add_verbs(verbs: "Verbs") -> None:
    examples = "mosaic daemon status\nmosaic daemon start --tcp 127.0.0.1:50055\nmosaic daemon stop --kill-runs"
    parser = add_verb(verbs, "daemon", status, "start, stop or look at the daemon", examples)
    actions = parser.add_subparsers(metavar="start|stop|status", required=True)

    parser = add_verb(
        actions, "start", start, "start the daemon; its settings are kept", "mosaic daemon start --cpus 8 --memory 16G"
    )
    parser.add_argument("--tcp", metavar="ADDR", help="also listen on this loopback address, e.g. 127.0.0.1:50055")
    parser.add_argument("--gpus", metavar="N", help="pretend to have N GPUs (for tests); auto: the real ones")
    parser.add_argument("--cpus", metavar="N", type=or_auto(cpus), help="CPUs that runs may request together")
    parser.add_argument("--memory", metavar="16G", type=or_auto(memory), help="memory that runs may request together")
    parser.add_argument("--max-runs", metavar="N", type=or_auto(count), help="how many runs may be live at once")
    parser.epilog = f"{parser.epilog}\n\nThe last three take auto: what this machine can carry, which is the default."

    parser = add_verb(actions, "stop", stop, "stop the daemon; runs go on without it", "mosaic daemon stop --kill-runs")
    parser.add_argument("--kill-runs", action="store_true", help="end all runs first")

    parser = add_verb(
        actions, "status", status, "tell whether the daemon runs, and how it is", "mosaic daemon status --json"
    )
    add_json(parser)


def start(args: argparse.Namespace) -> int:
    from mosaic.client import TrainerClient

    refuse_host(args, "daemon start")
    try:
        with TrainerClient.connect(start=False) as client:
            print(f"The daemon (pid {client.health().pid}) already runs. To change its settings, stop it first.")
            return 0
    except NoDaemon:
        pass
    with TrainerClient.connect(options=start_options(args)) as client:
        health = client.health()
    print(f"The daemon (pid {health.pid}) serves {health.root} at {', '.join(health.addresses)}.")
    return 0


def start_options(args: argparse.Namespace) -> tuple[str, ...]:
    wishes = {"--tcp": args.tcp, "--gpus": args.gpus, "--cpus": args.cpus, "--memory": args.memory}
    wishes["--max-runs"] = args.max_runs
    return tuple(word for option, value in wishes.items() if value is not None for word in (option, str(value)))


def stop(args: argparse.Namespace) -> int:
    pid = 0
    try:
        with connected(args, start=False) as client:
            pid = client.health().pid
            left = client.shutdown(args.kill_runs)
    except NoDaemon:
        if pid:
            raise  # it was there, and did not say that it stops
        print("No daemon is running.")
        return 0
    if not host_of(args):
        _wait_until_gone(pid)
    print(f"The daemon has stopped; {left} run(s) go on without it." if left else "The daemon has stopped.")
    return 0


def _wait_until_gone(pid: int) -> None:
    """So that `mosaic daemon stop && mosaic daemon start` never meets the old one."""
    deadline = time.monotonic() + GONE_WITHIN_S
    while procfs.is_alive(pid):
        if time.monotonic() > deadline:
            raise MosaicError(f"The daemon (pid {pid}) is still stopping after {GONE_WITHIN_S:.0f} s.")
        time.sleep(0.02)


def status(args: argparse.Namespace) -> int:
    try:
        with connected(args, start=False) as client:
            health = client.health()
            print(json.dumps(to_dict(health), indent=1) if args.json else describe(health, client))
    except NoDaemon as error:
        print(json.dumps({"running": False}) if args.json else error)
        return 1
    return 0


def to_dict(health: "pb.Health") -> dict[str, object]:
    return {
        "running": True,
        "healthy": health.healthy,
        "problem": health.problem,
        "pid": health.pid,
        "version": health.version,
        "started_at": health.started_at,
        "addresses": list(health.addresses),
        "root": health.root,
        "live_runs": health.live_runs,
        "max_runs": health.max_runs,
        "waiting_runs": health.waiting_runs,
        "cpus": health.cpus,
        "cpus_requested": health.cpus_requested,
        "memory_mb": health.memory_mb,
        "memory_mb_requested": health.memory_mb_requested,
        "gpus": [
            {"uuid": gpu.uuid, "name": gpu.name, "owner": gpu.owner, "blocked": gpu.blocked} for gpu in health.gpus
        ],
    }


def describe(health: "pb.Health", client: "TrainerClient") -> str:
    lines = [
        f"The daemon is {'healthy' if health.healthy else f'not healthy: {health.problem}'}.",
        f"pid        {health.pid}, version {health.version}, up {format_duration(time.time() - health.started_at)}",
        f"root       {health.root}",
        f"addresses  {', '.join(health.addresses) or client.target}",
        f"runs       {health.live_runs - health.waiting_runs} running, {health.waiting_runs} waiting; "
        f"never more than {health.max_runs} at once",
        f"CPUs       {health.cpus_requested:g} of {health.cpus:g} requested by runs",
        f"memory     {format_memory(health.memory_mb_requested)} of {format_memory(health.memory_mb)} "
        "requested by runs",
    ]
    for gpu in health.gpus:
        use = gpu.blocked or (f"run {gpu.owner}" if gpu.owner else "free")
        lines.append(f"GPU        {gpu.name or gpu.uuid} ({gpu.uuid}): {use}")
    return "\n".join(lines)
