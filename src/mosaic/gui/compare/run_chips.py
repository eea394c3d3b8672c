"""The compared runs; a click on × removes one."""

from collections.abc import Mapping

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QIcon, QPainter, QPixmap
from PySide6.QtWidgets import QPushButton

from mosaic.gui.charts.flow_layout import FlowBox
from mosaic.gui.charts.pens import curve_pen
from mosaic.gui.theme import Theme
from mosaic.gui.widgets.tip import set_tip


class RunChips(FlowBox):
    removed = Signal(str)  # run id

    def __init__(self, theme: Theme) -> None:
        super().__init__(spacing=8)
        self._theme = theme

    def show_runs(self, labels: Mapping[str, str], gone: set[str], colours: Mapping[str, int] | None = None) -> None:
        """`colours`: those of the groups, by run; else each run has its own."""
        self.clear()
        for index, (run_id, label) in enumerate(labels.items()):
            self.flow.addWidget(self._chip(run_id, label, (colours or {}).get(run_id, index), run_id in gone))
        self.refit()

    def _chip(self, run_id: str, label: str, index: int, is_gone: bool) -> QPushButton:
        # An ampersand would be taken for a mnemonic.
        shown = self.fontMetrics().elidedText(label, Qt.TextElideMode.ElideMiddle, 260).replace("&", "&&")
        chip = QPushButton(f" {shown}  ×", self)
        chip.setAccessibleName(f"Remove {label}")
        chip.setObjectName(f"compare.chip.{run_id}")
        chip.setIcon(self._swatch(index, is_gone))
        chip.setIconSize(QSize(16, 8))
        set_tip(chip, f"{label}\n{run_id}\nClick to remove it from the comparison")
        chip.clicked.connect(lambda: self.removed.emit(run_id))
        chip.show()
        return chip

    def _swatch(self, index: int, is_gone: bool) -> QIcon:
        picture = QPixmap(32, 16)
        picture.setDevicePixelRatio(2)
        picture.fill(Qt.GlobalColor.transparent)
        painter = QPainter(picture)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        pen = curve_pen(self._theme.colours, index, is_gone)
        pen.setWidthF(2.5)
        painter.setPen(pen)
        painter.drawLine(0, 4, 16, 4)
        painter.end()
        return QIcon(picture)
