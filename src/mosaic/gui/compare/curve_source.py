"""The curves of the compared runs: read when a chart needs them, kept current while the page is visible."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from mosaic.present.curves import CurveStore

if TYPE_CHECKING:
    from mosaic.client.events import Curve
    from mosaic.gui.hub.feed import FeedBatch, RunFeed
    from mosaic.gui.hub.hub import TelemetryAsyncHub

POINTS = 2000


class CurveSource(QObject):
    """Only curves of chosen metrics are queried. A run that is over is read once and not followed."""

    changed = Signal(str)  # the name of a metric whose curves have changed
    names_changed = Signal()
    failed = Signal(str, str)  # run id, why its curves cannot be read

    def __init__(self, hub: "TelemetryAsyncHub", parent: QObject) -> None:
        super().__init__(parent)
        self._hub = hub
        self.store = CurveStore()
        self.names: dict[str, list[str]] = {}  # by run id; absent: not known yet
        self._feeds: dict[str, RunFeed] = {}
        self._wanted: dict[str, None] = {}  # names of metrics, in order
        self._asked: set[tuple[str, str]] = set()  # (run id, metric) of queries without an answer; "": the names

    def show(self, run_ids: Sequence[str], names: Sequence[str]) -> None:
        """Have the curves of these metrics of these runs, and follow those that are live."""
        for run_id in [each for each in self._feeds if each not in run_ids]:
            self._feeds.pop(run_id).close()
        self._wanted = dict.fromkeys(names)
        for run_id in run_ids:
            self._ask_names(run_id)
            self._follow(run_id)
            for name in names:
                if self.store.open(run_id, name):
                    self._query(run_id, name)

    def pause(self) -> None:
        """Follow nothing; what was read stays."""
        for feed in self._feeds.values():
            feed.close()
        self._feeds.clear()

    def resume(self, run_ids: Sequence[str], names: Sequence[str]) -> None:
        """After a pause: what arrived meanwhile is read from the daemon."""
        self.show(run_ids, names)
        for run_id in run_ids:
            for name in names:
                self._query(run_id, name)

    def forget(self, run_id: str) -> None:
        if feed := self._feeds.pop(run_id, None):
            feed.close()
        self.store.close(run_id)
        self.names.pop(run_id, None)

    def zoom(self, run_ids: Sequence[str], name: str, axis: str, left: float, right: float) -> None:
        """Read this range in detail."""
        for run_id in run_ids:
            if run_id in self._hub.runs:
                self._query_range(run_id, name, *self.store.detail_range(run_id, name, axis, left, right))

    def unzoom(self, run_ids: Sequence[str], name: str) -> None:
        for run_id in run_ids:
            self.store.show_detail(run_id, name, None)
        self.changed.emit(name)

    def _ask_names(self, run_id: str) -> None:
        if run_id not in self.names and self._may_ask(run_id, ""):
            self._hub.ask(
                lambda client: client.curve_names(run_id),
                partial(self._take_names, run_id),
                partial(self._fail, run_id, ""),
                owner=self,
            )

    def _may_ask(self, run_id: str, name: str) -> bool:
        """Whether the run is there and the same question is not already on its way."""
        if run_id not in self._hub.runs or (run_id, name) in self._asked:
            return False
        self._asked.add((run_id, name))
        return True

    def _take_names(self, run_id: str, names: list[str]) -> None:
        self._asked.discard((run_id, ""))
        run = self._hub.runs.get(run_id)
        # A run without values yet is asked again when its first ones arrive.
        if names or (run and run.state.is_over):
            self.names[run_id] = names
            self.names_changed.emit()

    def _query(self, run_id: str, name: str) -> None:
        if self._may_ask(run_id, name):
            self._hub.ask(
                lambda client: client.query_curve(run_id, name, POINTS),
                partial(self._take, run_id),
                partial(self._fail, run_id, name),
                owner=self,
            )

    def _query_range(self, run_id: str, name: str, first: int, last: int) -> None:
        self._hub.ask(
            lambda client: client.query_curve(run_id, name, POINTS, to_step=last, from_step=first),
            partial(self._take_detail, run_id),
            owner=self,  # no `failed`: the coarser curve stays
        )

    def _take(self, run_id: str, curve: "Curve") -> None:
        self._asked.discard((run_id, curve.name))
        self.store.load(run_id, curve)
        self.changed.emit(curve.name)

    def _take_detail(self, run_id: str, curve: "Curve") -> None:
        self.store.show_detail(run_id, curve.name, curve)
        self.changed.emit(curve.name)

    def _follow(self, run_id: str) -> None:
        run = self._hub.runs.get(run_id)
        if run is None or run.state.is_over or run_id in self._feeds:
            return
        # The feed begins before the history is queried, so that together they have everything.
        feed = self._feeds[run_id] = self._hub.follow(run_id, tail=1, owner=self)
        feed.received.connect(partial(self._receive, run_id))

    def _receive(self, run_id: str, batch: "FeedBatch") -> None:
        if batch.missed or batch.renumbered:
            for name in self._wanted:
                self._query(run_id, name)
        if run_id not in self.names and batch.events:
            self._ask_names(run_id)
        for name in self.store.add(run_id, batch.events):
            self.changed.emit(name)

    def _fail(self, run_id: str, name: str, error: Exception) -> None:
        """It is asked again when the listing of runs changes."""
        self._asked.discard((run_id, name))
        self.failed.emit(run_id, str(error))
