"""Keeps the state of `mosaic watch` up to date with the daemon."""

import time
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from mosaic.cli.inbox import Inbox
from mosaic.cli.live_runs import LiveRuns
from mosaic.cli.logs import render
from mosaic.model.errors import MosaicError
from mosaic.model.states import LIVE_STATES
from mosaic.present.folded import name_of_line

if TYPE_CHECKING:
    from mosaic.cli.watch_state import OpenRun, WatchState
    from mosaic.client import AsyncTrainerClient, Run, TrainerClient
    from mosaic.client.events import Curve, LogPiece

NO_DAEMON = "The daemon does not answer; waiting for it. Start it with: mosaic daemon start"
CURVES_EVERY_S = 2.0
CURVE_POINTS = 60
LOG_TAIL_BYTES = 256 * 1024  # of the spool, where telemetry lines are mixed with log lines


class Updater:
    """Updates the state from WatchRuns for all runs, and from streams for the open run."""

    def __init__(self, client: "TrainerClient", inbox: Inbox, state: "WatchState") -> None:
        self._client = client
        self._inbox = inbox
        self._state = state
        self._runs = LiveRuns(inbox)
        self._details: Details | None = None
        state.runs = self._runs.by_id

    def begin(self, rows: int) -> None:
        """Load the first page, live runs first: loading ten thousand runs would take a second."""
        newest = self._client.list_runs(limit=rows)
        live = self._client.list_runs(LIVE_STATES, limit=rows)
        self._runs.receive(replace(newest, runs=(*live.runs, *newest.runs), is_whole=False))
        self._runs.follow()
        self.refresh()

    def refresh(self) -> None:
        """Take over what the daemon has reported, and carry out what the user requested."""
        self._inbox.deliver()
        if self._runs.error:
            raise self._runs.error
        state = self._state
        state.problem = self._problem()
        if state.to_cancel:
            self._cancel()
        if self._runs.changes():
            state.total = self._runs.total
            state.arrange()
        self._refresh_details()

    def _problem(self) -> str:
        if self._runs.problem:
            return NO_DAEMON
        silent_s = self._runs.silent_s
        return (
            f"The daemon has not answered for {silent_s:.0f} s. Find the reason with: mosaic doctor" if silent_s else ""
        )

    def _cancel(self) -> None:
        run_id, self._state.to_cancel = self._state.to_cancel, ""
        experiment = name_of_line(run_id)
        members = [run for run in self._runs.by_id.values() if run.experiment == experiment and not run.state.is_over]
        try:
            self._client.cancel_runs([run.run_id for run in members] if experiment else [run_id])
        except MosaicError as error:
            self._state.note = str(error)

    def _refresh_details(self) -> None:
        open_run = self._state.open_run
        if open_run and self._runs.is_known and open_run.run_id not in self._runs.by_id:
            self._state.note, self._state.open_run = f"Run {open_run.run_id} was deleted.", None
            open_run = None
        if self._details and self._details.open_run is not open_run:
            self._details.close()
            self._details = None
        if open_run and not self._details:
            self._details = Details(self._inbox, open_run)
        if self._details:
            self._details.refresh(self._runs.by_id.get(self._details.open_run.run_id))


class Details:
    """Updates the open run: its log as it is printed, its history and curves when they have changed."""

    def __init__(self, inbox: Inbox, open_run: "OpenRun") -> None:
        self.open_run = open_run
        self._inbox = inbox
        self._cancel_request: Callable[[], None] | None = None
        self._requested_at = 0.0
        self._requested: tuple[object, ...] = ()
        run_id = open_run.run_id
        self._cancel_log = inbox.subscribe(
            lambda inner: inner.log_batches(run_id, True, LOG_TAIL_BYTES), self._receive_log
        )

    def close(self) -> None:
        self._cancel_log()
        if self._cancel_request:
            self._cancel_request()

    def refresh(self, run: "Run | None") -> None:
        """Take over what WatchRuns has reported, and request what it does not report."""
        if run is None:
            return
        self._keep(run)
        self.open_run.add_names(run.summary.last_values)
        wanted = (run.revision, run.summary.events, *self.open_run.visible())
        # Request curves immediately after scrolling, new values of the same curves less often.
        is_due = wanted[2:] != self._requested[2:] or time.monotonic() - self._requested_at > CURVES_EVERY_S
        if wanted != self._requested and is_due and not self._cancel_request:
            self._requested, self._requested_at = wanted, time.monotonic()
            self._cancel_request = self._inbox.subscribe(
                lambda inner: request_details(inner, self.open_run), self._receive
            )

    def _keep(self, run: "Run") -> None:
        before = self.open_run.run
        self.open_run.run = replace(run, history=before.history if before else ())

    def _receive(self, answer: "tuple[Run, list[str], list[Curve]] | MosaicError") -> None:
        if self._cancel_request:
            self._cancel_request()
            self._cancel_request = None
        if isinstance(answer, MosaicError):
            return  # WatchRuns has the same problem and reports it
        self.open_run.run, names, curves = answer
        self.open_run.add_names(names)
        self.open_run.curves |= {curve.name: curve for curve in curves}

    def _receive_log(self, pieces: "list[LogPiece] | MosaicError") -> None:
        if not isinstance(pieces, MosaicError):
            text = b"".join(render(piece) for piece in pieces)
            self.open_run.log.extend(text.decode(errors="replace").splitlines())


async def request_details(
    inner: "AsyncTrainerClient", open_run: "OpenRun"
) -> "AsyncIterator[tuple[Run, list[str], list[Curve]]]":
    """The run with its history, the names of its curves, and the visible curves."""
    run = await inner.get_run(open_run.run_id)
    names = await inner.curve_names(open_run.run_id)
    open_run.add_names(names)
    curves = [await inner.query_curve(open_run.run_id, name, CURVE_POINTS) for name in open_run.visible()]
    yield run, names, curves
