"""Resume and Policy Evaluation: both start from a checkpoint of another run."""

from typing import TYPE_CHECKING, Any

from mosaic_sdk import keywords
from PySide6.QtWidgets import QWidget

from mosaic.gui.new_run.editors import LineEditor, SwitchEditor
from mosaic.gui.new_run.field_row import FieldRow
from mosaic.gui.new_run.form_view import Chosen, FormView
from mosaic.gui.new_run.page import Page
from mosaic.gui.new_run.run_choice import RunChoice
from mosaic.model.states import RunState
from mosaic.present.form_fields import Field
from mosaic.present.form_roles import STEPS
from mosaic.present.forms import Form
from mosaic.present.inherited import inherited
from mosaic.present.run_request import EVALUATE, RESUMED, RunRequest
from mosaic.present.worker_choice import takes

if TYPE_CHECKING:
    from mosaic.catalog.descriptor import Descriptor
    from mosaic.client import Run
    from mosaic.gui.context import Context


class DerivedPage(Page):
    mode = ""

    def __init__(self, context: "Context", view: FormView, name: str) -> None:
        super().__init__(context, view, name)
        self._schema: dict[str, Any] = {}
        self._worker = ""
        self.choice = RunChoice(context, name)
        self.choice.changed.connect(self.changed)
        self.choice.run_chosen.connect(self._read_run)
        self.body.addWidget(self.choice.run_row)
        self.body.addWidget(self.choice.file_row)

    def show_worker(self, worker: str, descriptor: "Descriptor") -> None:
        self._worker, self._schema = worker, dict(descriptor.schema)
        self.view.show_form(Form(inherited(self._schema, {})))

    def choose_run(self, run_id: str) -> None:
        self.choice.load(self._worker, run_id)

    def first_control(self) -> QWidget:
        return self.choice.run_row.editor

    def problem(self) -> tuple[str, str]:
        return super().problem() if self.choice.run_id else ("run", "Choose a run.")

    def show_first_problem(self) -> None:
        key, sentence = self.problem()
        if key == "run":
            self.choice.run_row.show_problem(sentence)
            self.choice.run_row.editor.setFocus()
        else:
            super().show_first_problem()

    def place_refusal(self, field: str, sentence: str) -> bool:
        if field == "metadata.checkpoint":
            self.choice.file_row.show_problem(sentence.removeprefix(f"{field}: "))
            return True
        return super().place_refusal(field, sentence)

    def refresh(self) -> None:
        super().refresh()
        self.choice.run_row.show_problem("")
        self.choice.file_row.show_problem("")

    def _read_run(self, run_id: str) -> None:
        if run_id:
            self.context.hub.ask(lambda client: client.get_run(run_id), self._show_run, None, owner=self)

    def _show_run(self, run: "Run") -> None:
        raise NotImplementedError


class ResumePage(DerivedPage):
    """The settings of the run are the defaults; what is changed here is what differs."""

    mode = RESUMED

    def __init__(self, context: "Context") -> None:
        super().__init__(context, FormView("new_run.resume", _steps), "new_run.resume")
        for widget in (self.view.first, self.options.naming, self.options.gpu, self.options.resources, self.view.all):
            self.body.addWidget(widget)
        self.body.addWidget(self.view.other_part)
        self.body.addStretch(1)

    def request(self) -> RunRequest:
        return RunRequest(
            RESUMED,
            settings=tuple(self.view.form.settings()),
            options=self.options.texts.options(),
            parent=self.choice.run_id,
            checkpoint=self.choice.checkpoint,
        )

    def _show_run(self, run: "Run") -> None:
        if run.run_id != self.choice.run_id:
            return  # another one has been chosen meanwhile
        worker = ((run.config or {}).get("metadata") or {}).get("worker") or {}
        form = Form(inherited(self._schema, worker.get("config") or {}))
        steps = form.roles.get(STEPS)
        # A training that has finished needs a larger total to continue.
        if steps and run.state is RunState.TERMINATED and run.total_steps:
            form.set(steps.key, str(2 * run.total_steps))
        self.view.show_form(form)
        self.changed.emit()


class EvaluatePage(DerivedPage):
    mode = EVALUATE

    def __init__(self, context: "Context") -> None:
        super().__init__(context, FormView("new_run.evaluate", _of_evaluations), "new_run.evaluate")
        self.episodes = FieldRow("Episodes", LineEditor("the worker's default"), name="new_run.evaluate.episodes")
        self.seed = FieldRow(
            "First seed",
            LineEditor("1000000"),
            "Episode i is played with this seed + i. Trainings do not use the seeds from 1000000.",
            "new_run.evaluate.seed",
        )
        self.video = FieldRow("Video", SwitchEditor("Record videos"), name="new_run.evaluate.video")
        self._numbers = {"episodes": (self.episodes, 1), "seed": (self.seed, 0)}
        for widget in (self.episodes, self.seed, self.video, self.view.first, self.options.naming, self.options.gpu):
            self.body.addWidget(widget)
        self.body.addWidget(self.options.resources)
        self.body.addWidget(self.view.other_part)
        self.body.addStretch(1)
        for row in (self.episodes, self.seed, self.video):
            row.edited.connect(self._edited)

    def show_worker(self, worker: str, descriptor: "Descriptor") -> None:
        super().show_worker(worker, descriptor)
        for option, row in (("episodes", self.episodes), ("seed", self.seed), ("video", self.video)):
            row.setVisible(not self._schema or takes(self._schema, option))

    def request(self) -> RunRequest:
        numbers = {name: _whole(row.editor.text()) for name, (row, _) in self._numbers.items()}
        asked = {name: number for name, number in numbers.items() if number is not None}
        if self.video.editor.text() == "true":
            asked["video"] = True
        return RunRequest(
            EVALUATE,
            settings=tuple(self.view.form.settings()),
            options=self.options.texts.options(),
            parent=self.choice.run_id,
            checkpoint=self.choice.checkpoint,
            evaluation=asked,
        )

    def problem(self) -> tuple[str, str]:
        key, sentence = super().problem()
        return (key, sentence) if sentence else next(iter(self._wrong_numbers().items()), ("", ""))

    def show_first_problem(self) -> None:
        key, _ = self.problem()
        if key in self._numbers:
            self._numbers[key][0].editor.setFocus()
        else:
            super().show_first_problem()

    def _wrong_numbers(self) -> dict[str, str]:
        found = {}
        for name, (row, least) in self._numbers.items():
            text, number = row.editor.text().strip(), _whole(row.editor.text())
            if text and (number is None or number < least):
                found[name] = f"{name}: must be an integer of at least {least}, not '{text}'."
        return found

    def _edited(self) -> None:
        wrong = self._wrong_numbers()
        for name, (row, _) in self._numbers.items():
            row.show_problem(wrong.get(name, ""))
        self.changed.emit()

    def _show_run(self, run: "Run") -> None:
        pass  # the checkpoint has the settings; those of an evaluation are its own


def _steps(form: Form) -> tuple[Chosen, Chosen]:
    return ([(STEPS, form.roles[STEPS])] if STEPS in form.roles else []), []


def _of_evaluations(form: Form) -> tuple[Chosen, Chosen]:
    """The settings whose names say that they belong to evaluations; those that `mosaic eval` fills in have own rows."""
    filled_in = form.schema.get(keywords.EVAL) or {}
    own = [field for field in form.fields if field.name.startswith("eval_") and field.path not in filled_in]
    own = [field for field in own if field.name != "eval_every"]  # during a training
    return [(_words(field), field) for field in sorted(own, key=lambda field: "gamma" not in field.name)], []


def _words(field: Field) -> str:
    words = field.name.removeprefix("eval_").replace("_", " ")
    return words[:1].upper() + words[1:]


def _whole(text: str) -> int | None:
    compact = text.strip().replace("_", "").replace(",", "")
    return int(compact) if compact.isascii() and compact.isdigit() and len(compact) < 19 else None
