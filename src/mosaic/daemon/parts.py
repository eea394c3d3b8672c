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
from typing import TYPE_CHECKING, Any, NamedTuple

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
from mosaic.submit.section import Section

if TYPE_CHECKING:
    from mosaic.daemon.trainer import Trainer

log = logging.getLogger(__name__)
SOON_S = 30.0  # a part that ended so soon after its start has failed, and may fail again
DELAYS_S = (0.0, 1.0, 4.0, 15.0, 60.0)  # before a part is replaced, by how often in a row it has failed
MOST_FAILURES = len(DELAYS_S)  # in a row; then it is given up
MOST_RUNS = 1000  # of one index, however they ended: each is a row of the registry and a folder
RETRY_S = 30.0  # after a part could not be submitted
AGAIN_S = 0.1  # after a report that came while a run is being looked at
_KEY = re.compile(r"part (?P<name>.+)-(?P<index>[0-9]{1,9}) #(?P<number>[0-9]{1,10}) of .*")  # see key_of
_ADDRESS = re.compile(r"[A-Za-z0-9._-]{1,255}:[0-9]{1,5}")
LARGEST_PAYLOAD = 4096  # bytes of a `parts_wanted` line; it is parsed on the daemon's loop
_NOT_CARRIED = ("config", "worker_id", "commands", "drives")


class Known(NamedTuple):
    """A part that was submitted: the number counts the runs of its index."""

    run: RunRecord
    slot: tuple[str, int]
    number: int

    @property
    def may_live(self) -> bool:
        return bool(self.run.damage) or not self.run.state.is_over


class Parts:
    """Used only on the daemon's loop. Its promises:

    1. While a run is live and its worker takes up parts, each index of a part has one live run, and never two.
    2. When the run is over, its parts are ended, also by a later daemon.
    3. A part that fails several times in a row, or that has had MOST_RUNS runs, is given up, and the history of its
       run says so.
    """

    def __init__(self, trainer: "Trainer", tokens: Tokens) -> None:
        self._trainer = trainer
        self._tokens = tokens
        self._runs: set[str] = set()  # those that have parts and may be live
        # Of each run at most one look is planned and one under way, however much is reported about it.
        self._planned: dict[str, asyncio.TimerHandle] = {}
        self._looking: dict[str, asyncio.Task[None]] = {}

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
        parts = await self._trainer.registry.do(lambda r: r.parts(live_only=True))
        started = await self._trainer.registry.do(lambda r: r.started())
        self._runs |= {record.lineage.parent_run_id for record in parts if not record.damage}
        self._runs |= {record.run_id for record in started if await asyncio.to_thread(self._may_have_parts, record)}
        for run_id in self._runs:
            self._look_at(run_id)

    def _may_have_parts(self, record: RunRecord) -> bool:
        try:
            document = read_json(self._trainer.root.config_file(record.run_id)) or {}
            return bool(Section(document, "").section("payload").values.get("parts"))
        except (OSError, MosaicError):
            return True  # a look will tell

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

    def _look_at(self, run_id: str, delay_s: float = 0.0) -> None:
        """Look at a run after this time, or earlier if that is planned already."""
        loop = asyncio.get_running_loop()
        planned = self._planned.get(run_id)
        if planned and planned.when() <= loop.time() + delay_s:
            return
        if planned:
            planned.cancel()
        self._planned[run_id] = loop.call_later(delay_s, self._begin, run_id)

    def _begin(self, run_id: str) -> None:
        del self._planned[run_id]
        # One at a time: two looks could both find an index without a run.
        if run_id in self._looking:
            self._look_at(run_id, AGAIN_S)
            return
        task = self._looking[run_id] = asyncio.create_task(self._guarded(self._look(run_id), run_id))
        task.add_done_callback(lambda _: self._looking.pop(run_id))

    async def _guarded(self, work: Coroutine[Any, Any, None], run_id: str) -> None:
        try:
            await work
        except Exception as error:
            # The edge of a background task: the run continues without that part, and it is tried again.
            is_ours = isinstance(error, MosaicError)
            words = "The parts of run %s are not complete: %s"
            log.warning(words, run_id, error, exc_info=None if is_ours else error, extra={"run_id": run_id})
            self._look_at(run_id, RETRY_S)

    async def _look(self, run_id: str) -> None:
        record = await self._trainer.registry.do(lambda r: r.with_id(run_id))
        if record is None or (record.state.is_over and not record.damage):
            await self._end_all(run_id)
        elif not record.cancel_requested and not record.damage:
            await self._fill(record)

    async def _end_all(self, run_id: str) -> None:
        # Not before the run is over: its worker may need them for its last checkpoint.
        for part, _ in await self._trainer.registry.do(lambda r: r.parts_of(run_id)):
            if not part.state.is_over and not part.damage:
                await self._trainer.cancel(part.run_id, f"its run {run_id} is over")
        self._runs.discard(run_id)

    async def _fill(self, record: RunRecord) -> None:
        """Start a run for each index of each part that has none."""
        address = address_in(await self._trainer.ingest.parts_wanted(self._trainer.rundir(record)))
        if not address:
            return
        config = await asyncio.to_thread(load, self._trainer.root, record.run_id, record.worker_name)
        known, problem = await self._known(record.run_id), None
        for part in config.parts:
            for index in range(part.count):
                earlier = [one for one in known if one.slot == (part.name, index)]
                try:
                    await self._fill_one(record, config, part, index, address, earlier)
                except MosaicError as error:
                    # The others are started all the same: perhaps only the cluster of this part is not there.
                    problem = problem or error
        if problem:
            raise problem

    async def _known(self, run_id: str) -> list[Known]:
        found = await self._trainer.registry.do(lambda r: r.parts_of(run_id))
        return [await asyncio.to_thread(self._identified, run, key) for run, key in found]

    def _identified(self, run: RunRecord, key: str) -> Known:
        """Which part a run is: its key says so, or its config if its row was restored without a key."""
        if match := _KEY.fullmatch(key):
            return Known(run, (match["name"], int(match["index"])), int(match["number"]))
        try:
            role = load(self._trainer.root, run.run_id, run.worker_name).role
        except MosaicError:
            role = None
        if role:
            return Known(run, role.slot, role.number)
        if run.state.is_over and not run.damage:
            return Known(run, ("", 0), 0)
        raise MosaicError(f"It is not known which part run {run.run_id} is. Cancel it to have it replaced.")

    async def _fill_one(
        self,
        record: RunRecord,
        config: RunConfig,
        part: Part,
        index: int,
        address: str,
        earlier: Sequence[Known],
    ) -> None:
        if any(one.may_live for one in earlier):
            return
        runs = [one.run for one in earlier]
        number = 1 + max((one.number for one in earlier), default=0)
        if number > MOST_RUNS:
            await self._give_up(record, f"{part.name}-{index}", f"it has had {MOST_RUNS} runs", runs[-1])
            return
        failures = await self._failures(runs)
        if failures >= MOST_FAILURES:
            await self._give_up(record, f"{part.name}-{index}", f"it failed {MOST_FAILURES} times in a row", runs[-1])
            return
        left_s = runs[-1].updated_at + DELAYS_S[failures] - time.time() if runs else 0.0
        if left_s > 0:
            self._look_at(record.run_id, min(left_s, DELAYS_S[-1]))  # the clock may have been set back
            return
        role = Role(part.name, index, part.count, number, address)
        document = await self._document(record, config, part, role)
        why = f"submitted by MOSAIC: {part.name}-{index} of run {record.run_id}"
        why += f", in place of {runs[-1].run_id}" if runs else ""
        info = await self._trainer.submit(json.dumps(document), key_of(record.run_id, role), why)
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

    async def _give_up(self, record: RunRecord, slot: str, why: str, last: RunRecord) -> None:
        text = f"{slot} is not started again: {why}. See: mosaic show {last.run_id}"
        history = await self._trainer.registry.do(lambda r: r.history(record.run_id))
        if all(move.reason != text for move in history):
            log.warning("Run %s: %s", record.run_id, text, extra={"run_id": record.run_id})
            await self._trainer.registry.do(lambda r: r.remark(record.run_id, text))


def key_of(run_id: str, role: Role) -> str:
    """The idempotency key of a part, from which it is also known which one it is."""
    return f"part {role.part}-{role.index} #{role.number} of {run_id}"


def address_in(payload: bytes) -> str:
    """The address in the payload of a `parts_wanted` line; empty if it has none that could be one."""
    if len(payload) > LARGEST_PAYLOAD:
        return ""
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
