"""An evaluation from a script file: choose it, see what it will play, start it."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QComboBox,
    QFileDialog,
    QGridLayout,
    QHBoxLayout,
    QLineEdit,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from mosaic.client.script_file import SUFFIXES, parse_script, read_script
from mosaic.gui.operators.submit import submit
from mosaic.gui.widgets.buttons import button
from mosaic.gui.widgets.labels import label
from mosaic.gui.widgets.polish import set_property
from mosaic.gui.widgets.problem import Problem
from mosaic.present.eval_plan import facts_of, people_of
from mosaic.present.text import printable

if TYPE_CHECKING:
    from mosaic_sdk.operators.script import EvalScript

    from mosaic.gui.context import Context
    from mosaic.gui.hub.job import Job

RECENT_KEY = "operators/scripts"
MOST_RECENT = 8
PATTERN = f"Evaluation scripts ({' '.join(f'*{suffix}' for suffix in SUFFIXES)})"
HUMAN_NOTE = "{} will be asked for actions here, in this window."
Read = tuple["dict[str, Any]", "EvalScript"]


class ScriptSheet(QWidget):
    """A Python file runs in a process of its own, so it is read only when it was chosen, and never in this thread."""

    submitted = Signal(str)  # the run's id

    def __init__(self, context: "Context") -> None:
        super().__init__()
        self.setObjectName("operators.script")
        self._context = context
        self._document: dict[str, Any] | None = None
        self._reading: Job | None = None
        self._typed = QLineEdit()
        self.path = QComboBox(editable=True)
        self.path.setLineEdit(self._typed)
        self.path.setObjectName("operators.path")
        self.path.setAccessibleName("Script file")
        self._typed.setPlaceholderText("a .yaml, .json or .py file")
        self.path.addItems(self._recent())
        self.path.setCurrentText("")
        self._problem = Problem()
        self._status = label("", "muted", name="operators.script.status")
        self._facts = QGridLayout()
        self._facts.setHorizontalSpacing(16)
        self._facts.setVerticalSpacing(6)
        self._start = button("Start", partial(self._submit, False), "primary", name="operators.start")
        self._manual = button("Open and step by hand", partial(self._submit, True), name="operators.start_manual")
        self._arrange()
        self._typed.returnPressed.connect(self.read)
        self.path.activated.connect(lambda _: self.read())
        self.path.editTextChanged.connect(lambda _: self._forget())
        self._forget()

    def _arrange(self) -> None:
        browse = button("Browse…", self._browse, name="operators.browse")
        show = button("Read", self.read, name="operators.read")
        row = QHBoxLayout()
        row.setSpacing(8)
        row.addWidget(self.path, 1)
        row.addWidget(browse)
        row.addWidget(show)
        ending = QHBoxLayout()
        ending.setSpacing(8)
        ending.addWidget(self._start)
        ending.addWidget(self._manual)
        ending.addStretch(1)
        inside = QWidget()
        layout = QVBoxLayout(inside)
        layout.setContentsMargins(16, 12, 16, 12)
        layout.setSpacing(8)
        layout.addWidget(label("Evaluation from a script", "title"))
        about = "The file says who plays what on which seeds. Teams, groups and rotations are possible only here."
        layout.addWidget(label(about, "muted", wrap=True))
        layout.addSpacing(8)
        layout.addLayout(row)
        layout.addWidget(self._problem)
        layout.addWidget(self._status)
        layout.addLayout(self._facts)
        layout.addSpacing(8)
        layout.addLayout(ending)
        layout.addStretch(1)
        scroll = QScrollArea(widgetResizable=True)
        scroll.setWidget(inside)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.addWidget(scroll)

    # ---- reading

    def read(self) -> None:
        """Read the file that is named in the field."""
        text = self.path.currentText().strip()
        if not text:
            return
        self._forget()
        path = Path(text).expanduser()
        self._status.setText(f"Reading {printable(path.name)}…")
        self._status.show()
        self._reading = self._context.hub.compute(
            lambda: _read(path), partial(self._show, str(path)), self._fail, owner=self
        )

    def _show(self, path: str, found: "Read") -> None:
        self._document, script = found
        self._remember(path)
        people = people_of(script)
        self._status.setText(HUMAN_NOTE.format(", ".join(map(printable, people))) if people else "")
        self._status.setVisible(bool(people))
        for row, (name, value) in enumerate(facts_of(script)):
            self._facts.addWidget(label(name, "muted"), row, 0, Qt.AlignmentFlag.AlignTop)
            self._facts.addWidget(label(value, wrap=True), row, 1)
        self._facts.setColumnStretch(1, 1)
        self._offer(True)

    def _fail(self, error: Exception) -> None:
        self._status.hide()
        sentence, _, details = str(error).partition("\n")
        self._problem.show_problem("\n".join(map(printable, sentence.split("\n"))), details)
        set_property(self.path, "wrong", True)

    def _forget(self) -> None:
        """Another file: what was read is no longer shown."""
        if self._reading:
            self._reading.cancel()
            self._reading = None
        self._document = None
        self._problem.clear()
        self._status.hide()
        set_property(self.path, "wrong", False)
        while item := self._facts.takeAt(0):
            if widget := item.widget():
                widget.deleteLater()
        self._offer(False)

    def _offer(self, is_ready: bool) -> None:
        self._start.setEnabled(is_ready)
        self._manual.setEnabled(is_ready)

    def _browse(self) -> None:
        dialog = QFileDialog(self, "Choose an evaluation script", str(Path(self.path.currentText()).parent), PATTERN)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
        dialog.fileSelected.connect(self._choose)
        dialog.open()

    def _choose(self, path: str) -> None:
        self.path.setCurrentText(path)
        self.read()

    # ---- recent files

    def _recent(self) -> list[str]:
        found = self._context.memory.value(RECENT_KEY)
        # An ini file holds a list of one as a text.
        known = [found] if isinstance(found, str) else found if isinstance(found, list) else []
        return [str(path) for path in known if path][:MOST_RECENT]

    def _remember(self, path: str) -> None:
        recent = list(dict.fromkeys([path, *self._recent()]))[:MOST_RECENT]
        self._context.memory.remember(RECENT_KEY, recent)
        typed = self.path.currentText()
        self.path.blockSignals(True)
        self.path.clear()
        self.path.addItems(recent)
        self.path.setCurrentText(typed)
        self.path.blockSignals(False)

    # ---- submitting

    def _submit(self, is_manual: bool) -> None:
        document = self._document
        if document is None:
            return
        self._offer(False)
        self._context.hub.ask(
            lambda client: submit(client, document, is_manual), self._submitted, self._refused, owner=self
        )

    def _submitted(self, run_id: str) -> None:
        self._offer(True)
        self.submitted.emit(run_id)

    def _refused(self, error: Exception) -> None:
        self._offer(True)
        self._problem.show_problem(printable(str(error)))


def _read(path: Path) -> "Read":
    """The document, and the script in it. BadConfig with the key, or MosaicError with the line."""
    document = read_script(path)
    return document, parse_script(document, "script")
