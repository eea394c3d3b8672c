"""The panel on the right that holds the New run sheet. It covers nothing and asks for nothing: Esc closes it."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFrame, QVBoxLayout

if TYPE_CHECKING:
    from mosaic.gui.context import Context
    from mosaic.gui.new_run.sheet import NewRunSheet

WIDTH_PX = 440


class SideSheet(QFrame):
    was_closed = Signal()

    def __init__(self, context: "Context") -> None:
        super().__init__()
        self.setObjectName("window.sheet")
        self.setFixedWidth(WIDTH_PX)
        self._context = context
        self._form: NewRunSheet | None = None
        self._layout = QVBoxLayout(self)
        self._layout.setContentsMargins(0, 0, 0, 0)
        self.hide()

    def open(
        self, mode: str = "train", worker: str = "", run_id: str = "", settings: Mapping[str, Any] | None = None
    ) -> None:
        if self._form is None:
            self._form = self._build()
        self.show()
        self._form.open(mode, worker, run_id, settings)

    def close_sheet(self) -> bool:
        """Hide the sheet; what was typed stays. False if it is not open."""
        was_open = self.isVisible()
        self.hide()
        if was_open:
            self.was_closed.emit()
        return was_open

    def _build(self) -> "NewRunSheet":
        from mosaic.gui.new_run.sheet import NewRunSheet

        form = NewRunSheet(self._context)
        form.closed.connect(self.close_sheet)
        self._layout.addWidget(form)
        return form
