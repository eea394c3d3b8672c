"""The controls above the curves: which metrics, smoothing, scale, x axis."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QCheckBox, QComboBox, QHBoxLayout, QSlider, QWidget

from mosaic.gui.memory import Memory
from mosaic.gui.run_tab.metric_picker import MetricPicker
from mosaic.gui.widgets.buttons import button
from mosaic.gui.widgets.labels import label
from mosaic.gui.widgets.tip import set_tip
from mosaic.present.axes import CHOICES

SMOOTHING, LOG, AXIS = "curves/smoothing", "curves/log", "curves/axis"


class CurveBar(QWidget):
    changed = Signal()  # smoothing, log_y or axis
    follow_asked = Signal()
    frame_toggled = Signal(bool)

    def __init__(self, memory: Memory) -> None:
        super().__init__()
        self._memory = memory
        self.metrics = button("Metrics ▾", self._open_picker, tip="Choose which metrics have a chart")
        self.metrics.setObjectName("curves.pick")
        self.picker = MetricPicker(self)
        self.slider = QSlider(Qt.Orientation.Horizontal)
        self.slider.setObjectName("curves.smoothing")
        self.slider.setAccessibleName("Smoothing")
        self.slider.setRange(0, 99)
        self.slider.setMinimumWidth(40)  # the first to give way in a narrow window
        self.slider.setMaximumWidth(96)
        self.slider.setValue(int(memory.value(SMOOTHING, 60)))
        set_tip(self.slider, "Smoothing: 0 shows every value as it is")
        self.amount = label("", "number")
        self.amount.setFixedWidth(32)
        self.log = QCheckBox("Log scale")
        self.log.setObjectName("curves.log")
        self.log.setChecked(bool(memory.value(LOG, False)))
        self.axis = QComboBox()
        self.axis.setObjectName("curves.axis")
        self.axis.setAccessibleName("X axis")
        self.axis.addItems([f"by {choice}" for choice in CHOICES])
        self.axis.setMinimumWidth(self.axis.sizeHint().width())
        self.axis.setCurrentIndex(_index(str(memory.value(AXIS, CHOICES[0]))))
        self.follow = button(
            "Follow", self.follow_asked.emit, "flat", "Show all curves whole again", name="curves.follow"
        )
        self.frame = button("Frame", None, "plain", "Show the live frame beside the curves", name="curves.frame")
        self.frame.setCheckable(True)
        self.frame.toggled.connect(self.frame_toggled)
        self._lay_out()
        self._show_amount()
        for signal in (self.slider.valueChanged, self.log.toggled, self.axis.currentIndexChanged):
            signal.connect(self._take)

    @property
    def smoothing(self) -> float:
        return self.slider.value() / 100

    @property
    def log_y(self) -> bool:
        return self.log.isChecked()

    @property
    def x_axis(self) -> str:
        return CHOICES[self.axis.currentIndex()]

    def _take(self) -> None:
        self._show_amount()
        self._memory.remember(SMOOTHING, self.slider.value())
        self._memory.remember(LOG, self.log_y)
        self._memory.remember(AXIS, self.x_axis)
        self.changed.emit()

    def _show_amount(self) -> None:
        self.amount.setText(f"{self.smoothing:.2f}")

    def _open_picker(self) -> None:
        self.picker.open_below(self.metrics)

    def _lay_out(self) -> None:
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(8)
        layout.addWidget(self.metrics)
        layout.addWidget(label("Smoothing", "muted"))
        layout.addWidget(self.slider, 1)
        for widget in (self.amount, self.log, self.axis):
            layout.addWidget(widget)
        layout.addStretch(1)
        layout.addWidget(self.follow)
        layout.addWidget(self.frame)


def _index(axis: str) -> int:
    return CHOICES.index(axis) if axis in CHOICES else 0
