"""One evaluation: its lanes while it plays, its results when it is over."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QHideEvent, QKeyEvent, QShowEvent
from PySide6.QtWidgets import QAbstractSpinBox, QComboBox, QLineEdit, QVBoxLayout, QWidget

from mosaic.gui.operators.evaluation_head import EvaluationHead
from mosaic.gui.operators.key_names import key_name
from mosaic.gui.operators.lane_card import LaneWidget
from mosaic.gui.operators.lane_grid import LaneGrid
from mosaic.gui.operators.question_box import QuestionBox
from mosaic.gui.operators.results_view import ResultsView
from mosaic.gui.operators.session import EvaluationSession
from mosaic.gui.operators.text_table import TextTable
from mosaic.gui.operators.transport_bar import TransportBar
from mosaic.gui.widgets.confirm import ask_to_confirm
from mosaic.gui.widgets.labels import label
from mosaic.gui.widgets.problem import Problem
from mosaic.present.eval_tables import live_table
from mosaic.present.lane_cards import card_of
from mosaic.present.run_cells import name_of
from mosaic.present.states import explain

if TYPE_CHECKING:
    from mosaic.client.lanes import ActionRequest
    from mosaic.gui.context import Context

FIELDS = (QLineEdit, QComboBox, QAbstractSpinBox)  # keys stay in them
FINISH = "Finish the evaluation? The results are written and it cannot be continued."


class EvaluationView(QWidget):
    """1. Keys go to the lane that asks, then to the transport bar, unless a text field has the focus.
    2. A lane that fails does not stop the others. 3. Hidden, it does not follow the run."""

    def __init__(self, context: "Context", run_id: str) -> None:
        super().__init__()
        self.setObjectName("operators.evaluation")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.session = EvaluationSession(context, run_id, self)
        self._context = context
        self._asked_before: int | None = None
        self._head = EvaluationHead(context, run_id)
        self._status = label("", "muted", wrap=True, name="operators.status")
        self._problem = Problem()
        self.grid = LaneGrid()
        self._table = TextTable("operators.means", "Lanes and their means so far")
        self.question = QuestionBox(self._act)
        self.bar = TransportBar(context.theme)
        self.results = ResultsView(context)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(16, 12, 16, 12)
        layout.setSpacing(8)
        for widget, stretch in (
            (self._head, 0),
            (self._problem, 0),
            (self._status, 0),
            (self.grid, 1),
            (self._table, 0),
            (self.question, 0),
            (self.bar, 0),
            (self.results, 1),
        ):
            layout.addWidget(widget, stretch)
        self._connect()
        self.refresh()

    def _connect(self) -> None:
        self.session.changed.connect(self.refresh)
        self.session.ended.connect(self._end)
        self.session.failed.connect(self._problem.show_problem)
        # Not by a lambda: it would go on calling this view after another evaluation has replaced it.
        self._context.hub.connection_changed.connect(self._follow_connection)
        bar, session = self.bar, self.session  # the desk is another one after `open`
        bar.stepped.connect(lambda: self._do(session.desk.step()))
        bar.played.connect(lambda: self._do(session.desk.play_or_pause()))
        bar.went_on.connect(lambda: self._do(session.desk.next()))
        bar.reset.connect(self._reset)
        bar.rate_chosen.connect(lambda rate: self._do(session.desk.change_rate(rate)))
        bar.finished.connect(self._ask_to_finish)
        bar.text_preferred.connect(self._prefer_text)
        for control in (self.grid, self.bar, *self.bar.findChildren(QWidget), self._table):
            if not isinstance(control, FIELDS):
                control.installEventFilter(self)

    # ---- drawing

    def refresh(self) -> None:
        session = self.session
        is_over = session.is_over
        self._head.show_evaluation(session)
        lanes = session.evaluation.lanes
        if len(lanes) != len(self.grid.cards):
            self._make_cards(len(lanes))
        has_people = any(spec.get("kind") == "human" for spec in session.operators.values() if isinstance(spec, dict))
        self.grid.setVisible(bool(lanes) and not is_over)
        self.bar.setVisible(bool(lanes) and not is_over and (session.desk.is_manual or has_people))
        self.question.setVisible(bool(lanes) and not is_over and has_people)
        self._table.setVisible(bool(lanes) and not is_over and not session.desk.is_manual)
        self.results.setVisible(is_over)
        self._status.setText("" if lanes or session.run is None else explain(session.run))
        self._status.setVisible(bool(self._status.text()) and not is_over)
        if not is_over:
            self._draw_lanes()

    def _follow_connection(self, _: object) -> None:
        self.refresh()

    def _draw_lanes(self) -> None:
        session, desk = self.session, self.session.desk
        request = desk.request
        operators = self._with_names(session.operators)
        for card, lane in zip(self.grid.cards, session.evaluation.lanes, strict=False):
            is_asked = request is not None and request.lane == lane.index
            shown = card_of(lane, session.evaluation, operators)
            card.show_lane(shown, lane, is_asked, desk.chosen == lane.index)
        if self._table.isVisible():
            self._table.show_table(live_table(session.evaluation))
        self.bar.show_desk(desk, self._words(), self._context.hub.connection.state == "ok")
        self.question.show_request(request, session.evaluation.lanes)
        self._follow_question(request)

    def _words(self) -> str:
        if self._context.hub.connection.state != "ok":
            return "Reconnecting to the daemon… The lanes wait; commands are sent when it answers."
        return "Waiting for the answer to the last command…" if self.session.is_busy and not self._is_asked else ""

    @property
    def _is_asked(self) -> bool:
        return self.session.desk.request is not None

    def _with_names(self, operators: Mapping[str, Any]) -> dict[str, Any]:
        """The runs by the names that people gave them, where they are known."""
        runs = self._context.hub.runs
        return {
            name: {**spec, "run": name_of(runs[spec["run"]])}
            if isinstance(spec, Mapping) and spec.get("run") in runs
            else spec
            for name, spec in operators.items()
        }

    def _follow_question(self, request: "ActionRequest | None") -> None:
        """Bring the lane that asks into view, and the keyboard to it, once."""
        lane = None if request is None else request.lane
        if lane is not None and lane != self._asked_before:
            self.grid.show_lane(lane)
            if self.isVisible() and not isinstance(self.window().focusWidget(), FIELDS):
                self.setFocus()
        self._asked_before = lane

    def _make_cards(self, count: int) -> None:
        cards = [LaneWidget(self._context, self.session.run_id, lane) for lane in range(count)]
        for card in cards:
            card.chosen.connect(self._choose)
            for inside in card.findChildren(QWidget):
                if not isinstance(inside, FIELDS):
                    inside.installEventFilter(self)
        self.grid.set_cards(cards)

    # ---- what the user does

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if not self._take_key(event):
            super().keyPressEvent(event)

    def event(self, event: QEvent) -> bool:
        if event.type() is QEvent.Type.ShortcutOverride and self._wants(event):
            event.accept()  # the key of an action must not start something else in the window
            return True
        return super().event(event)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Keys of the controls inside: a focused button must not take Space from the lanes."""
        if event.type() is QEvent.Type.ShortcutOverride and self._wants(event):
            event.accept()
            return True
        return event.type() is QEvent.Type.KeyPress and isinstance(event, QKeyEvent) and self._take_key(event)

    def _wants(self, event: QEvent) -> bool:
        return isinstance(event, QKeyEvent) and not self.session.is_over and self.session.desk.takes(key_name(event))

    def _take_key(self, event: QKeyEvent) -> bool:
        key = key_name(event)
        desk = self.session.desk
        if not key or self.session.is_over or not desk.takes(key):
            return False
        self._do(desk.press(key))
        if desk.wants_to_finish:
            desk.wants_to_finish = False
            self._ask_to_finish()
        return True

    def _do(self, commands: list[dict[str, Any]]) -> None:
        self.session.send(commands)

    def _act(self, request: "ActionRequest", action: Any) -> None:
        self._do(self.session.desk.act(request, action))
        self.setFocus()

    def _prefer_text(self, is_text: bool) -> None:
        for card in self.grid.cards:
            card.picture.prefer_text(is_text)

    def _choose(self, lane: int) -> None:
        self.session.desk.choose(lane)
        self.setFocus()
        self.refresh()

    def _reset(self, seed: str) -> None:
        self.session.desk.note = ""
        self._do(self.session.desk.reset(seed))

    def _ask_to_finish(self) -> None:
        ask_to_confirm(self, FINISH, "Finish", lambda: self._do([{"cmd": "finish"}]))

    # ---- life

    def _end(self) -> None:
        self.refresh()
        self.results.load(self.session.run_id)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.session.open()
        self.setFocus()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self.session.rest()
