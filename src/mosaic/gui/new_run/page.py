"""What the four modes of the sheet have in common."""

from typing import TYPE_CHECKING

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from mosaic.gui.new_run.form_view import FormView
from mosaic.gui.new_run.options_box import OptionsBox
from mosaic.present.form_check import owner_of
from mosaic.present.option_texts import OPTION_OF

if TYPE_CHECKING:
    from mosaic.catalog.descriptor import Descriptor
    from mosaic.gui.context import Context
    from mosaic.present.run_request import RunRequest

CONFIG = "metadata.worker.config."


class Page(QWidget):
    """A form for one mode. It knows what to submit and where each refusal belongs."""

    changed = Signal()

    def __init__(self, context: "Context", view: FormView, name: str) -> None:
        super().__init__()
        self.context = context
        self.view = view
        self.options = OptionsBox(context, name)
        self.view.changed.connect(self.changed)
        self.options.changed.connect(self.changed)
        self.body = QVBoxLayout(self)
        self.body.setContentsMargins(16, 8, 16, 16)
        self.body.setSpacing(10)

    def show_worker(self, worker: str, descriptor: "Descriptor") -> None:
        raise NotImplementedError

    def request(self) -> "RunRequest":
        raise NotImplementedError

    def first_control(self) -> QWidget:
        """Where the keyboard goes when the page appears."""
        return next(iter(self.view.rows.values())).editor if self.view.rows else self.view.other

    def problem(self) -> tuple[str, str]:
        """The first field that is wrong, and its sentence; empty if nothing is."""
        found = {**self.view.form.problems(), **{f"--{key}": text for key, text in self.options.problems().items()}}
        return next(iter(found.items()), ("", ""))

    def show_first_problem(self) -> None:
        key, sentence = self.problem()
        if key.startswith("--"):
            self.options.show_problem(key.removeprefix("--"), sentence)
        elif not self.view.show_problem(key, sentence):
            self.view.other.setFocus()

    def place_refusal(self, field: str, sentence: str) -> bool:
        """Show a sentence of the daemon beside its field; False if it belongs to none of them."""
        option = next((name for path, name in OPTION_OF.items() if field.startswith(path)), "")
        if option:
            return self.options.show_problem(option, sentence.removeprefix(field).lstrip(": "))
        owner = owner_of(field.removeprefix(CONFIG), self.view.form.fields)
        return owner is not None and self.view.show_problem(owner.key, sentence.removeprefix(CONFIG))

    def refresh(self) -> None:
        self.view.refresh()
        self.options.refresh()
