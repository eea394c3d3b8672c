"""Keeps what `mosaic watch` shows up to date with what the daemon says."""

import time
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from mosaic.cli.feed import Feed, Runs
from mosaic.cli.logs import render
from mosaic.model.errors import MosaicError
from mosaic.model.states import LIVE_STATES

if TYPE_CHECKING:
    from mosaic.cli.scene import CloseUp, Scene
    from mosaic.client import AsyncTrainerClient, Run, TrainerClient
    from mosaic.client.events import Curve, LogPiece

NO_DAEMON = "No daemon answers; waiting for one. Start it with: mosaic daemon start"
CURVES_EVERY_S = 2.0
CURVE_POINTS = 60
LOG_TAIL_BYTES = 256 * 1024  # of the spool, where telemetry lines lie between the log lines


class View:
    """Keeps the scene up to date: WatchRuns for all runs, streams for the one that is open."""

    def __init__(self, client: "TrainerClient", feed: Feed, scene: "Scene") -> None:
        self._client = client
        self._feed = feed
        self._scene = scene
        self._runs = Runs(feed)
        self._details: Details | None = None
        scene.runs = self._runs.by_id

    def begin(self, rows: int) -> None:
        """The first screenful, live runs first: all of ten thousand would take a second."""
        newest = self._client.list_runs(limit=rows)
        live = self._client.list_runs(LIVE_STATES, limit=rows)
        self._runs.hear(replace(newest, runs=(*live.runs, *newest.runs), is_whole=False))
        self._runs.follow()
        self.refresh()

    def refresh(self) -> None:
        """Take what the daemon said and do what was asked for."""
        self._feed.take()
        if self._runs.error:
            raise self._runs.error
        scene = self._scene
        scene.trouble = self._trouble()
        if scene.to_cancel:
            self._cancel()
        if changed := self._runs.changes():
            scene.total = self._runs.total
            scene.arrange()
        self._refresh_details(changed)

    def _trouble(self) -> str:
        if self._runs.trouble:
            return NO_DAEMON
        silent_s = self._runs.silent_s
        return f"The daemon has not answered for {silent_s:.0f} s. See: mosaic doctor" if silent_s else ""

    def _cancel(self) -> None:
        run_id, self._scene.to_cancel = self._scene.to_cancel, ""
        try:
            self._client.cancel_run(run_id)
        except MosaicError as error:
            self._scene.note = str(error)

    def _refresh_details(self, changed: set[str]) -> None:
        close_up = self._scene.close_up
        if close_up and self._runs.is_known and close_up.run_id not in self._runs.by_id:
            self._scene.note, self._scene.close_up = f"Run {close_up.run_id} was deleted.", None
            close_up = None
        if self._details and self._details.close_up is not close_up:
            self._details.close()
            self._details = None
        if close_up and not self._details:
            self._details = Details(self._feed, close_up)
        if self._details:
            self._details.refresh(self._runs.by_id.get(self._details.close_up.run_id))


class Details:
    """Streams of the run that is open: its log as it is printed; history and curves when they have changed."""

    def __init__(self, feed: Feed, close_up: "CloseUp") -> None:
        self.close_up = close_up
        self._feed = feed
        self._asking: Callable[[], None] | None = None
        self._asked_at = 0.0
        self._asked: tuple[object, ...] = ()
        run_id = close_up.run_id
        self._log = feed.listen(lambda inner: inner.log_batches(run_id, True, LOG_TAIL_BYTES), self._hear_log)

    def close(self) -> None:
        self._log()
        if self._asking:
            self._asking()

    def refresh(self, run: "Run | None") -> None:
        """What WatchRuns said goes in at once; what it does not say is asked for."""
        if run is None:
            return
        self._keep(run)
        self.close_up.know(run.summary.last_values)
        wanted = (run.revision, run.summary.events, *self.close_up.visible())
        # Another part of the list is asked for at once, new values now and then.
        is_due = wanted[2:] != self._asked[2:] or time.monotonic() - self._asked_at > CURVES_EVERY_S
        if wanted != self._asked and is_due and not self._asking:
            self._asked, self._asked_at = wanted, time.monotonic()
            self._asking = self._feed.listen(lambda inner: ask(inner, self.close_up), self._hear)

    def _keep(self, run: "Run") -> None:
        before = self.close_up.run
        self.close_up.run = replace(run, history=before.history if before else ())

    def _hear(self, told: "tuple[Run, list[str], list[Curve]] | MosaicError") -> None:
        if self._asking:
            self._asking()
            self._asking = None
        if isinstance(told, MosaicError):
            return  # WatchRuns has the same trouble and says it
        self.close_up.run, names, curves = told
        self.close_up.know(names)
        self.close_up.curves |= {curve.name: curve for curve in curves}

    def _hear_log(self, told: "list[LogPiece] | MosaicError") -> None:
        if not isinstance(told, MosaicError):
            text = b"".join(render(piece) for piece in told)
            self.close_up.log.extend(text.decode(errors="replace").splitlines())


async def ask(inner: "AsyncTrainerClient", close_up: "CloseUp") -> "AsyncIterator[tuple[Run, list[str], list[Curve]]]":
    """The run with its history, the names of its curves, and those that are seen."""
    run = await inner.get_run(close_up.run_id)
    names = await inner.curve_names(close_up.run_id)
    close_up.know(names)
    curves = [await inner.query_curve(close_up.run_id, name, CURVE_POINTS) for name in close_up.visible()]
    yield run, names, curves
