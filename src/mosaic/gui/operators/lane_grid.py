"""The lanes as equal cards: as many columns as have room, and rows that scroll when there are many."""

from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QGridLayout, QScrollArea, QWidget

from mosaic.gui.operators.lane_card import LaneWidget
from mosaic.present.lane_layout import columns_for

GAP = 8


class LaneGrid(QScrollArea):
    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("operators.lanes")
        self.setAccessibleName("Lanes")
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.cards: list[LaneWidget] = []
        self._columns = 0
        inside = QWidget()
        self._grid = QGridLayout(inside)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setSpacing(GAP)
        self.setWidget(inside)

    def set_cards(self, cards: Sequence[LaneWidget]) -> None:
        for old in self.cards:
            self._grid.removeWidget(old)
            old.deleteLater()
        self.cards = list(cards)
        self._columns = 0
        self._place()

    def show_lane(self, index: int) -> None:
        """Scroll to a lane, such as one that asks a person."""
        if index < len(self.cards):
            self.ensureWidgetVisible(self.cards[index], 0, GAP)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._place()

    def _place(self) -> None:
        columns = columns_for(len(self.cards), self.width())
        if columns == self._columns or not self.cards:
            return
        for column in range(max(self._columns, columns)):
            self._grid.setColumnStretch(column, 1 if column < columns else 0)
        self._columns = columns
        for place, card in enumerate(self.cards):
            self._grid.addWidget(card, place // columns, place % columns)
        for row in range(self._grid.rowCount()):
            self._grid.setRowStretch(row, 1 if row * columns < len(self.cards) else 0)
