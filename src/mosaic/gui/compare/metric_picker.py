"""Which metrics are shown: a button that opens a list with a search field."""

from collections.abc import Sequence

from PySide6.QtCore import QPoint, QSortFilterProxyModel, Qt, Signal
from PySide6.QtGui import QStandardItem, QStandardItemModel
from PySide6.QtWidgets import QFrame, QLineEdit, QListView, QVBoxLayout, QWidget

from mosaic.gui.widgets.buttons import button
from mosaic.present.text import printable

MOST = 12  # charts at once


class MetricPicker(QWidget):
    chosen = Signal(list)  # names, in the order of the list

    def __init__(self) -> None:
        super().__init__()
        self._model = QStandardItemModel(self)
        self._model.itemChanged.connect(self._report)
        self.button = button("Metrics", self.open, name="compare.metrics", tip="Choose which curves are shown")
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self.button)
        self._build_panel()

    def set_names(self, names: Sequence[str], chosen: Sequence[str]) -> None:
        self._model.blockSignals(True)
        self._model.clear()
        for name in names:
            item = QStandardItem(printable(name))
            item.setData(name, Qt.ItemDataRole.UserRole)
            item.setCheckable(True)
            item.setEditable(False)
            item.setCheckState(Qt.CheckState.Checked if name in chosen else Qt.CheckState.Unchecked)
            self._model.appendRow(item)
        self._model.blockSignals(False)
        self._model.layoutChanged.emit()
        self.button.setText(f"Metrics ({len(chosen)} of {len(names)})")

    def names(self) -> list[str]:
        """The chosen names."""
        items = (self._model.item(row) for row in range(self._model.rowCount()))
        checked = [item for item in items if item.checkState() is Qt.CheckState.Checked]
        return [str(item.data(Qt.ItemDataRole.UserRole)) for item in checked][:MOST]

    def open(self) -> None:
        self._search.clear()
        self._panel.move(self.button.mapToGlobal(QPoint(0, self.button.height() + 4)))
        self._panel.show()
        self._search.setFocus()

    def _build_panel(self) -> None:
        self._panel = QFrame(self, Qt.WindowType.Popup)
        self._panel.setProperty("kind", "card")
        self._panel.resize(320, 360)
        self._search = QLineEdit()
        self._search.setPlaceholderText("Search metrics…")
        self._search.setAccessibleName("Search metrics")
        self._search.setObjectName("compare.metric_search")
        proxy = QSortFilterProxyModel(self)
        proxy.setSourceModel(self._model)
        proxy.setFilterCaseSensitivity(Qt.CaseSensitivity.CaseInsensitive)
        self._search.textChanged.connect(proxy.setFilterFixedString)
        self.view = QListView()
        self.view.setObjectName("compare.metric_list")
        self.view.setAccessibleName("Metrics")
        self.view.setUniformItemSizes(True)
        self.view.setModel(proxy)
        layout = QVBoxLayout(self._panel)
        layout.setContentsMargins(8, 8, 8, 8)
        layout.addWidget(self._search)
        layout.addWidget(self.view)

    def _report(self) -> None:
        names = self.names()
        self.button.setText(f"Metrics ({len(names)} of {self._model.rowCount()})")
        self.chosen.emit(names)
