"""One line of a form: a name, a control, what it means, and what is wrong with it."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QSizePolicy, QWidget

from mosaic.gui.new_run.editors import Editor
from mosaic.gui.widgets.buttons import button
from mosaic.gui.widgets.elided import ElidedLabel
from mosaic.gui.widgets.labels import label
from mosaic.gui.widgets.polish import set_property
from mosaic.gui.widgets.tip import set_tip

LABEL_PX = 104
WIDE_LABEL_PX = 168


class FieldRow(QWidget):
    """`edited(text)`: a person has changed the control. `reset()`: a person wants the default back."""

    edited = Signal(str)
    reset = Signal()

    def __init__(self, title: str, editor: Editor, help: str = "", name: str = "", label_px: int = LABEL_PX) -> None:
        super().__init__()
        self.editor = editor
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Maximum)
        self.title = ElidedLabel(title)
        self.title.setFixedWidth(label_px)
        self.title.setBuddy(editor.control)
        self.help = label(help, "caption", wrap=True)
        if not help:
            self.help.hide()  # never show(): it has no parent yet and would be a window for a moment
        self.problem = label("", "problem", wrap=True, name=f"{name}.problem")
        self.problem.hide()
        self.back = button("↺", self.reset.emit, "flat", tip="Back to the default")
        self.back.setFixedWidth(28)
        self.back.setAccessibleName(f"Reset {title}")
        self.back.setFocusPolicy(Qt.FocusPolicy.NoFocus)  # Tab goes from field to field
        self.back.hide()
        editor.control.setObjectName(name)
        editor.control.setAccessibleName(title)
        editor.control.setAccessibleDescription(help)
        editor.edited.connect(self.edited)
        self._arrange(label_px > LABEL_PX)

    def _arrange(self, is_help_wide: bool) -> None:
        layout = QGridLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setHorizontalSpacing(8)
        layout.setVerticalSpacing(2)
        layout.addWidget(self.title, 0, 0)
        # In a row of its own: the space before a hidden button must not shorten the control.
        control = QHBoxLayout()
        control.setSpacing(4)
        control.addWidget(self.editor, 1)
        control.addWidget(self.back)
        layout.addLayout(control, 0, 1)
        layout.setColumnStretch(1, 1)
        first = 0 if is_help_wide else 1
        layout.addWidget(self.problem, 1, first, 1, 2 - first)
        layout.addWidget(self.help, 2, first, 1, 2 - first)

    def show_text(self, text: str, is_changed: bool = False) -> None:
        self.editor.set_text(text)
        self.back.setVisible(is_changed)
        set_property(self.title, "kind", "heading" if is_changed else "")

    def show_problem(self, sentence: str) -> None:
        self.problem.setText(sentence)
        self.problem.setVisible(bool(sentence))
        self.editor.set_wrong(bool(sentence))

    def set_help(self, text: str) -> None:
        self.help.setText(text)
        self.help.setVisible(bool(text))

    def set_tips(self, text: str) -> None:
        for widget in (self.title, self.editor.control):
            set_tip(widget, text)
