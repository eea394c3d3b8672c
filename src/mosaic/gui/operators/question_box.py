"""What a lane asks a person: the actions with their keys, or a field for a value, and the time left."""

import json
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import Qt, QTimer
from PySide6.QtWidgets import QCompleter, QFrame, QGridLayout, QHBoxLayout, QLineEdit, QVBoxLayout, QWidget

from mosaic.gui.widgets.buttons import button
from mosaic.gui.widgets.labels import label
from mosaic.gui.widgets.polish import set_property
from mosaic.model.errors import MosaicError
from mosaic.present.lane_cards import question_line, time_left
from mosaic.present.lane_keys import identity, key_map, shown
from mosaic.present.text import printable

if TYPE_CHECKING:
    from mosaic.client.lanes import ActionRequest, Choice, LaneState

MOST_BUTTONS = 12
COLUMNS = 7
COUNTDOWN_MS = 250
HURRY_S = 6
NOBODY = "Nobody is asked at the moment. Step or play, and the person's turn comes."

Answer = Callable[["ActionRequest", Any], None]


class QuestionBox(QFrame):
    """1. It keeps its place and its buttons between two questions, so that nothing jumps while a person plays.
    2. Its buttons never take the keyboard from the lanes."""

    def __init__(self, answer: Answer) -> None:
        super().__init__()
        self.setProperty("kind", "note")
        self._answer = answer
        self._request: ActionRequest | None = None
        self._choices: tuple[Choice, ...] | None = None  # on the buttons now
        self._title = label(NOBODY, "muted", name="operators.question")
        self._left = label("", "number", name="operators.left")
        self._actions = QWidget()
        self._grid = QGridLayout(self._actions)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setSpacing(4)
        self._typed = QLineEdit()
        self._typed.setObjectName("operators.action")
        self._typed.setAccessibleName("Action")
        self._typed.returnPressed.connect(self._send_typed)
        self._typed.textEdited.connect(lambda _: self._mark(""))
        self._wrong = label("", "problem", wrap=True)
        self._timer = QTimer(self, interval=COUNTDOWN_MS)
        self._timer.timeout.connect(self._count_down)
        self._arrange()
        self._actions.hide()
        self._typed.hide()
        self._mark("")

    def _arrange(self) -> None:
        head = QHBoxLayout()
        head.addWidget(self._title, 1)
        head.addWidget(self._left)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(8, 6, 8, 8)
        layout.setSpacing(4)
        layout.addLayout(head)
        layout.addWidget(self._actions)
        layout.addWidget(self._typed)
        layout.addWidget(self._wrong)

    def show_request(self, request: "ActionRequest | None", lanes: "Sequence[LaneState]") -> None:
        if request is None:
            self._rest()
        elif self._request is None or identity(self._request) != identity(request):
            self._ask(request, lanes[request.lane])

    def _rest(self) -> None:
        if self._request is not None:
            self._request = None
            self._timer.stop()
            self._title.setText(NOBODY)
            self._left.setText("")
            self._enable(False)

    def _ask(self, request: "ActionRequest", lane: "LaneState") -> None:
        self._request = request
        self._title.setText(question_line(request, lane))
        self._mark("")
        if request.choices != self._choices:
            self._offer(request.choices)
        self._typed.clear()
        self._enable(True)
        self._count_down()
        if request.deadline_s is not None:
            self._timer.start()

    def _enable(self, is_asked: bool) -> None:
        set_property(self._title, "kind", "heading" if is_asked else "muted")
        self._actions.setEnabled(is_asked)
        self._typed.setEnabled(is_asked)

    def _offer(self, choices: "tuple[Choice, ...]") -> None:
        self._choices = choices
        while item := self._grid.takeAt(0):
            if widget := item.widget():
                widget.deleteLater()
        keys = key_map(choices)
        has_buttons = 0 < len(choices) <= MOST_BUTTONS
        if has_buttons:
            for place, choice in enumerate(choices):
                mine = [shown(key) for key, one in keys.items() if one is choice]
                made = button(f"{' '.join(mine)}  {printable(choice.name)}".strip().replace("&", "&&"))
                made.setFocusPolicy(Qt.FocusPolicy.NoFocus)
                made.clicked.connect(lambda _=False, value=choice.value: self._choose(value))
                self._grid.addWidget(made, place // COLUMNS, place % COLUMNS)
                self._grid.setColumnStretch(place % COLUMNS, 1)
        self._actions.setVisible(has_buttons)
        self._typed.setVisible(not has_buttons)
        self._typed.clear()
        names = [choice.name for choice in choices]
        self._typed.setPlaceholderText("Type an action, Enter" if names else "Type a value, such as [0.5, -1], Enter")
        completer = QCompleter(names, self._typed)
        completer.setFilterMode(Qt.MatchFlag.MatchContains)
        self._typed.setCompleter(completer)

    def _choose(self, value: Any) -> None:
        if self._request is not None:
            self._answer(self._request, value)

    def _send_typed(self) -> None:
        text, request = self._typed.text().strip(), self._request
        if request is None or not text:
            return
        try:
            self._answer(request, text if request.choices else _value(text))
        except MosaicError as error:
            self._mark(str(error))

    def _mark(self, problem: str) -> None:
        self._wrong.setText(printable(problem))
        self._wrong.setVisible(bool(problem))
        set_property(self._typed, "wrong", bool(problem))

    def _count_down(self) -> None:
        if self._request is None:
            return
        now = time.time()
        left = self._request.time_left_s(now)
        self._left.setText(time_left(self._request, now))
        set_property(self._left, "kind", "problem" if left is not None and left < HURRY_S else "number")


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise MosaicError(f'action: must be a number or a list of numbers, not "{text}".') from None
