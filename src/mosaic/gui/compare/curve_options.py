"""How the compared curves are drawn: axis, smoothing, log scale; remembered."""

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QCheckBox, QComboBox, QHBoxLayout, QSlider, QWidget

from mosaic.gui.widgets.labels import label
from mosaic.present.axes import CHOICES

if TYPE_CHECKING:
    from mosaic.gui.memory import Memory


class CurveOptions(QWidget):
    changed = Signal()

    def __init__(self, memory: "Memory", key: str = "compare") -> None:
        super().__init__()
        self._memory, self._key = memory, key
        self._axis = QComboBox()
        self._axis.addItems(list(CHOICES))
        self._axis.setCurrentText(memory.value(f"{key}/axis", CHOICES[0]))
        self._axis.setAccessibleName("Horizontal axis")
        self._axis.setObjectName(f"{key}.axis")
        self._smoothing = QSlider(Qt.Orientation.Horizontal)
        self._smoothing.setRange(0, 99)
        self._smoothing.setFixedWidth(96)
        self._smoothing.setValue(memory.value(f"{key}/smoothing", 60))
        self._smoothing.setAccessibleName("Smoothing in percent")
        self._smoothing.setObjectName(f"{key}.smoothing")
        self._percent = label()
        self._percent.setFixedWidth(36)
        self._log = QCheckBox("Log scale")
        self._log.setObjectName(f"{key}.log")
        self._log.setChecked(memory.value(f"{key}/log", False))
        self._lay_out()
        self._show_percent()
        self._axis.currentTextChanged.connect(self._change)
        self._smoothing.valueChanged.connect(self._change)
        self._log.toggled.connect(self._change)

    @property
    def axis(self) -> str:
        return self._axis.currentText()

    @property
    def smoothing(self) -> float:
        return self._smoothing.value() / 100

    @property
    def is_log(self) -> bool:
        return self._log.isChecked()

    def allow_smoothing(self, is_allowed: bool) -> None:
        """Curves that are averages of several runs are not smoothed."""
        self._smoothing.setEnabled(is_allowed)
        self._percent.setEnabled(is_allowed)

    def _lay_out(self) -> None:
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(8)
        for widget in (label("X axis", "muted"), self._axis, label("Smoothing", "muted"), self._smoothing):
            layout.addWidget(widget)
        layout.addWidget(self._percent)
        layout.addWidget(self._log)

    def _change(self) -> None:
        self._show_percent()
        for name, value in (("axis", self.axis), ("smoothing", self._smoothing.value()), ("log", self.is_log)):
            self._memory.remember(f"{self._key}/{name}", value)
        self.changed.emit()

    def _show_percent(self) -> None:
        self._percent.setText(f"{self._smoothing.value()} %")
