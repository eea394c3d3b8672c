"""Train: the settings that matter, the GPU, live frames and tracking, a name; everything else in folds."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import Qt

from mosaic.gui.new_run.form_view import Chosen, FormView
from mosaic.gui.new_run.page import Page
from mosaic.gui.widgets.buttons import button
from mosaic.gui.widgets.labels import label
from mosaic.present.form_roles import FIRST, FRAMES, GPU, TENSORBOARD, WANDB
from mosaic.present.forms import Form
from mosaic.present.option_texts import OptionTexts
from mosaic.present.run_request import TRAIN, RunRequest

if TYPE_CHECKING:
    from mosaic.catalog.descriptor import Descriptor
    from mosaic.client import Run
    from mosaic.gui.context import Context

MEMORY = "new_run/typed/"  # and the worker's name


class TrainPage(Page):
    def __init__(self, context: "Context") -> None:
        super().__init__(context, FormView("new_run.train", _chosen, show_help=False), "new_run.train")
        self._worker = ""
        self._schema: dict[str, Any] = {}
        self.note = label("", "muted", wrap=True, name="new_run.train.note")
        self.defaults = button("Reset to defaults", self.reset, "flat", name="new_run.train.defaults")
        for widget in (self.note, self.view.first, self.options.gpu, self.view.second, self.options.naming):
            self.body.addWidget(widget)
        for widget in (self.options.resources, self.view.all, self.view.other_part):
            self.body.addWidget(widget)
        self.body.addWidget(self.defaults, 0, Qt.AlignmentFlag.AlignLeft)
        self.body.addStretch(1)
        self.options.gpu_wanted.connect(self._use_gpu)

    def show_worker(self, worker: str, descriptor: "Descriptor") -> None:
        self._worker, self._schema = worker, dict(descriptor.schema)
        form = Form(descriptor.schema)
        form.restore(self._remembered())
        self._show(form, self._why_free(descriptor) or form.note)

    def fill(self, run: "Run") -> None:
        """Take over everything that a run was given."""
        config = run.config or {}
        form = Form(self._schema)
        secret = form.fill((config.get("metadata") or {}).get("worker", {}).get("config") or {})
        self._show(form, f"Secrets are not copied: {', '.join(secret)}." if secret else form.note)
        self.options.show_options(OptionTexts.of(config))
        self.changed.emit()

    def preset(self, settings: Mapping[str, Any]) -> None:
        """Begin with these settings instead of the remembered ones."""
        form = Form(self._schema)
        form.fill(settings)
        self._show(form, form.note)
        self.changed.emit()

    def request(self) -> RunRequest:
        return RunRequest(TRAIN, self._worker, tuple(self.view.form.settings()), self.options.texts.options())

    def remember(self) -> None:
        if self._worker:
            self.context.memory.remember(MEMORY + self._worker, json.dumps(self.view.form.typed()))

    def reset(self) -> None:
        self.view.show_form(Form(self._schema), self._known_envs())
        self.options.show_options(OptionTexts())
        self.changed.emit()

    def _show(self, form: Form, note: str) -> None:
        self.note.setText(note)
        self.note.setVisible(bool(note))
        self.view.show_form(form, self._known_envs())

    def _why_free(self, descriptor: "Descriptor") -> str:
        """Why the settings are typed as key=value."""
        if self.context.root is None:
            place = self.context.host or "another machine"
            return f"The workers of {place} cannot be listed from here. Type their settings as key=value."
        if descriptor.problem:
            problem = descriptor.problem.rstrip(".")
            return f"The worker does not describe its settings: {problem}. Type them as key=value."
        return "" if descriptor.schema else "The worker publishes no schema. Its settings are passed on unchecked."

    def _remembered(self) -> dict[str, Any]:
        try:
            found = json.loads(self.context.memory.value(MEMORY + self._worker, ""))
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}

    def _known_envs(self) -> list[str]:
        """The environments of this worker's newest runs."""
        name = self._worker.partition("@")[0]
        runs = [run for run in self.context.hub.runs.values() if run.worker_name == name and run.env_id]
        newest = sorted(runs, key=lambda run: -run.created_at)
        return list(dict.fromkeys(run.env_id for run in newest))[:20]

    def _use_gpu(self, is_wanted: bool) -> None:
        """A GPU that the worker does not use would be reserved for nothing: switch on its own setting too."""
        if field := self.view.form.roles.get(GPU):
            self.view.form.set(field.key, "true" if is_wanted else field.default)
            self.view.refresh()


def _chosen(form: Form) -> tuple[Chosen, Chosen]:
    roles = form.roles
    return (
        [(role, roles[role]) for role in FIRST if role in roles],
        [(role, roles[role]) for role in (FRAMES, TENSORBOARD, WANDB) if role in roles],
    )
