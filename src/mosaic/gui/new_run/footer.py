"""The end of the sheet: what the check says, the equivalent command line, and the one primary button."""

from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from mosaic.gui.widgets.buttons import button
from mosaic.gui.widgets.copy_field import CopyField
from mosaic.gui.widgets.labels import label
from mosaic.gui.widgets.polish import set_property

VALID = "✓ Checked. Ready to start."
WRONG = "✕ Correct the marked fields."


class Footer(QWidget):
    def __init__(self) -> None:
        super().__init__()
        self.note = label("", "caption", wrap=True, name="new_run.check")
        self.command = CopyField("", "The equivalent command line")
        self.command.field.setObjectName("new_run.command")
        self.command.button.setObjectName("new_run.copy")
        self.start = button("Start", kind="primary", tip="Start the run · Enter", name="new_run.start")
        row = QHBoxLayout()
        row.setSpacing(8)
        row.addWidget(self.note, 1)
        row.addWidget(self.start)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(16, 12, 16, 12)
        layout.setSpacing(8)
        layout.addWidget(self.command)
        layout.addLayout(row)

    def show_command(self, text: str) -> None:
        self.command.set_text(text)
        self.command.setEnabled(bool(text))

    def show_idle(self) -> None:
        self.start.setText("Start")
        self.start.setEnabled(True)
        self.show_note("")

    def show_starting(self) -> None:
        self.start.setText("Starting…")
        self.start.setEnabled(False)

    def show_note(self, text: str, is_problem: bool = False) -> None:
        self.note.setText(text)
        set_property(self.note, "kind", "problem" if is_problem else "caption")

    def show_checked(self, field: str, sentence: str) -> None:
        """The result of the dry run. `field`: empty if nothing is wrong; then the sentence is only a remark."""
        if field:
            self.show_note(f"✕ {sentence}", is_problem=True)
        else:
            self.show_note(sentence or VALID)
