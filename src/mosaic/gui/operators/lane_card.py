"""One lane of an evaluation as a card: who plays, the environment, the last step, and what went wrong."""

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QMouseEvent
from PySide6.QtWidgets import QFrame, QGridLayout, QHBoxLayout, QPlainTextEdit, QProgressBar, QVBoxLayout

from mosaic.client.lanes import ASKING, DONE, FAILED, PLAYING
from mosaic.gui.operators.lane_picture import LanePicture
from mosaic.gui.widgets.elided import ElidedLabel
from mosaic.gui.widgets.labels import label
from mosaic.gui.widgets.polish import set_property
from mosaic.gui.widgets.state_badge import StateBadge
from mosaic.gui.widgets.tip import set_tip
from mosaic.present.lane_cards import AgentLine, LaneCard

if TYPE_CHECKING:
    from mosaic.client.lanes import LaneState
    from mosaic.gui.context import Context

KIND_OF_STATE = {PLAYING: "running", ASKING: "running", DONE: "done", FAILED: "failed"}
WAITS = "◌"
WORDS_PX = 72
PROBLEM_PX = 56
FACTS = ("Action", "Reward", "Return", "Mean")


class LaneWidget(QFrame):
    chosen = Signal(int)  # it was clicked

    def __init__(self, context: "Context", run_id: str, lane: int) -> None:
        super().__init__()
        self.index = lane
        self.setObjectName(f"operators.lane.{lane}")
        self.setProperty("kind", "lane")
        self.picture = LanePicture(context, run_id, lane)
        self._name = label("", "heading")
        self._who = ElidedLabel("", "caption")
        self._badge = StateBadge(context.theme)
        self._place = ElidedLabel("", "caption")
        self._values = {fact: ElidedLabel("", "") for fact in FACTS}
        self._agents = label("", "mono", wrap=False)
        self._words = _text_box(f"Words of lane {lane}", WORDS_PX)
        self._problem = _text_box(f"Failure of lane {lane}", PROBLEM_PX)
        self._problem.setProperty("kind", "failure")
        self._progress = QProgressBar(textVisible=False, maximum=1000)
        self._progress.setAccessibleName(f"Episodes of lane {lane} that are over")
        self._arrange()

    def _arrange(self) -> None:
        head = QHBoxLayout()
        head.setSpacing(8)
        head.addWidget(self._name)
        head.addWidget(self._who, 1)
        head.addWidget(self._badge)
        facts = QGridLayout()
        facts.setHorizontalSpacing(12)
        facts.setVerticalSpacing(0)
        for column, fact in enumerate(FACTS):
            facts.addWidget(label(fact, "caption"), 0, column)
            facts.addWidget(self._values[fact], 1, column)
            facts.setColumnStretch(column, 3 if fact in ("Action", "Mean") else 2)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(12, 8, 12, 8)
        layout.setSpacing(4)
        layout.addLayout(head)
        layout.addWidget(self.picture, 1)
        layout.addWidget(self._place)
        layout.addWidget(self._progress)
        layout.addLayout(facts)
        for widget in (self._agents, self._words, self._problem):
            layout.addWidget(widget)

    def show_lane(self, card: LaneCard, lane: "LaneState", is_asked: bool, is_chosen: bool) -> None:
        """`is_asked`: the keys go to this lane. `is_chosen`: step and reset apply to it alone."""
        self._name.setText(f"{card.index}  {card.name}")
        self._who.setText(card.kind)
        self._badge.show_state(
            card.glyph, card.word, "waiting" if card.glyph == WAITS else KIND_OF_STATE.get(card.state, "waiting")
        )
        self._place.setText(card.place)
        self._progress.setValue(round(1000 * card.fraction))
        for fact, text in zip(FACTS, (card.action, card.reward, card.episode_return, card.mean), strict=True):
            self._values[fact].setText(text)
        self._agents.setText("\n".join(_agent_line(one) for one in card.agents))
        self._agents.setVisible(bool(card.agents))
        _fill(self._words, card.words)
        _fill(self._problem, card.problem)
        self.picture.show_text(lane.view)
        set_property(self, "mark", "asked" if is_asked else "chosen" if is_chosen else "")
        self.setAccessibleName(f"Lane {card.index}, {card.name}, {card.word}, {card.place}")
        set_tip(self._name, "Step and reset apply to this lane only" if is_chosen else "Click to choose this lane")

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() is Qt.MouseButton.LeftButton:
            self.chosen.emit(self.index)
        super().mousePressEvent(event)


def _agent_line(one: AgentLine) -> str:
    return f"{one.name} ({one.operator})  {one.action}  reward {one.reward}  return {one.episode_return}"


def _text_box(name: str, height: int) -> QPlainTextEdit:
    made = QPlainTextEdit(readOnly=True)
    made.setAccessibleName(name)
    made.setFixedHeight(height)
    made.hide()
    return made


def _fill(box: QPlainTextEdit, text: str) -> None:
    if box.toPlainText() != text:
        box.setPlainText(text)
    box.setVisible(bool(text))
