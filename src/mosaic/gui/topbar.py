"""The bar above the pages: the runs page's filter or a title, "New run" and the menu."""

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QMenu, QStackedWidget, QToolButton, QWidget

from mosaic.gui.theme import Theme
from mosaic.gui.widgets.buttons import button, icon_button
from mosaic.gui.widgets.elided import ElidedLabel


class TopBar(QFrame):
    new_run_pressed = Signal()

    def __init__(self, theme: Theme, menu: QMenu) -> None:
        super().__init__()
        self.setObjectName("window.topbar")
        self.title = ElidedLabel("", "heading")
        self._left = QStackedWidget()
        self._left.addWidget(self.title)
        self._field: QWidget | None = None
        self.new_run = button(
            "+ New run",
            self.new_run_pressed.emit,
            "primary",
            "Start, resume or evaluate a run · Ctrl+N",
            name="window.new_run",
        )
        self.menu_button = icon_button(theme, "menu", "Menu", lambda: None, "window.menu")
        self.menu_button.setMenu(menu)
        self.menu_button.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(16, 8, 12, 8)
        layout.setSpacing(8)
        layout.addWidget(self._left, 1)
        layout.addWidget(self.new_run)
        layout.addWidget(self.menu_button)

    def adopt_field(self, field: QWidget) -> None:
        """Show the runs page's filter here from now on."""
        self._field = field
        self._left.addWidget(field)

    def show_field(self) -> None:
        if self._field:
            self._left.setCurrentWidget(self._field)

    def show_title(self, text: str) -> None:
        self.title.setText(text)
        self._left.setCurrentWidget(self.title)
