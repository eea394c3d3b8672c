"""The keys of the window, and the page that lists them."""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDialog, QGridLayout, QHBoxLayout, QVBoxLayout, QWidget

from mosaic.gui.widgets.buttons import button
from mosaic.gui.widgets.labels import label

KEYS = {
    "Everywhere": (
        ("Ctrl+N", "new run"),
        ("Ctrl+F", "search on this page"),
        ("Alt+1 … Alt+4", "Runs, Compare, Operators, Workers"),
        ("Ctrl+W", "close the tab of a run"),
        ("Ctrl+PgUp, Ctrl+PgDown", "tab to the left, to the right"),
        ("Esc", "close the sheet or the notice, or go back"),
        ("F5", "list runs or workers again"),
        ("?, F1", "this list"),
    ),
    "Table of runs": (
        ("Enter", "open in a tab"),
        ("Ctrl+D", "duplicate the run"),
        ("Delete", "delete the selected runs"),
        ("Ctrl+C", "copy the selected rows"),
        ("Menu, Shift+F10", "what can be done with the run"),
    ),
    "New run": (("Enter, Ctrl+Enter", "start it"),),
    "Charts": (
        ("drag, Shift+drag", "choose a range, move it"),
        ("wheel, Ctrl+wheel", "zoom x, zoom y (click the chart first)"),
        ("+ −", "zoom"),
        ("arrows", "move the range"),
        ("0, double click", "show all of it again"),
    ),
    "Frame": (
        ("Space, F11", "pause or continue, full screen"),
        ("M, R", "metrics on the frame, record a clip"),
        ("Ctrl+S, Ctrl+C", "save or copy the picture"),
    ),
    "Log": (
        ("F3, Shift+F3", "next match, previous match"),
        ("Ctrl+End", "follow the end"),
    ),
    "Evaluations by hand": (
        ("keys of the lane", "act; its buttons show them"),
        ("Space, S, R", "play or pause, one step, reset"),
        ("N, F", "next episode, finish"),
        ("0 … 9, + −", "choose a lane, speed"),
    ),
}


class ShortcutList(QDialog):
    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("shortcuts")
        self.setWindowTitle("Keyboard shortcuts")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        columns = QHBoxLayout()
        columns.setSpacing(32)
        groups = list(KEYS.items())
        for part in (groups[:3], groups[3:]):
            columns.addLayout(_column(part))
        layout = QVBoxLayout(self)
        layout.setContentsMargins(24, 20, 24, 16)
        layout.setSpacing(16)
        layout.addWidget(label("Keyboard shortcuts", "title"))
        layout.addLayout(columns)
        layout.addWidget(button("Close", self.close), 0, Qt.AlignmentFlag.AlignRight)


def _column(groups: list[tuple[str, tuple[tuple[str, str], ...]]]) -> QGridLayout:
    grid = QGridLayout()
    grid.setHorizontalSpacing(16)
    grid.setVerticalSpacing(6)
    row = 0
    for title, keys in groups:
        grid.setRowMinimumHeight(row, 12 if row else 0)
        grid.addWidget(label(title, "heading"), row + 1, 0, 1, 2)
        for number, (key, meaning) in enumerate(keys, start=row + 2):
            grid.addWidget(label(key, "mono"), number, 0)
            grid.addWidget(label(meaning, "muted"), number, 1)
        row += len(keys) + 2
    grid.setRowStretch(row, 1)
    return grid
