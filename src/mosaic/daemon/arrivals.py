"""Runs on nodes without a shared file system: their processes take the launch here, and report start and end.

A launch is handed out once for each attempt. That is recorded in started.json before it is answered, so a worker is
started at most once, on whatever node a late or doubled job appears.
"""

import asyncio
import json
import os
import stat
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import mosaic_sdk

from mosaic.dispatch.live_runs import LiveRuns
from mosaic.engines.cluster import NODE
from mosaic.model import durable, node_paths
from mosaic.model.end_proof import LARGEST, is_attested, of_attempt, own_launch
from mosaic.model.errors import BadConfig, MosaicError, NotAllowed
from mosaic.model.failpoints import failpoint
from mosaic.model.run import RunRecord
from mosaic.model.rundir import RunDir, StateRoot
from mosaic.registry.thread import RegistryThread
from mosaic.wire import mosaic_pb2 as pb

LONGEST_NOTE = 500
LONGEST_NAME = 255  # of a node, and of the process that takes a launch
LARGEST_REPORT = 64 << 10  # of a start or an end: both are shown
LONGEST_TEXT = 2_000  # of a report
LARGEST_NUMBER = 1 << 53
LARGEST_FILES = 8 << 20  # together: a gRPC message has a limit
# What a holder writes. A node may send anything, and what is kept here is read by everything that reads local runs.
_STARTED = {"holder_pid": int, "root_pid": int, "root_start_ticks": int, "boot_id": str, "started_at": float}
_STARTED |= {"version": int, "attempt": int, "secret": str, "held_by": str, "node": str, "job": str}
_EXIT = {"exit_code": int, "signal": str, "ended_by": str, "error": str, "unkillable": bool, "proof": str}
_EXIT |= {"stdout_bytes": int, "stderr_bytes": int, "commands_unread": int, "oom_kills": int, "max_rss_kb": int}
_EXIT |= {"version": int, "attempt": int, "secret": str, "ended_at": float, "cpu_s": float}
_NOT_SENT = ("logs", "tensorboard", "checkpoints", "videos")


class Arrivals:
    def __init__(self, root: StateRoot, registry: RegistryThread, runs: LiveRuns) -> None:
        self._root = root
        self._registry = registry
        self._runs = runs
        self._turn = asyncio.Lock()

    async def take(self, request: pb.TakeLaunchRequest) -> pb.TakeLaunchReply:
        """The launch of an attempt, for the first process that asks with its ticket. It may ask again."""
        if not request.taker or max(len(request.taker), len(request.node)) > LONGEST_NAME:
            raise BadConfig("taker", f"must be given, and like the node have at most {LONGEST_NAME} characters.")
        async with self._turn:
            record = await self._registry.do(lambda r: r.get(request.run_id))
            launch = await asyncio.to_thread(self._check, record, request)
            await asyncio.to_thread(_record_taker, self._rundir(record), launch, request)
            failpoint("far.taken")
            # Again: the next attempt may have begun meanwhile, and would not have seen this start.
            await self._refuse_replaced(request)
        self._runs.wake(request.run_id)
        return await asyncio.to_thread(self._reply, record, launch)

    async def report(self, rundir: RunDir, request: pb.ReportRunRequest) -> None:
        """Keep what the holder wrote on the node, until the run is over: then its end is decided."""
        if (await self._registry.do(lambda r: r.get(request.run_id))).state.is_over:
            return
        launch = await asyncio.to_thread(own_launch, rundir)
        if not launch.get("home"):
            raise NotAllowed(f"Run {request.run_id} writes its control files itself.")
        if request.started_json:
            await asyncio.to_thread(_keep_started, rundir, _facts(request.started_json, launch, _STARTED))
        if request.exit_json:
            exit = _facts(request.exit_json, launch, _EXIT)
            await asyncio.to_thread(durable.insist_on_json, rundir.exit, dict(exit))
        self._runs.left_behind(request.run_id, request.left_behind[:LONGEST_NOTE])
        self._runs.wake(request.run_id)

    async def refuse_complete(self, run_id: str) -> None:
        """BadConfig if a run is over and its tailer has said that nothing is left to send."""
        record = await self._registry.do(lambda r: r.get(run_id))
        if record.state.is_over and not record.telemetry:
            raise BadConfig("path", f"Run {run_id} is over, and its files are complete.")

    def _check(self, record: RunRecord, request: pb.TakeLaunchRequest) -> Mapping[str, Any]:
        launch = own_launch(self._rundir(record))
        if record.state.is_over or record.cancel_requested:
            raise NotAllowed(f"Run {record.run_id} is over or being cancelled.")
        if launch.get("attempt") != request.attempt or record.attempt != request.attempt:
            raise NotAllowed(f"Run {record.run_id}: attempt {request.attempt} was replaced.")
        return launch

    async def _refuse_replaced(self, request: pb.TakeLaunchRequest) -> None:
        record = await self._registry.do(lambda r: r.get(request.run_id))
        if record.attempt != request.attempt or record.state.is_over or record.cancel_requested:
            raise NotAllowed(f"Run {record.run_id}: attempt {request.attempt} was replaced or is being cancelled.")

    def _reply(self, record: RunRecord, launch: Mapping[str, Any]) -> pb.TakeLaunchReply:
        rundir, moves = self._rundir(record), self._moves(launch)
        files = [self._root.worker_file(record.run_id), *_prepared(rundir)]
        names = [str(path.relative_to(self._root.path)) for path in files]
        texts = [node_paths.replace_paths(text, moves) for text in _texts_of(files)]
        whole = {key: value for key, value in launch.items() if key not in ("node", "local_tailer_argv")}
        return pb.TakeLaunchReply(
            launch_json=node_paths.replace_paths(json.dumps(whole, ensure_ascii=False), moves),
            files=[pb.NodeFile(path=name, data=text.encode()) for name, text in zip(names, texts, strict=True)],
        )

    def _moves(self, launch: Mapping[str, Any]) -> dict[str, str]:
        """Where the paths in a launch lead on a node."""
        root, node = self._root, launch["node"]
        moves = {
            str(root.trainer): f"{node_paths.ROOT}/trainer",
            str(root.cache): f"{node_paths.ROOT}/cache",
            str(Path(mosaic_sdk.__file__).parent): f"{node_paths.CODE}/mosaic_sdk",
        }
        if node["environments"] == NODE:
            moves[str(root.envs)] = f"{node_paths.ROOT}/envs"
            if node["worker"]:
                moves[node["environment"]] = f"{node_paths.ROOT}/envs/{node['worker']}"
        return moves

    def _rundir(self, record: RunRecord) -> RunDir:
        return self._root.run(record.area, record.run_id)


def _record_taker(rundir: RunDir, launch: Mapping[str, Any], request: pb.TakeLaunchRequest) -> None:
    found = durable.read_json(rundir.started, LARGEST)
    started = of_attempt(found, request.attempt)
    # What cannot be read may be the record of this attempt: it counts as one.
    is_damaged = os.path.lexists(rundir.started) and not isinstance((found or {}).get("attempt"), int)
    if is_damaged or (started and started.get("taker") != request.taker):
        raise NotAllowed(f"Run {rundir.run_id}: attempt {request.attempt} was started by another process.")
    if not started:
        facts = {"version": 1, "attempt": request.attempt, "secret": launch["secret"], "taker": request.taker}
        durable.insist_on_json(rundir.started, {**facts, "node": request.node, "taken_at": time.time()})


def _keep_started(rundir: RunDir, facts: Mapping[str, Any]) -> None:
    taken = of_attempt(durable.read_json(rundir.started, LARGEST), facts["attempt"])
    whole = {**{key: taken[key] for key in ("taker", "taken_at") if key in taken}, **facts}
    if whole != taken:
        durable.insist_on_json(rundir.started, whole)


def _facts(text: str, launch: Mapping[str, Any], kinds: Mapping[str, type]) -> Mapping[str, Any]:
    """What a holder wrote, if it is of this attempt and has its secret: these keys, with values of these types."""
    try:
        facts = json.loads(text) if len(text) <= LARGEST_REPORT else None
    except (ValueError, RecursionError):
        facts = None
    if not isinstance(facts, dict):
        raise BadConfig("report", f"is not a JSON object of at most {LARGEST_REPORT >> 10} KiB.")
    if not of_attempt(facts, launch["attempt"]) or not is_attested(facts, str(launch["secret"])):
        raise NotAllowed("The report does not have the secret of this attempt.")
    known = {key: value for key, value in facts.items() if key in kinds and value is not None}
    for key, value in known.items():
        if not _is_of(kinds[key], value):
            raise BadConfig("report", f"'{key}' is not valid.")
    return {key: value[:LONGEST_TEXT] if isinstance(value, str) else value for key, value in known.items()}


def _is_of(kind: type, value: object) -> bool:
    if kind is float:
        return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < LARGEST_NUMBER
    if kind is int:
        return type(value) is int and abs(value) < LARGEST_NUMBER
    return type(value) is kind


def _prepared(rundir: RunDir) -> list[Path]:
    """What the daemon has written into the run's folder for the worker."""
    found: list[Path] = []
    for folder, folders, names in os.walk(rundir.path):
        if Path(folder) == rundir.path:
            folders[:] = [name for name in folders if name not in _NOT_SENT]
        paths = [Path(folder, name) for name in names]
        found += [path for path in paths if not path.name.startswith(("telemetry.sqlite", "provenance.json"))]
    return [path for path in found if stat.S_ISREG(path.lstat().st_mode)]


def _texts_of(files: list[Path]) -> list[str]:
    """Not more than fits into an answer: the node itself may have sent some of them."""
    texts, left = [], LARGEST_FILES
    for path in files:
        data = durable.read_bytes(path, LARGEST_FILES)
        left -= len(data)
        if left < 0:
            raise MosaicError(f"The files of its run have more than {LARGEST_FILES >> 20} MiB.")
        texts.append(data.decode())
    return texts
