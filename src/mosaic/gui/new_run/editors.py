"""One control for each kind of field. All of them give and take text."""

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtGui import QStandardItem, QStandardItemModel
from PySide6.QtWidgets import QCheckBox, QComboBox, QFileDialog, QHBoxLayout, QLineEdit, QWidget

from mosaic.gui.widgets.buttons import button
from mosaic.gui.widgets.polish import set_property
from mosaic.gui.widgets.tip import plain_tip
from mosaic.present.form_fields import BOOL, CHOICE, PATH, Field

LONGEST_WORDS = 40
_TRUE, _FALSE = "true", "false"


class Editor(QWidget):
    """`edited` is sent for what a person does, never for `set_text`."""

    edited = Signal(str)

    def __init__(self, control: QWidget, *more: QWidget) -> None:
        super().__init__()
        self.control = control
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(8)
        layout.addWidget(control, 1)
        for widget in more:
            layout.addWidget(widget)
        self.setFocusProxy(control)

    def text(self) -> str:
        raise NotImplementedError

    def set_text(self, text: str) -> None:
        raise NotImplementedError

    def set_wrong(self, is_wrong: bool) -> None:
        set_property(self.control, "wrong", is_wrong)


class LineEditor(Editor):
    def __init__(self, hint: str = "", *more: QWidget) -> None:
        self.line = QLineEdit()
        self.line.setPlaceholderText(hint)
        super().__init__(self.line, *more)
        self.line.textEdited.connect(self.edited)

    def text(self) -> str:
        return self.line.text()

    def set_text(self, text: str) -> None:
        if text != self.line.text():
            self.line.setText(text)
            self.line.setCursorPosition(0)


class PathEditor(LineEditor):
    """A line with a button that chooses a file."""

    def __init__(self, hint: str = "", filters: str = "") -> None:
        self._filters = filters
        browse = button("Browse…", self._browse)
        super().__init__(hint, browse)
        self.browse = browse

    def _browse(self) -> None:
        dialog = QFileDialog(self, "Choose a file", self.text(), self._filters)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.setFileMode(QFileDialog.FileMode.AnyFile)
        dialog.fileSelected.connect(self.choose)
        dialog.open()

    def choose(self, path: str) -> None:
        self.set_text(path)
        self.edited.emit(path)


class SwitchEditor(Editor):
    def __init__(self, words: str = "") -> None:
        self.box = QCheckBox(words.replace("&", "&&"))
        super().__init__(self.box)
        self.box.clicked.connect(lambda: self.edited.emit(self.text()))

    def text(self) -> str:
        return _TRUE if self.box.isChecked() else _FALSE

    def set_text(self, text: str) -> None:
        self.box.setChecked(text == _TRUE)


class ChoiceEditor(Editor):
    """A list. Choices that cannot be used are at its end, disabled, with the reason. An open list takes other texts."""

    def __init__(
        self, choices: Sequence[str], unavailable: dict[str, str] | None = None, is_open: bool = False
    ) -> None:
        self.box = QComboBox()
        self.box.setEditable(is_open)
        self.box.setInsertPolicy(QComboBox.InsertPolicy.NoInsert)
        self.box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.box.setMinimumContentsLength(6)
        self.box.setMaxVisibleItems(16)
        super().__init__(self.box)
        keep_wheel_for_scrolling(self.box)
        self._fill(choices, unavailable or {})
        if is_open:
            self.box.editTextChanged.connect(self._edited)
            if completer := self.box.completer():
                completer.setCaseSensitivity(Qt.CaseSensitivity.CaseInsensitive)
        else:
            self.box.activated.connect(lambda _: self.edited.emit(self.text()))
        self._is_setting = False

    def _fill(self, choices: Sequence[str], unavailable: dict[str, str]) -> None:
        model = QStandardItemModel(self.box)
        for choice in choices:
            model.appendRow(QStandardItem(choice))
        for choice, reason in unavailable.items():
            item = QStandardItem(f"{choice} (unavailable)")
            item.setEnabled(False)
            item.setToolTip(plain_tip(f"{choice} is unavailable here: {reason}."))
            model.appendRow(item)
        self.box.setModel(model)

    def _edited(self, text: str) -> None:
        if not self._is_setting:
            self.edited.emit(text)

    def text(self) -> str:
        return self.box.currentText()

    def set_text(self, text: str) -> None:
        if text == self.box.currentText():
            return
        self._is_setting = True
        if self.box.isEditable():
            self.box.setEditText(text)
        else:
            # A text that is not in the list, from a copied run, must be seen to be corrected.
            index = self.box.findText(text)
            if index < 0:
                self.box.addItem(text)
                index = self.box.count() - 1
            self.box.setCurrentIndex(index)
        self._is_setting = False


def make_editor(field: Field, suggestions: Sequence[str] = (), has_words: bool = False) -> Editor:
    """The control for a field. `suggestions` make a list that takes other texts too.

    `has_words`: a check box says what it does, because its row has no help below.
    """
    if field.kind == CHOICE:
        empty = () if field.default in field.choices else ("",)
        return ChoiceEditor((*empty, *field.choices), dict(field.unavailable))
    if field.kind == BOOL:
        return SwitchEditor(_words(field.help) if has_words else "")
    if field.kind == PATH:
        return PathEditor(field.default)
    return (
        ChoiceEditor(suggestions, is_open=True) if len(suggestions) > 1 else LineEditor(field.default or field.limits)
    )


def _words(help: str) -> str:
    """The first sentence, if it fits beside a check box."""
    first = help.partition(". ")[0].rstrip(".")
    return first if len(first) <= LONGEST_WORDS else ""


class _WheelGuard(QObject):
    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Wheel and isinstance(watched, QWidget) and not watched.hasFocus():
            event.ignore()
            return True
        return False


def keep_wheel_for_scrolling(box: QComboBox) -> None:
    """Scrolling the sheet must not change the list that happens to be under the mouse."""
    box.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
    box.installEventFilter(_WheelGuard(box))
