"""Commands for live runs: accepts each once, in one order per run, and answers when it is durable."""

import asyncio
import os
from weakref import WeakValueDictionary

from mosaic.daemon.command_log import Command, CommandLog, read_command
from mosaic.model.durable import read_json
from mosaic.model.end_proof import has_ended, of_attempt
from mosaic.model.errors import NoCommands, RunIsOver
from mosaic.model.run import RunRecord
from mosaic.model.rundir import RunDir, StateRoot
from mosaic.registry.thread import RegistryThread
from mosaic.submit.record import load

MOST_LOGS = 32  # kept in memory; any other is read again when it is needed


class Commands:
    """Used on the daemon's loop; files are read and written in threads, one call at a time for each run."""

    def __init__(self, root: StateRoot, registry: RegistryThread) -> None:
        self._root = root
        self._registry = registry
        self._logs: dict[str, CommandLog] = {}
        self._adding: set[asyncio.Future[tuple[int, bool]]] = set()
        # A lock disappears when it is neither held nor awaited.
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def send(self, reference: str, command_id: str, text: str) -> tuple[int, bool]:
        """The number of the command, and whether an earlier call added it."""
        record = await self._registry.do(lambda r: r.find(reference))
        adding = asyncio.ensure_future(self._add(record, read_command(command_id, text)))
        self._adding.add(adding)  # the event loop itself keeps only a weak reference
        adding.add_done_callback(self._adding.discard)
        # Shielded: a client that goes away must not free the turn while a thread still writes to the file.
        return await asyncio.shield(adding)

    async def _add(self, record: RunRecord, command: Command) -> tuple[int, bool]:
        async with self._turns.setdefault(record.run_id, asyncio.Lock()):
            log = await self._log(record)
            # Only a new command is refused: the answer to a repeated call must not depend on how far the run is by now.
            return await asyncio.to_thread(log.add, command, lambda: self._refuse_over(record))

    def forget(self, run_id: str) -> None:
        self._logs.pop(run_id, None)

    async def _log(self, record: RunRecord) -> CommandLog:
        log = self._logs.pop(record.run_id, None)
        if log is None:
            log = await asyncio.to_thread(self._open, record)
        while len(self._logs) >= MOST_LOGS:
            del self._logs[next(iter(self._logs))]  # the one that was not used for the longest time
        self._logs[record.run_id] = log
        return log

    def _open(self, record: RunRecord) -> CommandLog:
        if not load(self._root, record.run_id).worker.commands:
            raise NoCommands(
                record.run_id,
                "does not take commands: its worker reads none from stdin (metadata.worker.commands is not true).",
            )
        return CommandLog(self._rundir(record).commands, record.run_id)

    def _refuse_over(self, record: RunRecord) -> None:
        if record.state.is_over:
            raise RunIsOver(record.run_id, str(record.state))
        if self._has_ended(record):
            raise RunIsOver(record.run_id, "ending")  # its worker is gone; the last output is being stored

    def _has_ended(self, record: RunRecord) -> bool:
        """Whether exit.json proves it: anything else may lie there while the worker waits for commands."""
        rundir = self._rundir(record)
        if not os.path.lexists(rundir.exit):
            return False
        return has_ended(rundir, of_attempt(read_json(rundir.launch), record.attempt) or {"attempt": record.attempt})

    def _rundir(self, record: RunRecord) -> RunDir:
        return self._root.run(record.area, record.run_id)
