"""An error in words, where it happened; the details are folded."""

from PySide6.QtWidgets import QFrame, QHBoxLayout, QPlainTextEdit, QSizePolicy, QVBoxLayout

from mosaic.gui.widgets.fold import Fold
from mosaic.gui.widgets.labels import label

DETAILS_PX = 140


class Problem(QFrame):
    """Hidden while there is none."""

    def __init__(self, sentence: str = "", details: str = "") -> None:
        super().__init__()
        self.setProperty("kind", "problem-box")
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Maximum)
        self.sentence = label("", wrap=True)
        self.details = QPlainTextEdit(readOnly=True)
        self.details.setProperty("kind", "mono")
        self.details.setAccessibleName("Details of the problem")
        self.details.setFixedHeight(DETAILS_PX)
        self.fold = Fold("Details", self.details)
        row = QHBoxLayout()
        row.setSpacing(8)
        row.addWidget(label("✕", "problem"))
        row.addWidget(self.sentence, 1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(12, 8, 12, 8)
        layout.setSpacing(4)
        layout.addLayout(row)
        layout.addWidget(self.fold)
        self._write(sentence, details)
        if not sentence:
            self.hide()

    def show_problem(self, sentence: str, details: str = "") -> None:
        self._write(sentence, details)
        self.setVisible(bool(sentence))

    def clear(self) -> None:
        self.show_problem("")

    def _write(self, sentence: str, details: str) -> None:
        self.sentence.setText(sentence)
        self.setAccessibleName(sentence)
        self.details.setPlainText(details)
        self.fold.setVisible(bool(details))
