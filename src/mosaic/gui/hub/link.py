"""The link to the daemon, in the hub's thread: connects, keeps trying for ever, watches the runs, asks for health."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import aclosing, suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from mosaic import __version__
from mosaic.gui.hub.connection import Connection, RunsChange
from mosaic.model.errors import MosaicError, NoDaemon

if TYPE_CHECKING:
    from mosaic.client import AsyncTrainerClient
    from mosaic.wire import mosaic_pb2 as pb

log = logging.getLogger(__name__)

Connect = Callable[[], Awaitable["AsyncTrainerClient"]]

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 30.0  # between two attempts to connect: each may start a daemon that fails
HEALTH_EVERY_S = 2.0
HEALTH_WITHIN_S = 5.0
CLIENT_WITHIN_S = 30.0  # how long a call waits for the connection
CLOSE_WITHIN_S = 0.5
WATCH_MS = 250


class Link:
    """1. It never gives up. 2. Every change of runs or connection is reported, in order, by `report`."""

    def __init__(
        self, connect: Connect, report: Callable[[RunsChange | Connection], None], explain: Callable[[str], str] = str
    ) -> None:
        self._connect = connect
        self._explain = explain
        self._report = report
        self._connection = Connection()
        self._watch_problem = ""
        self._health_problem = ""
        self._has_runs = False
        self._client: AsyncTrainerClient | None = None
        self._is_there = asyncio.Event()

    async def client(self) -> "AsyncTrainerClient":
        """The connected client; NoDaemon if there is none for a long time."""
        try:
            await asyncio.wait_for(self._is_there.wait(), CLIENT_WITHIN_S)
        except TimeoutError:
            problem = self._connection.problem or "There is no connection to the daemon yet."
            raise NoDaemon(problem) from None
        assert self._client is not None
        return self._client

    async def keep(self) -> None:
        """Keep the connection until this is cancelled."""
        pause_s = FIRST_PAUSE_S
        while True:
            try:
                self._enter(await self._connect())
                pause_s = FIRST_PAUSE_S
                await self._watch()
            except MosaicError as error:
                self._lose(str(error))
            except Exception as error:  # the edge of the thread: the window says it and goes on
                log.exception("The connection to the daemon failed")
                self._lose(f"The connection to the daemon failed: {error}")
            await self._leave()
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    async def close(self) -> None:
        await self._leave()

    def _enter(self, client: "AsyncTrainerClient") -> None:
        client.patience_s = None
        self._client = client
        self._is_there.set()

    async def _leave(self) -> None:
        client, self._client = self._client, None
        self._is_there.clear()
        if client:
            with suppress(TimeoutError):
                await asyncio.wait_for(client.close(), CLOSE_WITHIN_S)

    async def _watch(self) -> None:
        """Watch runs and health, until the daemon refuses us."""
        health = asyncio.create_task(self._watch_health())
        try:
            await self._watch_runs()
        finally:
            health.cancel()

    async def _watch_runs(self) -> None:
        assert self._client is not None
        async with aclosing(self._client.watch_runs(interval_ms=WATCH_MS)) as changes:
            async for change in changes:
                self._watch_problem = change.problem
                if not change.problem:
                    self._health_problem = ""  # a daemon that sends this answers; do not wait for the next question
                news = RunsChange(change.runs, change.deleted, change.is_whole)
                if news and not change.problem:
                    self._has_runs = True
                    self._report(news)
                self._tell()

    async def _watch_health(self) -> None:
        assert self._client is not None
        while True:
            try:
                health = await asyncio.wait_for(self._client.health(), HEALTH_WITHIN_S)
            except TimeoutError:
                self._health_problem = f"The daemon has not answered for {HEALTH_WITHIN_S:.0f} s."
            except MosaicError as error:
                self._health_problem = str(error)
            else:
                self._health_problem = ""
                self._connection = replace(self._connection, health=health, warning=_warning(health))
            self._tell()
            await asyncio.sleep(HEALTH_EVERY_S)

    def _tell(self) -> None:
        problem = self._watch_problem or self._health_problem
        # Without the list of runs an empty window would say that there are none.
        state = "lost" if problem else "ok" if self._has_runs else self._connection.state
        problem = self._explain(problem) if problem else ""
        self._change(replace(self._connection, state=state, problem=problem))

    def _lose(self, problem: str) -> None:
        self._watch_problem = self._health_problem = ""
        self._has_runs = False
        self._change(replace(self._connection, state="lost", problem=problem))

    def _change(self, connection: Connection) -> None:
        self._connection = connection
        self._report(connection)


def _warning(health: "pb.Health") -> str:
    if health.version == __version__:
        return ""
    return (
        f"The daemon is MOSAIC {health.version}, this window is {__version__}. "
        "Restart it; runs continue meanwhile: mosaic daemon stop && mosaic daemon start"
    )
