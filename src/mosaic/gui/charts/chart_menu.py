"""What can be done with a chart: copy, save, log scale."""

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QFileDialog, QMenu, QWidget

from mosaic.gui.charts.picture import FORMATS, PictureError

if TYPE_CHECKING:
    from collections.abc import Callable

    from mosaic.gui.charts.chart import Chart
    from mosaic.gui.context import Context

FOLDER = "charts/folder"  # where the last picture was saved


def open_menu(chart: "Chart", context: "Context", place: QPoint) -> QMenu:
    menu = QMenu(chart)
    menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    log = menu.addAction("Log scale")
    log.setCheckable(True)
    log.setChecked(chart.is_log)
    log.triggered.connect(lambda is_on: _choose_log(chart, is_on))
    follow = menu.addAction("Show everything and follow")
    follow.setEnabled(not chart.is_following)
    follow.triggered.connect(lambda: chart.follow())
    menu.addSeparator()
    menu.addAction("Copy picture").triggered.connect(lambda: chart.copy_picture())
    menu.addAction("Copy values (TSV)").triggered.connect(lambda: chart.copy_data())
    for ending in FORMATS:
        action = menu.addAction(f"Save as {ending[1:].upper()}…")
        action.triggered.connect(
            lambda _=False, ending=ending: ask_and_save(chart, context, chart.title, ending, chart.save)
        )
    menu.popup(place)
    return menu


def ask_and_save(
    parent: QWidget, context: "Context", title: str, ending: str, save: "Callable[[Path], None]"
) -> QFileDialog:
    """Ask for a file without blocking the window; then `save` to it and say so."""
    folder = Path(context.memory.value(FOLDER, str(Path.home())))
    name = "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in title) or "chart"
    dialog = QFileDialog(parent, "Save picture", str(folder / f"{name}{ending}"), f"Pictures (*{ending})")
    dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
    dialog.setDefaultSuffix(ending[1:])
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    dialog.fileSelected.connect(lambda path: _save(context, Path(path), save))
    dialog.open()
    return dialog


def _save(context: "Context", path: Path, save: "Callable[[Path], None]") -> None:
    try:
        save(path)
    except PictureError as error:
        context.notices.problem(str(error))
        return
    context.memory.remember(FOLDER, str(path.parent))
    context.notices.say(f"Saved {path}.")


def _choose_log(chart: "Chart", is_on: bool) -> None:
    chart.set_options(log_y=is_on)
    chart.log_chosen.emit(is_on)
