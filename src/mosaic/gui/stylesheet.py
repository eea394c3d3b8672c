"""The stylesheet: every widget in the colours of the theme."""

from pathlib import Path
from string import Template
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mosaic.gui.theme import Colours

ICONS = Path(__file__).parent / "icons"

# 8 px grid, 4 px radius, hairlines of 1 px. Selectors with [kind=…] belong to the widgets of gui/widgets.
TEXT = """
QLabel[kind="title"] { font-size: 18px; font-weight: 600; }
QLabel[kind="heading"] { font-weight: 600; }
QLabel[kind="muted"], QLabel[kind="caption"] { color: $muted; }
QLabel[kind="caption"] { font-size: 12px; }
QLabel[kind="mono"], QLineEdit[kind="mono"], QPlainTextEdit[kind="mono"] { font-family: "$mono"; font-size: 12px; }
QLabel[kind="problem"] { color: $failed; }
QLabel:disabled, QCheckBox:disabled, QRadioButton:disabled { color: $muted; }
QToolTip { color: $text; background: $surface; border: 1px solid $line; padding: 4px; }
"""

BUTTONS = """
QPushButton, QToolButton[kind] {
  color: $text; background: $ground; border: 1px solid $border; border-radius: 4px; padding: 5px 12px; min-height: 16px;
}
QPushButton:hover, QToolButton[kind]:hover { background: $hover; }
QPushButton:pressed, QToolButton[kind]:pressed, QPushButton:checked, QToolButton[kind]:checked {
  background: $selection;
}
QPushButton:focus, QToolButton[kind]:focus { border: 1px solid $accent; }
QPushButton:disabled, QToolButton[kind]:disabled { color: $muted; background: $surface; border-color: $line; }
QPushButton[kind="primary"] { color: $on_accent; background: $accent; border-color: $accent; font-weight: 600; }
QPushButton[kind="primary"]:hover, QPushButton[kind="primary"]:pressed { background: $running; }
QPushButton[kind="primary"]:focus { border: 2px solid $text; padding: 4px 11px; }
QPushButton[kind="primary"]:disabled { color: $muted; background: $hover; border-color: $line; }
QPushButton[kind="danger"] { color: $failed; border-color: $failed; }
QPushButton[kind="danger"]:disabled { color: $muted; border-color: $line; }
QPushButton[kind="flat"], QToolButton[kind="flat"] {
  background: transparent; border-color: transparent; padding: 5px 8px;
}
QPushButton[kind="flat"]:hover, QToolButton[kind="flat"]:hover { background: $hover; }
QPushButton[kind="flat"]:disabled, QToolButton[kind="flat"]:disabled {
  background: transparent; border-color: transparent;
}
QPushButton[kind="flat"]:focus, QToolButton[kind="flat"]:focus { border: 1px solid $accent; }
QToolButton[kind="icon"] { background: transparent; border: 1px solid transparent; padding: 3px; }
QToolButton[kind="icon"]:hover { background: $hover; }
QToolButton[kind="icon"]:focus { border: 1px solid $accent; }
QToolButton[kind]::menu-indicator { image: none; }
QPushButton[kind="fold"] {
  background: transparent; border: 1px solid transparent; padding: 4px; text-align: left; font-weight: 600;
}
QPushButton[kind="fold"]:hover { background: $hover; }
QPushButton[kind="fold"]:focus { border: 1px solid $accent; }
"""

FIELDS = """
QLineEdit, QPlainTextEdit, QTextEdit, QComboBox, QAbstractSpinBox {
  color: $text; background: $ground; border: 1px solid $border; border-radius: 4px; padding: 4px 8px;
  selection-background-color: $accent; selection-color: $on_accent;
}
QLineEdit, QComboBox, QAbstractSpinBox { min-height: 18px; }
QComboBox { combobox-popup: 0; }
QPlainTextEdit, QTextEdit { padding: 4px; }
QLineEdit:focus, QPlainTextEdit:focus, QTextEdit:focus, QComboBox:focus, QAbstractSpinBox:focus {
  border: 1px solid $accent;
}
QLineEdit:read-only, QLineEdit:disabled, QComboBox:disabled, QAbstractSpinBox:disabled {
  background: $surface; border-color: $line;
}
QLineEdit:disabled, QComboBox:disabled, QAbstractSpinBox:disabled { color: $muted; }
QLineEdit[wrong="true"], QComboBox[wrong="true"], QAbstractSpinBox[wrong="true"] { border: 1px solid $failed; }
QComboBox QLineEdit { border: 0; padding: 0; background: transparent; }
QComboBox::drop-down { border: 0; width: 20px; }
QComboBox::down-arrow { image: url("$icons/down.svg"); width: 14px; height: 14px; }
QComboBox QAbstractItemView {
  background: $ground; border: 1px solid $line; padding: 2px; outline: 0;
  selection-background-color: $selection; selection-color: $text;
}
QComboBox QAbstractItemView::item { min-height: 24px; padding: 0 4px; }
QAbstractSpinBox QLineEdit { border: 0; padding: 0 0 0 6px; background: transparent; }
QAbstractSpinBox::up-button, QAbstractSpinBox::down-button { border: 0; width: 18px; background: transparent; }
QAbstractSpinBox::up-arrow { image: url("$icons/up.svg"); width: 12px; height: 12px; }
QAbstractSpinBox::down-arrow { image: url("$icons/down.svg"); width: 12px; height: 12px; }
QCheckBox, QRadioButton { spacing: 8px; }
QCheckBox::indicator, QRadioButton::indicator, QAbstractItemView::indicator, QGroupBox::indicator {
  width: 14px; height: 14px; border: 1px solid $border; background: $ground;
}
QCheckBox::indicator, QAbstractItemView::indicator { border-radius: 3px; }
QRadioButton::indicator { border-radius: 7px; }
QCheckBox::indicator:checked, QAbstractItemView::indicator:checked, QGroupBox::indicator:checked {
  background: $accent; border-color: $accent; image: url("$icons/check.svg");
}
QRadioButton::indicator:checked { background: $accent; border-color: $accent; image: url("$icons/dot.svg"); }
QCheckBox::indicator:focus, QRadioButton::indicator:focus { border: 2px solid $accent; }
QCheckBox::indicator:disabled, QRadioButton::indicator:disabled { background: $surface; border-color: $line; }
QSlider::groove:horizontal { height: 4px; border-radius: 2px; background: $line; }
QSlider::sub-page:horizontal { height: 4px; border-radius: 2px; background: $accent; }
QSlider::handle:horizontal {
  width: 12px; height: 12px; margin: -5px 0; border-radius: 7px; background: $ground; border: 1px solid $border;
}
QSlider::handle:horizontal:focus, QSlider::handle:horizontal:hover { border: 1px solid $accent; }
QProgressBar { border: 0; border-radius: 3px; background: $line; text-align: center; max-height: 6px; }
QProgressBar::chunk { border-radius: 3px; background: $accent; }
"""

VIEWS = """
QAbstractItemView { background: $ground; color: $text; border: 0; outline: 0; alternate-background-color: $surface; }
QTableView { gridline-color: $line; }
QTableView, QTreeView, QListView { selection-background-color: $selection; selection-color: $text; }
QTableView::item { padding: 0 8px; border: 0; }
QTreeView::item, QListView::item { min-height: 26px; padding: 0 4px; border: 0; }
QTreeView::item:hover, QListView::item:hover { background: $hover; }
QAbstractItemView::item:selected { background: $selection; color: $text; }
QTableView:focus, QTreeView:focus, QListView:focus { border: 0; }
QHeaderView { background: $surface; border: 0; }
QHeaderView::section {
  color: $muted; background: $surface; border: 0; border-bottom: 1px solid $line; padding: 6px 8px; font-weight: 600;
}
QHeaderView::section:hover { color: $text; }
QHeaderView::down-arrow { image: url("$icons/down.svg"); width: 12px; height: 12px; }
QHeaderView::up-arrow { image: url("$icons/up.svg"); width: 12px; height: 12px; }
QTableCornerButton::section { background: $surface; border: 0; border-bottom: 1px solid $line; }
QScrollArea, QScrollArea > QWidget > QWidget { background: transparent; border: 0; }
QScrollBar:vertical { width: 10px; background: transparent; margin: 0; }
QScrollBar:horizontal { height: 10px; background: transparent; margin: 0; }
QScrollBar::handle { background: $border; border-radius: 3px; margin: 2px; }
QScrollBar::handle:vertical { min-height: 24px; }
QScrollBar::handle:horizontal { min-width: 24px; }
QScrollBar::handle:hover { background: $muted; }
QScrollBar::add-line, QScrollBar::sub-line { width: 0; height: 0; }
QScrollBar::add-page, QScrollBar::sub-page { background: transparent; }
QSplitter::handle { background: $line; }
QSplitter::handle:hover { background: $accent; }
QSplitter::handle:horizontal { width: 1px; }
QSplitter::handle:vertical { height: 1px; }
"""

FRAMES = """
QTabWidget::pane { border: 0; border-top: 1px solid $line; }
QTabBar { background: transparent; }
QTabBar::tab {
  color: $muted; background: transparent; border: 0; border-bottom: 2px solid transparent; padding: 7px 12px;
}
QTabBar::tab:hover { color: $text; background: $hover; }
QTabBar::tab:selected { color: $text; border-bottom: 2px solid $accent; }
QMenu { background: $ground; border: 1px solid $line; padding: 4px; }
QMenu::item { padding: 6px 24px 6px 12px; border-radius: 4px; }
QMenu::item:selected { background: $hover; }
QMenu::item:disabled { color: $muted; }
QMenu::separator { height: 1px; background: $line; margin: 4px 8px; }
QMenu::indicator { width: 14px; height: 14px; left: 4px; }
QGroupBox { border: 1px solid $line; border-radius: 4px; margin-top: 10px; padding: 8px; }
QGroupBox::title { subcontrol-origin: margin; left: 8px; padding: 0 4px; color: $muted; }
QFrame[kind="card"] { background: $ground; border: 1px solid $line; border-radius: 4px; }
QFrame[kind="panel"] { background: $surface; border: 0; }
QFrame[kind="line"] { background: $line; border: 0; }
QFrame[kind="problem-box"] { background: $surface; border: 1px solid $line; border-left: 3px solid $failed; }
QFrame[kind="note"] { background: $surface; border: 1px solid $line; border-left: 3px solid $accent; }
QFrame[kind="lane"] { background: $ground; border: 1px solid $line; border-radius: 4px; }
QFrame[kind="lane"][mark="chosen"] { border: 1px solid $accent; }
QFrame[kind="lane"][mark="asked"] { border: 2px solid $accent; }
QPlainTextEdit[kind="failure"] { color: $failed; background: $surface; border-color: $line; }
QDialog, QMessageBox { background: $ground; }
"""

SHELL = """
QFrame#window\\.sidebar { background: $surface; border: 0; border-right: 1px solid $line; }
QToolButton[kind="place"] {
  color: $muted; background: transparent; border: 1px solid transparent; padding: 7px 8px; text-align: left;
}
QToolButton[kind="place"]:hover { color: $text; background: $hover; }
QToolButton[kind="place"]:checked { color: $text; background: $hover; font-weight: 600; }
QToolButton[kind="place"]:focus { border: 1px solid $accent; }
QFrame#window\\.topbar { background: $ground; border: 0; border-bottom: 1px solid $line; }
QFrame#window\\.status { background: $surface; border: 0; border-top: 1px solid $line; }
QFrame#window\\.sheet { background: $ground; border: 0; border-left: 1px solid $line; }
QLabel[kind="wordmark"] { font-weight: 700; font-size: 13px; letter-spacing: 2px; }
"""


def stylesheet(colours: "Colours", theme: str, mono: str) -> str:
    """The whole sheet. `theme`: the folder with its arrows and marks. `mono`: the family of fixed-width text."""
    values = {name: value for name, value in vars(colours).items() if isinstance(value, str)}
    values |= {"icons": (ICONS / theme).as_posix(), "mono": mono}
    return Template(TEXT + BUTTONS + FIELDS + VIEWS + FRAMES + SHELL).substitute(values)
