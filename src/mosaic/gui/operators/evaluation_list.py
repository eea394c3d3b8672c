"""All evaluations, the live ones first."""

from typing import TYPE_CHECKING

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import QListWidget, QListWidgetItem, QVBoxLayout, QWidget

from mosaic.gui.widgets.buttons import button
from mosaic.gui.widgets.labels import label
from mosaic.gui.widgets.tip import plain_tip
from mosaic.present.eval_listing import listing

if TYPE_CHECKING:
    from mosaic.gui.context import Context

WIDTH = 216
ITEM_PX = 44


class EvaluationList(QWidget):
    chosen = Signal(str)  # a run's id
    composed = Signal()  # a new one, by hand
    scripted = Signal()  # a new one, from a file

    def __init__(self, context: "Context") -> None:
        super().__init__()
        self.setFixedWidth(WIDTH)
        self._context = context
        self._shown: list[tuple[str, str, str]] = []
        self._wanted = ""
        self.list = QListWidget()
        self.list.setObjectName("operators.list")
        self.list.setAccessibleName("Evaluations")
        self.list.setTextElideMode(Qt.TextElideMode.ElideRight)
        self.list.itemClicked.connect(lambda item: self.chosen.emit(item.data(Qt.ItemDataRole.UserRole)))
        self.list.itemActivated.connect(lambda item: self.chosen.emit(item.data(Qt.ItemDataRole.UserRole)))
        layout = QVBoxLayout(self)
        layout.setContentsMargins(12, 12, 8, 12)
        layout.setSpacing(8)
        layout.addWidget(label("Operators", "title"))
        compose = button("New evaluation", self.composed.emit, name="operators.new")
        from_file = button("From a script…", self.scripted.emit, name="operators.new_script")
        layout.addWidget(compose)
        layout.addWidget(from_file)
        layout.addSpacing(4)
        layout.addWidget(label("Evaluations", "caption"))
        layout.addWidget(self.list, 1)
        context.hub.runs_changed.connect(self.refresh)
        self.refresh()

    def refresh(self, _: object = None) -> None:
        if not self.isVisible() and self._shown:
            return
        rows = listing(self._context.hub.runs.values())
        if rows == self._shown:
            return
        self._shown = rows
        self.list.clear()
        for run_id, title, about in rows:
            item = QListWidgetItem(f"{title}\n{about}")
            item.setData(Qt.ItemDataRole.UserRole, run_id)
            item.setToolTip(plain_tip(f"{title}\n{about}"))
            item.setSizeHint(QSize(0, ITEM_PX))
            self.list.addItem(item)
        self.select(self._wanted)

    def select(self, run_id: str) -> None:
        """Mark a run, also one that is not listed yet."""
        self._wanted = run_id
        for row in range(self.list.count()):
            if self.list.item(row).data(Qt.ItemDataRole.UserRole) == run_id:
                self.list.setCurrentRow(row)
                return
        self.list.setCurrentRow(-1)

    def showEvent(self, event: object) -> None:
        super().showEvent(event)  # type: ignore[arg-type]
        self.refresh()
