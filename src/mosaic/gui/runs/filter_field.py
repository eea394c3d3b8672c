"""The field for the filter. It understands while the user types and says what is wrong."""

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QLineEdit

from mosaic.gui.widgets.polish import set_property
from mosaic.gui.widgets.tip import set_tip
from mosaic.present.run_filter import BadFilter, parse_filter

PAUSE_MS = 150
HINT = "Filter runs:  state:live  algo:ppo  return>400  words"
TIP = (
    "Words are searched in name, worker, algorithm, environment, state, tags and id.\n"
    "state:live,failed  worker:cleanrl  algo:ppo  env:CartPole  tag:sweep  seed:1\n"
    'return>400  steps>1e6  progress<50  age<2h  -not  "words with spaces"'
)


class FilterField(QLineEdit):
    understood = Signal(object)  # RunFilter, a moment after the last key
    wrong = Signal(str)  # what is wrong, in a sentence; empty: nothing
    left = Signal()  # Down or Enter: the user goes on to the table

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("runs.filter")
        self.setAccessibleName("Filter runs")
        self.setPlaceholderText(HINT)
        self.setClearButtonEnabled(True)
        self.setMinimumWidth(120)
        set_tip(self, TIP)
        self._pause = QTimer(self, interval=PAUSE_MS, singleShot=True)
        self._pause.timeout.connect(self.apply)
        self.textChanged.connect(lambda _: self._pause.start())

    def apply(self) -> None:
        """Understand the text now. A bad filter changes nothing but the words about it."""
        self._pause.stop()
        try:
            found = parse_filter(self.text())
        except BadFilter as error:
            self._show(str(error))
        else:
            self._show("")
            self.understood.emit(found)

    def _show(self, problem: str) -> None:
        set_property(self, "wrong", bool(problem))
        self.setAccessibleDescription(problem or TIP)
        self.wrong.emit(problem)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Down):
            self.apply()
            self.left.emit()
        elif event.key() == Qt.Key.Key_Escape and self.text():
            self.clear()
            self.apply()
        else:
            super().keyPressEvent(event)
