"""`mosaic daemon start|stop|status`; unit.py has `install` and `uninstall`."""

import argparse
import json
import time
from typing import TYPE_CHECKING

from mosaic.cli import unit
from mosaic.cli.amounts import cpus, memory, or_auto
from mosaic.cli.connection import connected, host_of, refuse_host, report_mismatch, tell_rebuild
from mosaic.cli.verb import add_json, add_verb, count
from mosaic.model import procfs
from mosaic.model.errors import MosaicError, NoDaemon
from mosaic.model.machine import format_memory
from mosaic.present.durations import format_duration
from mosaic.present.scores import count as count_of

if TYPE_CHECKING:
    from mosaic.cli.verb import Verbs
    from mosaic.client import TrainerClient
    from mosaic.wire import mosaic_pb2 as pb

GONE_WITHIN_S = 30.0
STORED = """The options are stored and apply to later starts, too.
--cpus, --memory and --max-runs default to what this machine allows; auto restores that."""


def add_verbs(verbs: "Verbs") -> None:
    examples = "mosaic daemon status\nmosaic daemon start --tcp 127.0.0.1:50055\nmosaic daemon stop --kill-runs"
    parser = add_verb(verbs, "daemon", status, "start, stop or inspect the daemon", examples)
    actions = parser.add_subparsers(metavar="ACTION", title="actions", required=True)

    parser = add_verb(actions, "start", start, "start the daemon", "mosaic daemon start --cpus 8 --memory 16G", STORED)
    parser.add_argument("--tcp", metavar="ADDR", help="also listen on this loopback address, such as 127.0.0.1:50055")
    parser.add_argument("--gpus", metavar="N", help="simulate N GPUs, for tests; auto: use the real GPUs")
    parser.add_argument("--cpus", metavar="N", type=or_auto(cpus), help="CPUs that all runs together may request")
    parser.add_argument(
        "--memory", metavar="16G", type=or_auto(memory), help="memory that all runs together may request"
    )
    parser.add_argument("--nodes", metavar="ADDR", help="listen here for runs on other machines, such as 10.0.0.5:0")
    parser.add_argument(
        "--launcher", metavar="PLACE", help="where runs go without --on: local, or a cluster such as slurm:gpu or ray"
    )
    parser.add_argument(
        "--max-runs", metavar="N", type=or_auto(count), help="how many runs may be live at the same time"
    )

    parser = add_verb(actions, "stop", stop, "stop the daemon; its runs continue", "mosaic daemon stop --kill-runs")
    parser.add_argument("--kill-runs", action="store_true", help="cancel all runs first")

    parser = add_verb(
        actions, "status", status, "show whether the daemon is running and what it does", "mosaic daemon status --json"
    )
    add_json(parser)
    unit.add_actions(actions)


def start(args: argparse.Namespace) -> int:
    from mosaic.client import TrainerClient

    refuse_host(args, "daemon start")
    try:
        with TrainerClient.connect(start=False) as client:
            report_mismatch(client)
            print(f"The daemon (pid {client.health().pid}) is already running. Stop it first to change its settings.")
            return 0
    except NoDaemon:
        pass
    with TrainerClient.connect(options=start_options(args)) as client:
        health = client.health()
    print(f"The daemon (pid {health.pid}) serves {health.root} at {', '.join(health.addresses)}.")
    tell_rebuild(args)
    return 0


def start_options(args: argparse.Namespace) -> tuple[str, ...]:
    options = {"--tcp": args.tcp, "--gpus": args.gpus, "--cpus": args.cpus, "--memory": args.memory}
    options |= {"--max-runs": args.max_runs, "--nodes": args.nodes, "--launcher": args.launcher}
    return tuple(word for option, value in options.items() if value is not None for word in (option, str(value)))


def stop(args: argparse.Namespace) -> int:
    pid = 0
    try:
        with connected(args, start=False) as client:
            pid = client.health().pid
            left = client.shutdown(args.kill_runs)
    except NoDaemon:
        if pid:
            raise  # it was running, and did not confirm that it stops
        print("No daemon is running.")
        return 0
    if not host_of(args):
        _wait_until_gone(pid)
    print(
        f"The daemon has stopped. {count_of(left, 'run')} {'continues' if left == 1 else 'continue'} without it."
        if left
        else "The daemon has stopped."
    )
    return 0


def _wait_until_gone(pid: int) -> None:
    """Wait for the process, so that `mosaic daemon stop && mosaic daemon start` does not find the old daemon."""
    deadline = time.monotonic() + GONE_WITHIN_S
    while procfs.is_alive(pid):
        if time.monotonic() > deadline:
            raise MosaicError(
                f"The daemon (pid {pid}) has not stopped within {GONE_WITHIN_S:.0f} s. See: mosaic doctor"
            )
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
        f"at most {health.max_runs} at the same time",
        f"CPUs       {health.cpus_requested:g} of {health.cpus:g} requested",
        f"memory     {format_memory(health.memory_mb_requested)} of {format_memory(health.memory_mb)} requested",
    ]
    for gpu in health.gpus:
        use = gpu.blocked or (f"run {gpu.owner}" if gpu.owner else "free")
        lines.append(f"GPU        {gpu.name or gpu.uuid} ({gpu.uuid}): {use}")
    return "\n".join(lines)
