"""One bar for all lanes: reset, step, play or pause, speed, seed, finish."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QCheckBox, QFrame, QHBoxLayout, QLineEdit, QSlider, QVBoxLayout

from mosaic.gui.widgets.buttons import button, paint
from mosaic.gui.widgets.elided import ElidedLabel
from mosaic.gui.widgets.icons import icon
from mosaic.gui.widgets.labels import label
from mosaic.gui.widgets.tip import set_tip
from mosaic.present.lane_desk import RATES
from mosaic.present.text import number

if TYPE_CHECKING:
    from mosaic.gui.theme import Theme
    from mosaic.present.lane_desk import LaneDesk

KEYS = "Space play or pause · S step · R reset · N next episode · + − speed · 0-9 choose a lane · F finish"


class TransportBar(QFrame):
    stepped = Signal()
    played = Signal()  # or paused
    reset = Signal(str)  # the seed, or empty
    went_on = Signal()  # the next episode
    rate_chosen = Signal(float)
    finished = Signal()
    text_preferred = Signal(bool)

    def __init__(self, theme: "Theme") -> None:
        super().__init__()
        self._theme = theme
        self._is_playing: bool | None = None
        self.setProperty("kind", "panel")
        emit = self._emit
        self._reset = button("Reset", self._send_reset, tip="Begin the episode again (R)", name="operators.reset")
        self._step = button("Step", emit(self.stepped), tip="One step (S)", name="operators.step")
        self._play = button("Play", emit(self.played), "primary", tip="Play or pause (Space)", name="operators.play")
        self._next = button(
            "Next", emit(self.went_on), tip="Begin the next episode in lanes that are done (N)", name="operators.next"
        )
        self._finish = button("Finish…", emit(self.finished), tip="Write the results (F)", name="operators.finish")
        paint(self._reset, theme, "reset", "text")
        paint(self._step, theme, "step", "text")
        self.speed = QSlider(Qt.Orientation.Horizontal)
        self.speed.setRange(0, len(RATES) - 1)
        self.speed.setObjectName("operators.speed")
        self.speed.setAccessibleName("Steps per second")
        self.speed.setFixedWidth(80)
        self.speed.valueChanged.connect(lambda place: self.rate_chosen.emit(RATES[place]))
        self._rate = label("", "caption")
        self._rate.setFixedWidth(72)
        self.seed = QLineEdit()
        self.seed.setObjectName("operators.seed")
        self.seed.setAccessibleName("Seed of the next reset")
        self.seed.setPlaceholderText("next")
        self.seed.setFixedWidth(72)
        set_tip(self.seed, "The seed for Reset; Enter resets with it")
        self.seed.returnPressed.connect(self._send_reset)
        self._text = QCheckBox("Text")
        self._text.setObjectName("operators.text")
        set_tip(self._text, "Show the environments as text instead of frames")
        self._text.toggled.connect(self.text_preferred)
        self._about = ElidedLabel("", "caption")
        self._about.setObjectName("operators.note")
        theme.changed.connect(self._draw_play)
        self._arrange()

    def _arrange(self) -> None:
        row = QHBoxLayout()
        row.setSpacing(8)
        speed, seed = label("Speed", "caption"), label("Seed", "caption")
        buttons = (self._reset, self._step, self._play, self._next)
        self._by_hand = [*buttons, speed, self.speed, self._rate, seed, self.seed, self._finish]
        for widget in (*buttons, speed, self.speed, self._rate, seed, self.seed, self._text):
            row.addWidget(widget)
        row.addStretch(1)
        row.addWidget(self._finish)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(12, 8, 12, 8)
        layout.setSpacing(4)
        layout.addLayout(row)
        layout.addWidget(self._about)

    @property
    def note(self) -> str:
        return self._about.text()

    def show_desk(self, desk: "LaneDesk", words: str, is_ready: bool) -> None:
        """`words`: what goes on, in place of the keys. `is_ready`: commands are taken."""
        self._show_play(desk.is_playing)
        everywhere = desk.chosen is None
        self._step.setText("Step" if everywhere else f"Step lane {desk.chosen}")
        self._reset.setText("Reset" if everywhere else f"Reset lane {desk.chosen}")
        for widget in self._by_hand:
            widget.setEnabled(is_ready)
            widget.setVisible(desk.is_manual)  # a script plays by itself
        self.speed.blockSignals(True)
        self.speed.setValue(min(range(len(RATES)), key=lambda place: abs(RATES[place] - desk.rate)))
        self.speed.blockSignals(False)
        self._rate.setText(f"{number(desk.rate)} steps/s")
        self._about.setText(desk.note or words or (KEYS if desk.is_manual else ""))

    def _show_play(self, is_playing: bool) -> None:
        if is_playing != self._is_playing:
            self._is_playing = is_playing
            self._play.setText("Pause" if is_playing else "Play")
            self._play.setAccessibleName(self._play.text())
            self._draw_play()

    def _draw_play(self) -> None:
        self._play.setIcon(icon("pause" if self._is_playing else "play", self._theme.colours.on_accent))

    def _send_reset(self) -> None:
        self.reset.emit(self.seed.text())

    def _emit(self, signal: object) -> Callable[[], None]:
        return lambda: signal.emit()  # type: ignore[attr-defined]
