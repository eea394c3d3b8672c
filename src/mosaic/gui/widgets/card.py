"""A framed group of things that belong together."""

from PySide6.QtWidgets import QFrame, QHBoxLayout, QVBoxLayout

from mosaic.gui.widgets.labels import label


class Card(QFrame):
    """`body` takes the content; `head` takes what stands beside the title."""

    def __init__(self, title: str = "") -> None:
        super().__init__()
        self.setProperty("kind", "card")
        whole = QVBoxLayout(self)
        whole.setContentsMargins(12, 10, 12, 12)
        whole.setSpacing(8)
        self.head = QHBoxLayout()
        self.head.setSpacing(8)
        self.title = label(title, "heading")
        self.head.addWidget(self.title)
        self.head.addStretch(1)
        self.body = QVBoxLayout()
        self.body.setSpacing(8)
        whole.addLayout(self.head)
        whole.addLayout(self.body, 1)
        self.title.setVisible(bool(title))

    def set_title(self, title: str) -> None:
        self.title.setText(title)
        self.title.setVisible(bool(title))
