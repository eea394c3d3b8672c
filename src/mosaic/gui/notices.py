"""The notice bar: one line at the top of the pages. It never blocks."""

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPlainTextEdit, QVBoxLayout

from mosaic.gui.theme import Theme
from mosaic.gui.widgets.buttons import icon_button
from mosaic.gui.widgets.fold import Fold
from mosaic.gui.widgets.labels import label
from mosaic.gui.widgets.polish import set_property

SAY_MS = 6000
DETAILS_PX = 160


class NoticeBar(QFrame):
    """What was said disappears by itself; a problem stays until it is dismissed or replaced."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.setObjectName("window.notices")
        self.glyph = label("")
        self.sentence = label("", wrap=True, name="window.notices.sentence")
        self.details = QPlainTextEdit(readOnly=True)
        self.details.setProperty("kind", "mono")
        self.details.setAccessibleName("Details of the problem")
        self.details.setFixedHeight(DETAILS_PX)
        self.fold = Fold("Details", self.details)
        self.dismiss_button = icon_button(theme, "close", "Dismiss · Esc", self.dismiss, "window.notices.dismiss")
        row = QHBoxLayout()
        row.setSpacing(8)
        row.addWidget(self.glyph)
        row.addWidget(self.sentence, 1)
        row.addWidget(self.dismiss_button)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(12, 6, 8, 6)
        layout.setSpacing(4)
        layout.addLayout(row)
        layout.addWidget(self.fold)
        self._timer = QTimer(self, singleShot=True, interval=SAY_MS)
        self._timer.timeout.connect(self.dismiss)
        self.hide()

    def say(self, text: str) -> None:
        self._show("✓", text, "", "note")
        self._timer.start()

    def problem(self, sentence: str, details: str = "") -> None:
        self._timer.stop()
        self._show("✕", sentence, details, "problem-box")

    def dismiss(self) -> bool:
        """Hide the notice. False if there is none."""
        was_shown = self.isVisible()
        self._timer.stop()
        self.hide()
        return was_shown

    def _show(self, glyph: str, sentence: str, details: str, kind: str) -> None:
        self.glyph.setText(glyph)
        set_property(self.glyph, "kind", "problem" if kind == "problem-box" else "muted")
        self.sentence.setText(sentence)
        self.details.setPlainText(details)
        self.fold.setVisible(bool(details))
        self.fold.set_open(False)
        set_property(self, "kind", kind)
        self.setAccessibleName(sentence)
        self.show()
