"""Custom Script: a file of one's own, or a script that the worker ships, in the worker's environment."""

import os
import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from PySide6.QtWidgets import QWidget

from mosaic.catalog.schema import SCRIPTS_KEY
from mosaic.gui.new_run.editors import ChoiceEditor, LineEditor, PathEditor
from mosaic.gui.new_run.field_row import FieldRow
from mosaic.gui.new_run.form_view import FormView
from mosaic.gui.new_run.page import Page
from mosaic.gui.widgets.labels import label
from mosaic.present.forms import Form
from mosaic.present.option_texts import OptionTexts
from mosaic.present.run_request import SCRIPT, RunRequest
from mosaic.present.script_header import ScriptHeader, read_header

if TYPE_CHECKING:
    from mosaic.catalog.descriptor import Descriptor
    from mosaic.client import Run
    from mosaic.gui.context import Context

FILTERS = "Scripts (*.sh *.py);;All files (*)"
NONE = "a file of your own"


class ScriptPage(Page):
    def __init__(self, context: "Context") -> None:
        super().__init__(context, FormView("new_run.script", lambda _: ((), ())), "new_run.script")
        self._worker = ""
        self._shipped: Mapping[str, Any] = {}
        self._header = ScriptHeader()
        self.shipped = FieldRow("Script", ChoiceEditor([NONE]), name="new_run.script.shipped")
        self.file = FieldRow("File", PathEditor("train.sh or train.py", FILTERS), name="new_run.script.file")
        self.about = label("", "muted", wrap=True, name="new_run.script.about")
        self.arguments = FieldRow("Arguments", LineEditor("--seed 1"), name="new_run.script.arguments")
        self.view.other_title.setText("Settings for the script's config")
        for widget in (self.shipped, self.file, self.about, self.arguments, self.view.other_part):
            self.body.addWidget(widget)
        for widget in (self.options.gpu, self.options.naming, self.options.resources):
            self.body.addWidget(widget)
        self.body.addStretch(1)
        self.shipped.edited.connect(self._choose)
        self.file.edited.connect(self._look)
        self.arguments.edited.connect(lambda _: self._edited())

    def show_worker(self, worker: str, descriptor: "Descriptor") -> None:
        self._worker = worker
        found = descriptor.schema.get(SCRIPTS_KEY)
        self._shipped = found if isinstance(found, Mapping) else {}
        self.shipped.editor = self._replaced(ChoiceEditor([NONE, *self._shipped]))
        self.shipped.setVisible(bool(self._shipped))
        self.view.show_form(Form({}))
        self._choose(NONE)

    def fill(self, run: "Run") -> None:
        """Take over the script, the arguments and the settings of a run."""
        config = run.config or {}
        worker = (config.get("metadata") or {}).get("worker") or {}
        script = str(worker.get("script") or "")
        shipped = next((name for name, part in self._shipped.items() if str(part.get("path")) == script), NONE)
        self.file.editor.set_text(script if shipped == NONE else "")
        self.shipped.editor.set_text(shipped)
        self.arguments.editor.set_text(shlex.join(map(str, worker.get("arguments") or ())))
        self.view.form.fill(worker.get("config") or {})
        self.view.refresh()
        self.options.show_options(OptionTexts.of(config))
        self._choose(shipped)

    def _replaced(self, editor: ChoiceEditor) -> ChoiceEditor:
        """Give the row a list with other choices."""
        layout, old = self.shipped.layout(), self.shipped.editor
        assert layout is not None
        layout.replaceWidget(old, editor)
        old.deleteLater()
        editor.control.setObjectName("new_run.script.shipped")
        editor.control.setAccessibleName("Script")
        editor.edited.connect(self.shipped.edited)
        return editor

    def first_control(self) -> QWidget:
        return self.shipped.editor if self._shipped else self.file.editor

    def request(self) -> RunRequest:
        name = self.shipped.editor.text()
        script = name if name in self._shipped else self.file.editor.text().strip()
        arguments = _split(self.arguments.editor.text())[0]
        settings = tuple(self.view.form.settings())
        return RunRequest(SCRIPT, self._worker, settings, self.options.texts.options(), script, arguments)

    def problem(self) -> tuple[str, str]:
        if not self.request().script:
            return "file", "Choose a script."
        if self._header.problem:
            return "file", self._header.problem
        wrong = _split(self.arguments.editor.text())[1]
        return ("arguments", wrong) if wrong else super().problem()

    def show_first_problem(self) -> None:
        key, sentence = self.problem()
        row = {"file": self.file, "arguments": self.arguments}.get(key)
        if row is None:
            super().show_first_problem()
            return
        row.show_problem(sentence)
        row.editor.setFocus()

    def place_refusal(self, field: str, sentence: str) -> bool:
        if field == "metadata.worker.script":
            self.file.show_problem(sentence.removeprefix(f"{field}: "))
            return True
        return super().place_refusal(field, sentence)

    def _choose(self, name: str) -> None:
        self.file.setVisible(name not in self._shipped)
        path = str((self._shipped.get(name) or {}).get("path", "")) if name in self._shipped else self._path()
        self._read(path)

    def _look(self, _: str) -> None:
        self._read(self._path())

    def _path(self) -> str:
        return os.path.expanduser(self.file.editor.text().strip())

    def _read(self, path: str) -> None:
        if not path:
            self._show_header("", ScriptHeader())
            return
        self.context.hub.compute(
            lambda: read_header(path), lambda header: self._show_header(path, header), None, owner=self
        )

    def _show_header(self, path: str, header: ScriptHeader) -> None:
        shipped = self._shipped.get(self.shipped.editor.text()) or {}
        if path != str(shipped.get("path", "") or self._path()):
            return  # another file has been chosen meanwhile
        self._header = header
        self.about.setText(header.sentence)
        self.about.setVisible(bool(header.sentence))
        self.file.show_problem(header.problem)
        self._edited()

    def _edited(self) -> None:
        self.arguments.show_problem(_split(self.arguments.editor.text())[1])
        self.changed.emit()


def _split(text: str) -> tuple[tuple[str, ...], str]:
    """The arguments as a shell would split them, and what is wrong with the text."""
    try:
        words = tuple(shlex.split(text))
    except ValueError:
        return (), "The quotes are not closed."
    return words, "-- cannot be passed to a script." if "--" in words else ""
