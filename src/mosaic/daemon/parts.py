"""Parts of runs: starts them when the run's worker takes them up, replaces those that end, and ends all with the run.

Each is a run of its own, so all that holds for runs holds for parts (ADR 54). What is asked for is in the run's config,
where its worker takes parts up in its telemetry, which part a run is in that run's config: a daemon that was killed
leaves nothing behind that the next one does not find.
"""

import asyncio
import json
import logging
import re
import time
from collections.abc import Coroutine, Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from mosaic_sdk.names import WorkerEnv

from mosaic.catalog.schema import CHECKPOINT_KEY, Schema, parameters
from mosaic.daemon.auth import Tokens
from mosaic.engines.cluster import LOCAL
from mosaic.model.durable import read_json
from mosaic.model.errors import MosaicError
from mosaic.model.labels import MAX_NAME
from mosaic.model.run import Part, Role, RunConfig, RunRecord
from mosaic.model.states import RunState
from mosaic.submit.config import PART
from mosaic.submit.parts import place_of, resources_of
from mosaic.submit.record import load

if TYPE_CHECKING:
    from mosaic.daemon.trainer import Trainer

log = logging.getLogger(__name__)
SOON_S = 30.0  # a part that ended so soon after its start has failed, and may fail again
DELAYS_S = (0.0, 1.0, 4.0, 15.0, 60.0)  # before a part is replaced, by how often in a row it has failed
MOST_FAILURES = len(DELAYS_S)  # in a row; then it is given up
RETRY_S = 30.0  # after a part could not be submitted
_ADDRESS = re.compile(r"[A-Za-z0-9._-]{1,255}:[0-9]{1,5}")
_NOT_CARRIED = ("config", "worker_id", "commands", "drives")


class Parts:
    """Used only on the daemon's loop. Its promises:

    1. While a run is live and its worker takes up parts, each index of a part has one live run, and never two.
    2. When the run is over, its parts are ended, also by a later daemon.
    3. A part that fails several times in a row is given up, and the history of its run says so.
    """

    def __init__(self, trainer: "Trainer", tokens: Tokens) -> None:
        self._trainer = trainer
        self._tokens = tokens
        self._runs: set[str] = set()  # those that have parts and may be live
        self._roles: dict[str, Role] = {}  # of parts, by their ids
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._tasks: set[asyncio.Task[None]] = set()

    # ---- what others report

    def wanted(self, run_id: str) -> None:
        """The worker of this run says where it takes up its parts."""
        self._runs.add(run_id)
        self._look_at(run_id)

    def after(self, record: RunRecord) -> None:
        """This run has ended: it may have parts, or be one."""
        run_id = record.lineage.parent_run_id if record.lineage.relation == PART else record.run_id
        if run_id in self._runs:
            self._look_at(run_id)

    async def recover(self) -> None:
        """Continue what an earlier daemon left unfinished."""
        for record in await self._trainer.registry.do(lambda r: r.parts(live_only=True)):
            self._runs.add(record.lineage.parent_run_id)
        for record in await self._trainer.registry.do(lambda r: r.started()):
            document = await asyncio.to_thread(read_json, self._trainer.root.config_file(record.run_id)) or {}
            if (document.get("payload") or {}).get("parts"):
                self._runs.add(record.run_id)
        for run_id in self._runs:
            self._look_at(run_id)

    async def variables(self, config: RunConfig) -> dict[str, str]:
        """What the worker of a run with parts, or of a part, finds in its environment."""
        if role := config.role:
            text = json.dumps({"name": role.part, "index": role.index, "count": role.count})
            secret = self._tokens.parts(config.lineage.parent_run_id)
            return {WorkerEnv.PART: text, WorkerEnv.PART_ADDRESS: role.address, WorkerEnv.PARTS_SECRET: secret}
        if not config.parts:
            return {}
        towards = await self._trainer.nodes.towards([config.on, *(place_of(part, config.on) for part in config.parts)])
        asked = [{"name": part.name, "count": part.count} for part in config.parts]
        text = json.dumps({"towards": towards, "parts": asked})
        return {WorkerEnv.PARTS: text, WorkerEnv.PARTS_SECRET: self._tokens.parts(config.run_id)}

    # ---- one run

    def _look_at(self, run_id: str) -> None:
        task = asyncio.create_task(self._guarded(self._look(run_id), run_id))
        self._tasks.add(task)  # the event loop itself keeps only a weak reference
        task.add_done_callback(self._tasks.discard)

    def _look_later(self, run_id: str, delay_s: float) -> None:
        asyncio.get_running_loop().call_later(delay_s, self._look_at, run_id)

    async def _guarded(self, work: Coroutine[Any, Any, None], run_id: str) -> None:
        try:
            await work
        except Exception as error:
            # The edge of a background task: the run continues without that part, and it is tried again.
            is_ours = isinstance(error, MosaicError)
            words = "The parts of run %s are not complete: %s"
            log.warning(words, run_id, error, exc_info=None if is_ours else error, extra={"run_id": run_id})
            self._look_later(run_id, RETRY_S)

    async def _look(self, run_id: str) -> None:
        # One at a time: two looks could both find an index without a run.
        async with self._turns.setdefault(run_id, asyncio.Lock()):
            record = await self._trainer.registry.do(lambda r: r.with_id(run_id))
            if record is None or record.state.is_over:
                await self._end_all(run_id)
            elif not record.cancel_requested:
                await self._fill(record)

    async def _end_all(self, run_id: str) -> None:
        # Not before the run is over: its worker may need them for its last checkpoint.
        for part in await self._parts_of(run_id):
            if not part.state.is_over:
                await self._trainer.cancel(part.run_id, f"its run {run_id} is over")
        self._runs.discard(run_id)

    async def _fill(self, record: RunRecord) -> None:
        """Start a run for each index of each part that has none."""
        address = address_in(await self._trainer.ingest.parts_wanted(self._trainer.rundir(record)))
        if not address:
            return
        config = await asyncio.to_thread(load, self._trainer.root, record.run_id, record.worker_name)
        known = await self._parts_of(record.run_id)
        for run in known:
            if run.run_id not in self._roles and (role := await asyncio.to_thread(self._read_role, run)):
                self._roles[run.run_id] = role
        for part in config.parts:
            for index in range(part.count):
                slot = (part.name, index)
                earlier = [run for run in known if run.run_id in self._roles and self._roles[run.run_id].slot == slot]
                await self._fill_one(record, config, part, index, address, earlier)

    async def _fill_one(
        self,
        record: RunRecord,
        config: RunConfig,
        part: Part,
        index: int,
        address: str,
        earlier: Sequence[RunRecord],
    ) -> None:
        if any(not run.state.is_over for run in earlier):
            return
        failures = await self._failures(earlier)
        if failures >= MOST_FAILURES:
            await self._give_up(record, f"{part.name}-{index}", earlier[-1])
            return
        left_s = earlier[-1].updated_at + DELAYS_S[failures] - time.time() if earlier else 0.0
        if left_s > 0:
            self._look_later(record.run_id, min(left_s, DELAYS_S[-1]))  # the clock may have been set back
            return
        number = 1 + max((self._roles[run.run_id].number for run in earlier), default=0)
        role = Role(part.name, index, part.count, number, address)
        document = await self._document(record, config, part, role)
        why = f"submitted by MOSAIC: {part.name}-{index} of run {record.run_id}"
        why += f", in place of {earlier[-1].run_id}" if earlier else ""
        key = f"part {part.name}-{index} #{number} of {record.run_id}"
        info = await self._trainer.submit(json.dumps(document), key, why)
        log.info("Run %s is %s-%d of run %s.", info.run_id, part.name, index, record.run_id)

    async def _document(self, record: RunRecord, config: RunConfig, part: Part, role: Role) -> dict[str, Any]:
        """The config of a part: the program and the settings of its run, without checkpoints, which may be gone."""
        descriptor = await self._trainer.inspector.descriptor_of(config.worker)
        given = config.raw["metadata"]["worker"]
        worker = {name: value for name, value in given.items() if name not in _NOT_CARRIED}
        worker["config"] = without_checkpoints(config.worker.config, descriptor.schema if descriptor else {})
        name = f"{record.name[: MAX_NAME - 24]} {part.name}-{role.index}"
        metadata = {"run_name": name, "parent_run_id": record.run_id, "relation": PART, "role": vars(role)}
        place = {"on": place_of(part, record.on) or LOCAL, "resources": resources_of(dict(config.raw), part.name)}
        return {"metadata": {**metadata, "worker": worker}, "payload": place}

    async def _failures(self, earlier: Sequence[RunRecord]) -> int:
        """How many of the newest runs of an index ended soon after their start."""
        for count, run in enumerate(reversed(earlier)):
            if count == MOST_FAILURES or not await self._has_failed(run):
                return count
        return len(earlier)

    async def _has_failed(self, run: RunRecord) -> bool:
        history = await self._trainer.registry.do(lambda r: r.history(run.run_id))
        started = next((move.at for move in history if move.new is RunState.HANDSHAKE), run.updated_at)
        return run.updated_at - started < SOON_S

    async def _give_up(self, record: RunRecord, slot: str, last: RunRecord) -> None:
        text = f"{slot} is not started again: it failed {MOST_FAILURES} times in a row. See: mosaic show {last.run_id}"
        history = await self._trainer.registry.do(lambda r: r.history(record.run_id))
        if all(move.reason != text for move in history):
            log.warning("Run %s: %s", record.run_id, text, extra={"run_id": record.run_id})
            await self._trainer.registry.do(lambda r: r.remark(record.run_id, text))

    async def _parts_of(self, run_id: str) -> list[RunRecord]:
        children = await self._trainer.registry.do(lambda r: r.children(run_id))
        return [child for child in children if child.lineage.relation == PART]

    def _read_role(self, run: RunRecord) -> Role | None:
        return load(self._trainer.root, run.run_id, run.worker_name).role


def address_in(payload: bytes) -> str:
    """The address in the payload of a `parts_wanted` line; empty if it has none that could be one."""
    try:
        found = json.loads(payload or b"{}").get("address")
    except (ValueError, AttributeError, RecursionError):
        return ""
    return found if isinstance(found, str) and _ADDRESS.fullmatch(found) else ""


def without_checkpoints(settings: Any, schema: Schema) -> dict[str, Any]:
    """These settings without ids and without those that the schema marks as checkpoints."""
    copy: dict[str, Any] = json.loads(json.dumps(settings))
    marked = [(place, name) for place, name, part in parameters(schema) if part.get(CHECKPOINT_KEY) is True]
    for place, name in (*marked, ((), "run_id"), ((), "worker_id")):
        folder: Any = copy
        for key in place:
            folder = folder.get(key) if isinstance(folder, dict) else None
        if isinstance(folder, dict):
            folder.pop(name, None)
    return copy
