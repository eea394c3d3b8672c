"""Chooses which metrics have a chart: a list with a search field, for five names as for five hundred."""

from collections.abc import Sequence

from PySide6.QtCore import QAbstractListModel, QModelIndex, QPersistentModelIndex, Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLineEdit, QListView, QVBoxLayout, QWidget

from mosaic.gui.widgets.buttons import button
from mosaic.gui.widgets.labels import label
from mosaic.present.metric_choice import search
from mosaic.present.text import printable

Index = QModelIndex | QPersistentModelIndex
CHECKABLE = Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable | Qt.ItemFlag.ItemIsUserCheckable
WIDTH, HEIGHT = 320, 360


class MetricNames(QAbstractListModel):
    toggled = Signal(str, bool)

    def __init__(self) -> None:
        super().__init__()
        self.shown: list[str] = []
        self.chosen: set[str] = set()

    def set_names(self, shown: Sequence[str], chosen: set[str]) -> None:
        self.beginResetModel()
        self.shown, self.chosen = list(shown), chosen
        self.endResetModel()

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008 - Qt's own signature
        return 0 if parent.isValid() else len(self.shown)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        name = self.shown[index.row()]
        if role == Qt.ItemDataRole.DisplayRole:
            return printable(name)
        if role == Qt.ItemDataRole.CheckStateRole:
            return Qt.CheckState.Checked if name in self.chosen else Qt.CheckState.Unchecked
        return None

    def flags(self, index: Index) -> Qt.ItemFlag:
        return CHECKABLE

    def setData(self, index: Index, value: object, role: int = Qt.ItemDataRole.EditRole) -> bool:
        if role != Qt.ItemDataRole.CheckStateRole:
            return False
        self.toggled.emit(self.shown[index.row()], Qt.CheckState(value) == Qt.CheckState.Checked)
        return True


class MetricPicker(QFrame):
    """A popup. `chosen` tells all names that have a chart, in the order of the charts."""

    chosen = Signal(list)
    reset = Signal()

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent, Qt.WindowType.Popup)
        self.setProperty("kind", "card")
        self.setFixedSize(WIDTH, HEIGHT)
        self._all: list[str] = []
        self._chosen: list[str] = []
        self.search = QLineEdit(placeholderText="Search metrics", clearButtonEnabled=True)
        self.search.setObjectName("curves.search")
        self.search.setAccessibleName("Search metrics")
        self.search.textChanged.connect(self._show)
        self.names = MetricNames()
        self.names.toggled.connect(self._toggle)
        self.list = QListView(uniformItemSizes=True)
        self.list.setModel(self.names)
        self.list.setObjectName("curves.metrics")
        self.list.setAccessibleName("Metrics")
        self.count = label("", "caption")
        row = QHBoxLayout()
        row.addWidget(self.count, 1)
        row.addWidget(button("Automatic", self.reset.emit, "flat", "Show the usual metrics", name="curves.automatic"))
        layout = QVBoxLayout(self)
        layout.setContentsMargins(8, 8, 8, 8)
        layout.setSpacing(8)
        layout.addWidget(self.search)
        layout.addWidget(self.list, 1)
        layout.addLayout(row)

    def set_names(self, names: Sequence[str], chosen: Sequence[str]) -> None:
        if (list(names), list(chosen)) != (self._all, self._chosen):
            self._all, self._chosen = list(names), list(chosen)
            self._show()

    def open_below(self, widget: QWidget) -> None:
        self.move(widget.mapToGlobal(widget.rect().bottomLeft()))
        self.show()
        self.search.setFocus()

    def _show(self) -> None:
        found = search(self._all, self.search.text())
        place = self.list.verticalScrollBar().value()
        self.names.set_names(found, set(self._chosen))
        self.list.verticalScrollBar().setValue(place)
        self.count.setText(f"{len(self._chosen)} of {len(self._all):,} shown")

    def _toggle(self, name: str, is_chosen: bool) -> None:
        kept = [other for other in self._chosen if other != name]
        self._chosen = [*kept, name] if is_chosen else kept
        self._show()
        self.chosen.emit(self._chosen)
