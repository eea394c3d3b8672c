"""One evaluation as the page sees it: its lanes, rebuilt from the run's events, and the commands sent from here."""

from collections import deque
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, Signal

from mosaic.client.evaluation_state import Answer, EvaluationState
from mosaic.present.eval_draft import settings_of
from mosaic.present.lane_desk import LaneDesk

if TYPE_CHECKING:
    from mosaic.client import Run
    from mosaic.gui.context import Context
    from mosaic.gui.hub.connection import RunsChange
    from mosaic.gui.hub.feed import FeedBatch, RunFeed

Command = Mapping[str, Any]


class EvaluationSession(QObject):
    """1. Commands arrive in the order of their keys. 2. It follows the run only between `open` and `rest`."""

    changed = Signal()  # lanes, an answer, or the run: at most once per batch
    ended = Signal()  # the run is over and all its events are here
    failed = Signal(str)

    def __init__(self, context: "Context", run_id: str, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.run_id = run_id
        self.run: Run | None = context.hub.runs.get(run_id)
        self.operators: Mapping[str, Any] = {}  # the script's
        self.has_ended = False
        self._hub = context.hub
        self._feed: RunFeed | None = None
        self._queue: deque[Command] = deque()  # not sent yet; the first one is being sent
        self._sent: dict[int, Command] = {}  # without an answer
        self._forget()
        context.hub.runs_changed.connect(self._take_runs)
        context.hub.ask(lambda client: client.get_run(run_id), self._take_run, self._fail, owner=self)

    @property
    def is_over(self) -> bool:
        # The events may end before the listing says that the run is over.
        return self.has_ended or (self.run is not None and self.run.state.is_over)

    @property
    def is_busy(self) -> bool:
        """Whether a command waits for its answer."""
        return bool(self._queue or self._sent)

    def open(self) -> None:
        """Follow the run from its first event."""
        if self._feed is None:
            self._forget()
            self._feed = feed = self._hub.follow(self.run_id, tail=0, owner=self)
            feed.received.connect(self._receive)
            feed.ended.connect(self._end)
            feed.failed.connect(self.failed)

    def rest(self) -> None:
        if self._feed is not None:
            self._feed.close()
            self._feed = None

    def send(self, commands: Iterable[Command]) -> None:
        for command in commands:
            self._queue.append(command)
            if len(self._queue) == 1:
                self._send_next()
        self.changed.emit()

    def _forget(self) -> None:
        """Begin anew: the events will be read from the first one."""
        before = getattr(self, "desk", None)
        self.has_ended = False
        self.evaluation = EvaluationState()
        self.desk = LaneDesk(self.evaluation, is_manual=False)
        if before is not None:
            self.desk.rate, self.desk.chosen = before.rate, before.chosen

    def _receive(self, batch: "FeedBatch") -> None:
        if batch.missed:
            # A request to a person may be among what was skipped. The store has everything: read it again.
            self.rest()
            self.open()
            return
        self.evaluation.receive(batch.events)
        self.desk.is_manual = self.evaluation.mode == "manual"
        self._settle()
        self.changed.emit()

    def _end(self) -> None:
        self.has_ended = True
        self.changed.emit()
        self.ended.emit()

    def _send_next(self) -> None:
        command = self._queue[0]
        self._hub.ask(
            lambda client: client.command_run(self.run_id, command),
            lambda seq: self._was_sent(command, seq),
            lambda error: self._was_refused(command, error),
            owner=self,
        )

    def _was_sent(self, command: Command, seq: int) -> None:
        self._sent[seq] = command
        self._go_on()

    def _was_refused(self, command: Command, error: Exception) -> None:
        self.desk.hear(command, Answer(0, str(command["cmd"]), False, str(error)))
        self._go_on()

    def _go_on(self) -> None:
        if self._queue:  # it is empty if the run ended before the answer came
            self._queue.popleft()
        self._settle()
        if self._queue:
            self._send_next()
        self.changed.emit()

    def _settle(self) -> None:
        """Match answers with commands. Either may arrive first: they come by two streams."""
        for seq in [seq for seq in self._sent if seq in self.evaluation.answers]:
            self.desk.hear(self._sent.pop(seq), self.evaluation.answers[seq])

    def _take_run(self, run: "Run") -> None:
        self.run = run
        script = settings_of(run.config).get("script")
        operators = script.get("operators") if isinstance(script, Mapping) else None
        self.operators = operators if isinstance(operators, Mapping) else {}
        self.changed.emit()

    def _take_runs(self, change: "RunsChange") -> None:
        mine = next((run for run in change.runs if run.run_id == self.run_id), None)
        if mine is not None:
            self.run = mine
            if mine.state.is_over:
                self._queue.clear()
                self._sent.clear()
            self.changed.emit()

    def _fail(self, error: Exception) -> None:
        self.failed.emit(str(error))
