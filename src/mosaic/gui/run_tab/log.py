"""The log of a run: the end of it first, live, with search; all of it on request."""

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QStackedWidget, QVBoxLayout

from mosaic.gui.run_tab.log_bar import LogBar
from mosaic.gui.run_tab.log_view import LogView
from mosaic.gui.run_tab.section import Section
from mosaic.gui.widgets.empty import EmptyState
from mosaic.gui.widgets.problem import Problem
from mosaic.present.log_lines import MOST_LINES, LogLine, LogLines, matches

if TYPE_CHECKING:
    from mosaic.client import AsyncTrainerClient
    from mosaic.client.events import LogPiece
    from mosaic.gui.context import Context
    from mosaic.gui.hub.feed import FeedBatch, RunFeed
    from mosaic.gui.hub.job import Job
    from mosaic.gui.run_tab.source import RunSource


class LogSection(Section):
    """Follows the log while it is visible. Coming back, it begins with the end of the log again."""

    def __init__(self, context: "Context", source: "RunSource") -> None:
        super().__init__(context, source)
        self._lines = LogLines()
        self._feed: RunFeed | None = None
        self._job: Job | None = None
        self._stream = ""
        self._meanwhile: list[LogPiece] = []
        self._matches: list[int] = []
        self._at = -1
        self.is_whole = False  # everything was asked for, not only the end
        self.view = LogView(context.theme, MOST_LINES)
        self.bar = LogBar(self._go, self.view.follow, self.load_all)
        self.problem = Problem()
        self.empty = EmptyState("Nothing was printed yet", "Telemetry is shown as curves, not here.")
        self.pages = QStackedWidget()
        self._lay_out()
        self._connect()
        self._show_following(True)

    def enter(self) -> None:
        self.view.resume()
        if self.is_whole and self.source.run and self.source.run.state.is_over:
            return  # nothing can be new
        self._begin()

    def leave(self) -> None:
        self.view.pause()
        if self._feed:
            self._feed.close()
            self._feed = None
        if self._job:
            self._job.cancel()
            self._give_up_all()

    def focus_search(self) -> None:
        self.bar.focus_search()

    def load_all(self) -> None:
        """Read the log from its beginning; of a very long one the newest lines are kept."""
        self.is_whole = True
        self._meanwhile.clear()
        self.bar.load_all.setEnabled(False)
        self.bar.count.setText("Reading…")
        self._job = self.context.hub.ask(self._read_all, self._take_all, self._fail, owner=self)

    def _give_up_all(self) -> None:
        """Not everything could be read, so what is shown is the end of the log."""
        self._job = None
        self.is_whole = False
        self.bar.load_all.setEnabled(True)
        self._show_count()

    async def _read_all(self, client: "AsyncTrainerClient") -> LogLines:
        # The hub's thread assembles the lines, so that millions of them do not hold up the window.
        lines = LogLines()
        async for pieces in client.log_batches(self.source.run_id):
            lines.receive(pieces)
        return lines

    def _take_all(self, lines: LogLines) -> None:
        self._job = None
        lines.receive(self._meanwhile)  # what came live while the rest was read
        self._meanwhile.clear()
        self._lines = lines
        self._rebuild()

    def _begin(self) -> None:
        if self._feed is None:
            self._lines = LogLines()
            self.is_whole = False
            self.problem.clear()
            self.bar.load_all.setEnabled(True)
            self._rebuild()
            self._feed = self.context.hub.follow(self.source.run_id, logs=True, events=False, owner=self)
            self._feed.received.connect(self._receive)
            self._feed.ended.connect(self._finish)
            self._feed.failed.connect(lambda why: self._fail(Exception(why)))

    def _receive(self, batch: "FeedBatch") -> None:
        if batch.log:
            if self._job:
                self._meanwhile += batch.log
            self._add(self._lines.receive(batch.log))

    def _finish(self) -> None:
        self._add(self._lines.finish())

    def _add(self, lines: list[LogLine]) -> None:
        shown = [line for line in lines if self._is_shown(line)]
        self.view.add(shown)
        self._show_count()
        if shown and self.bar.search.text():
            self._search()

    def _rebuild(self) -> None:
        self.view.set_lines(line for line in self._lines.kept if self._is_shown(line))
        self.view.follow()
        self._show_count()
        self._search()

    def _is_shown(self, line: LogLine) -> bool:
        if self._stream == "problems":
            return line.is_problem
        return self._stream in ("", line.stream)

    def _choose_stream(self, stream: str) -> None:
        self._stream = stream
        self._rebuild()

    def _show_count(self) -> None:
        kept, dropped = len(self._lines.kept), self._lines.dropped
        words = f"{kept:,} lines" if kept != 1 else "1 line"
        if dropped:
            words = f"the last {kept:,} of {kept + dropped:,} lines"
        elif not self.is_whole and kept:
            words = f"the end of the log: {words}"
        self.bar.count.setText(words)
        self.pages.setCurrentWidget(self.view if kept else self.empty)

    # Search

    def _search(self) -> None:
        """Find the text in what is shown. The line that was chosen stays chosen while it still matches."""
        text = self.bar.search.text()
        self._matches = matches((line.text for line in self.view.shown), text)
        self._at = min(self._at, len(self._matches) - 1)
        if not text:
            self._at = -1
            self.view.clear_mark()
        self._show_found()

    def _start_search(self) -> None:
        self._at = -1
        self._search()
        if self._matches:
            self._go(-1)  # the newest match is the most interesting one

    def _go(self, by: int) -> None:
        self._search()
        if not self._matches:
            return
        self._at = (self._at + by) % len(self._matches) if self._at >= 0 else (-1 if by < 0 else 0) % len(self._matches)
        number = self._matches[self._at]
        self.view.go_to(number)
        self.view.mark(number, self.bar.search.text())
        self._show_found()

    def _show_found(self) -> None:
        text, many = self.bar.search.text(), len(self._matches)
        place = f"{self._at + 1:,} of {many:,}" if self._at >= 0 else f"{many:,} lines" if many != 1 else "1 line"
        self.bar.found.setText("" if not text else place if many else "No match")
        for made in (self.bar.previous, self.bar.next):
            made.setEnabled(bool(many))

    def _show_following(self, is_following: bool) -> None:
        self.bar.follow.setEnabled(not is_following)
        self.bar.follow.setText("Following" if is_following else "↓ Follow")

    def _fail(self, error: Exception) -> None:
        if self._job:
            self._job.cancel()
            self._give_up_all()
        self.problem.show_problem("The log cannot be read.", str(error))

    def _connect(self) -> None:
        self.bar.stream_chosen.connect(self._choose_stream)
        self.bar.searched.connect(self._start_search)
        self.view.follow_changed.connect(self._show_following)
        find = QShortcut(QKeySequence.StandardKey.Find, self, self.focus_search)
        find.setContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
        QShortcut(QKeySequence(Qt.Key.Key_End | Qt.KeyboardModifier.ControlModifier), self, self.view.follow)

    def _lay_out(self) -> None:
        self.pages.addWidget(self.empty)
        self.pages.addWidget(self.view)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(16, 8, 16, 8)
        layout.setSpacing(8)
        layout.addWidget(self.bar)
        layout.addWidget(self.problem)
        layout.addWidget(self.pages, 1)
