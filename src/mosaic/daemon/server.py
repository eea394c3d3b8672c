"""The daemon's main: builds all parts, adopts live runs, serves until it is stopped.

    python -m mosaic.daemon.server --root ROOT [--tcp HOST:PORT] [--gpus N|auto] [--cpus N|auto]
                                   [--memory 16G|auto] [--max-runs N|auto] [--nodes HOST:PORT]
                                   [--launcher local|CLUSTER] [--from-settings]

Exit codes: 0 stopped, 1 cannot start, 3 another daemon serves this root.
"""

import argparse
import asyncio
import contextlib
import logging
import os
import signal
import sys
import time
from collections.abc import Callable, Coroutine
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from grpc_health.v1 import health as grpc_health
from grpc_health.v1 import health_pb2, health_pb2_grpc

from mosaic.broadcast.subscribers import Broadcaster
from mosaic.catalog.answers import Answers
from mosaic.catalog.inspector import Inspector
from mosaic.catalog.workers import Catalog
from mosaic.daemon.admission import Admission
from mosaic.daemon.arrivals import Arrivals
from mosaic.daemon.auth import Tokens
from mosaic.daemon.commands import Commands
from mosaic.daemon.endpoints import Endpoints, new_server, refuse_taken
from mosaic.daemon.freed_memory import keep_giving_back
from mosaic.daemon.guard import Guard
from mosaic.daemon.importing import Importer
from mosaic.daemon.incoming import IncomingFiles
from mosaic.daemon.lock import DaemonLock
from mosaic.daemon.log_file import log_to_file
from mosaic.daemon.node_links import NodeLinks
from mosaic.daemon.nodes import Nodes
from mosaic.daemon.operators import Operators
from mosaic.daemon.parents import Parents
from mosaic.daemon.parts import Parts
from mosaic.daemon.receiving import Receiving
from mosaic.daemon.registry_care import RegistryCare
from mosaic.daemon.requeue import Requeue
from mosaic.daemon.restore import restore_if_needed
from mosaic.daemon.scope import Scope
from mosaic.daemon.service import Service
from mosaic.daemon.sessions import Sessions
from mosaic.daemon.settings import Asked, Settings, settings_at_start
from mosaic.daemon.trainer import Trainer
from mosaic.dispatch.descriptors import raise_limit
from mosaic.dispatch.dispatcher import Dispatcher
from mosaic.dispatch.gpus import Gpus
from mosaic.dispatch.launcher import Launchers
from mosaic.dispatch.live_runs import LiveRuns
from mosaic.dispatch.local_launcher import LocalLauncher
from mosaic.ingest.index import Index
from mosaic.ingest.receive import Ingest
from mosaic.model.errors import AddressTaken, AlreadyRunning, MosaicError, RootGone
from mosaic.model.machine import detect
from mosaic.model.old_layout import give_control_folders
from mosaic.model.place import refuse_shifted
from mosaic.model.reserve import Reserve
from mosaic.model.root import check_root
from mosaic.model.run import RunRecord
from mosaic.model.rundir import StateRoot
from mosaic.registry.thread import RegistryThread
from mosaic.wire.mosaic_pb2_grpc import add_TrainerServiceServicer_to_server

log = logging.getLogger(__name__)


def main(argv: list[str] | None = None) -> int:
    args = _parser().parse_args(argv)
    # SQLite, gRPC and logging leave the mode of files to the umask. Workers get the user's own umask.
    umask = os.umask(0o077)
    nofile = raise_limit()
    root = StateRoot(Path(args.root).absolute()) if args.root else StateRoot.from_environment()
    reserve = Reserve(root.reserve)
    try:
        reserve.spend_if_scarce()  # on a full disk, so that the files of a start can be written
        check_root(root)
        log_to_file(root)
        lock = DaemonLock.take(root)
        give_control_folders(root)
        settings = settings_at_start(root, _asked(args))
        asyncio.run(serve(root, settings, lock, umask, nofile))
    except AlreadyRunning as error:
        print(error, file=sys.stderr)
        return 3
    except MosaicError as error:
        print(error, file=sys.stderr)
        return 1
    reserve.make(spare_bytes=0)  # from the space of the registry's WAL, which is gone: for a start on a full disk
    return 0


async def serve(root: StateRoot, settings: Settings, lock: DaemonLock, umask: int = -1, nofile: int = -1) -> None:
    """Build the daemon and run it until it is stopped or its root is gone.

    `umask` and `nofile` are those for its runs.
    """
    stopping = asyncio.Event()
    on_purpose = False

    def stop(purpose: bool) -> None:
        nonlocal on_purpose
        on_purpose = on_purpose or purpose
        stopping.set()

    restore_if_needed(root)
    registry = RegistryThread(root.registry)
    live_runs = LiveRuns(parts_wanted=lambda run_id: parts.wanted(run_id))
    broadcaster = Broadcaster()
    ingest = Ingest(broadcaster, Index(root.index), live_runs)
    local, catalog = LocalLauncher(umask, nofile), Catalog(root)
    inspector = Inspector(catalog, Answers(root.answers))
    tokens = Tokens.load(root)
    health = grpc_health.aio.HealthServicer()

    receiving, care = Receiving(), RegistryCare(root)

    def make_server(is_private: bool, for_nodes: bool = False) -> Any:
        admission = Admission(tokens, trainer.sessions, is_private, for_nodes)
        server = new_server(Guard(admission, receiving, Scope(registry)), is_private, for_nodes)
        add_TrainerServiceServicer_to_server(Service(trainer, stop), server)  # type: ignore[no-untyped-call]
        health_pb2_grpc.add_HealthServicer_to_server(health, server)
        return server

    def ended(record: RunRecord) -> None:
        requeue.after(record)
        parts.after(record)

    endpoints = Endpoints(root, make_server)
    node_links = NodeLinks()
    nodes = Nodes(root, endpoints, local, settings, node_links.cpu_s)
    gpus = Gpus(settings.fake_gpus)
    machine = settings.machine(detect())
    max_runs = settings.max_runs or machine.max_runs
    dispatcher = Dispatcher(
        root,
        registry,
        ingest,
        broadcaster,
        catalog,
        local,
        Launchers(local, nodes.launcher),
        gpus,
        machine,
        max_runs,
        endpoints,
        live_runs,
        lock.is_in_place,
        tokens.driver,
        nodes.far,
        ended,
        lambda config: parts.variables(config),
    )

    async def open_tcp() -> str:
        address = await endpoints.open_any_tcp()
        replace(settings, tcp=address, tcp_is_automatic=True).save(root)
        return address

    parents = Parents(root, registry, ingest, inspector)
    trainer = Trainer(
        root=root,
        registry=registry,
        ingest=ingest,
        broadcaster=broadcaster,
        live_runs=live_runs,
        dispatcher=dispatcher,
        local=local,
        catalog=catalog,
        inspector=inspector,
        parents=parents,
        operators=Operators(registry, catalog, inspector, parents),
        sessions=Sessions(root, registry, tokens),
        commands=Commands(root, registry),
        importer=Importer(root, registry, ingest, lambda record: trainer.info(record)),
        endpoints=endpoints,
        nodes=nodes,
        node_links=node_links,
        arrivals=Arrivals(root, registry, live_runs),
        incoming=IncomingFiles(live_runs),
        default_on=settings.on,
        open_tcp=open_tcp,
        registry_problem=care.problem,
        started_at=time.time(),
    )
    requeue, parts = Requeue(trainer), Parts(trainer, tokens)
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop, False)
    dispatching: asyncio.Task[None] | None = None
    keeping: list[asyncio.Task[None]] = []
    try:
        if settings.tcp and not settings.tcp_is_automatic:
            refuse_taken(settings.tcp)  # before clients connect to a daemon that cannot start completely
        await endpoints.open_unix()
        if settings.tcp:
            await _open_stored_tcp(endpoints, settings, root)
        await nodes.open_stored()
        await health.set("", health_pb2.HealthCheckResponse.SERVING)
        dispatching = asyncio.create_task(dispatcher.run())
        works = (care.keep(), keep_giving_back(), requeue.recover(), parts.recover())
        keeping = [in_background(work) for work in works]
        log.info("The daemon (pid %d) serves %s at %s.", os.getpid(), root.path, ", ".join(endpoints.addresses))
        await _until_stopped(stopping, dispatching, ingest, health, partial(_look_after, root, lock, endpoints))
    finally:
        if on_purpose:
            _remember_purpose(root)
        tasks = [*keeping, *([dispatching] if dispatching else [])]
        for task in tasks:
            task.cancel()
        # An error in one is already being raised; it must not prevent the files from being closed.
        await asyncio.gather(*tasks, return_exceptions=True)
        trainer.incoming.close()
        trainer.request_streams.close()  # otherwise every stop would wait for the open streams of tailers
        await endpoints.close()
        await ingest.close()
        registry.close()
        log.info("The daemon (pid %d) has stopped; live runs continue.", os.getpid())


def in_background(work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
    """A task that nobody waits for: its error is logged when it occurs, not when the daemon stops."""
    task = asyncio.create_task(work)
    task.add_done_callback(_log_error)
    return task


def _log_error(task: "asyncio.Task[None]") -> None:
    if not task.cancelled() and (error := task.exception()):
        log.error("A task in the background has failed; the daemon goes on without it.", exc_info=error)


async def _open_stored_tcp(endpoints: Endpoints, settings: Settings, root: StateRoot) -> None:
    """Listen where the last daemon did. Another program may have taken a port that the user did not choose."""
    try:
        await endpoints.open_tcp(settings.tcp)
    except AddressTaken:
        if not settings.tcp_is_automatic:
            raise
        address = await endpoints.open_any_tcp()
        replace(settings, tcp=address).save(root)
        log.warning(
            "Another program uses %s, so the daemon listens on %s now. Workers that were started with the old address "
            "cannot send heartbeat calls.",
            settings.tcp,
            address,
        )


async def _until_stopped(
    stopping: asyncio.Event,
    dispatching: "asyncio.Task[None]",
    ingest: Ingest,
    health: Any,
    look_after: Callable[[], None],
) -> None:
    """Wait for the stop; raise if the dispatcher has failed, and report a failed writer as NOT_SERVING."""
    while not stopping.is_set():
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stopping.wait(), 1.0)
        if dispatching.done():
            dispatching.result()
        look_after()
        if ingest.problem:
            await health.set("", health_pb2.HealthCheckResponse.NOT_SERVING)


def _look_after(root: StateRoot, lock: DaemonLock, endpoints: Endpoints) -> None:
    """Raise BadRoot if this daemon no longer serves the folder at its path; else see that clients find it there."""
    if not lock.is_in_place():
        log.error("%s was removed, moved or replaced: this daemon ends; no run is signalled.", root.path)
        raise RootGone(
            f"{root.path} was removed, moved or replaced while its daemon ran. See: mosaic root adopt --help"
        )
    refuse_shifted(root)  # another root was copied over this one
    endpoints.repair_file()


def _remember_purpose(root: StateRoot) -> None:
    try:
        replace(Settings.load(root), stopped_on_purpose=True).save(root)
    except OSError as error:
        log.warning("daemon.json cannot be written, so a tailer will start the daemon again: %s", error)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="mosaic-daemon", description="MOSAIC's Trainer Daemon.")
    parser.add_argument("--root", default="", help="state folder; default: MOSAIC_HOME or the XDG state folder")
    parser.add_argument("--tcp", default="", help="also listen on this loopback address, e.g. 127.0.0.1:50055")
    parser.add_argument(
        "--gpus", default="", help="simulate this number of GPUs (for tests), or 'auto' for the real ones"
    )
    parser.add_argument("--cpus", default="", help="how many CPUs all runs together may request, or 'auto'")
    parser.add_argument(
        "--memory", default="", help="how much memory all runs together may request, e.g. 16G, or 'auto'"
    )
    parser.add_argument("--max-runs", default="", help="how many runs may be live at the same time, or 'auto'")
    parser.add_argument("--nodes", default="", help="listen here, with TLS, for tailers on the nodes of a cluster")
    parser.add_argument("--launcher", default="", help="where runs go that do not say it: local, slurm, ray …")
    parser.add_argument("--from-settings", action="store_true", help="use only the settings in daemon.json")
    return parser


def _asked(args: argparse.Namespace) -> Asked | None:
    """The options of this start; None: only the stored settings."""
    if args.from_settings:
        return None
    return Asked(args.tcp, args.gpus, args.cpus, args.memory, args.max_runs, args.nodes, args.launcher)


if __name__ == "__main__":
    sys.exit(main())
