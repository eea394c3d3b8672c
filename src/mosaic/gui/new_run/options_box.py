"""What MOSAIC does with the run: GPU, name, tags, and in a fold CPUs, memory and a time limit."""

from dataclasses import replace
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from mosaic.gui.new_run.editors import LineEditor, SwitchEditor
from mosaic.gui.new_run.field_row import FieldRow
from mosaic.gui.widgets.fold import Fold
from mosaic.present.option_texts import OptionTexts, describe_gpus, describe_machine

if TYPE_CHECKING:
    from mosaic.gui.context import Context

_TEXTS = ("name", "tags", "cpus", "memory", "time_limit")


class OptionsBox(QObject):
    """Three parts for a page to place: `gpu`, `naming` and the fold `resources`."""

    changed = Signal()
    gpu_wanted = Signal(bool)

    def __init__(self, context: "Context", name: str) -> None:
        super().__init__()
        self._hub = context.hub
        self.texts = OptionTexts()
        self._request = SwitchEditor("Request a GPU")
        self._wait = SwitchEditor("Wait until it is free")
        self.rows = {
            "gpu": FieldRow("GPU", self._request, "", f"{name}.gpu"),
            "waits": FieldRow("", self._wait, "", f"{name}.gpu_waits"),
            "name": FieldRow("Name", LineEditor("optional"), "", f"{name}.name"),
            "tags": FieldRow("Tags", LineEditor("optional, separated by commas"), "", f"{name}.tags"),
            "cpus": FieldRow("CPUs", LineEditor("1"), "", f"{name}.cpus"),
            "memory": FieldRow("Memory", LineEditor("the worker's estimate, such as 4G"), "", f"{name}.memory"),
            "time_limit": FieldRow("Time limit", LineEditor("none, such as 2h"), "", f"{name}.time_limit"),
        }
        self.gpu, self.naming = self._column("gpu", "waits"), self._column("name", "tags")
        self.resources = Fold("CPUs, memory, time limit", self._column("cpus", "memory", "time_limit"))
        self.resources.header.setObjectName(f"{name}.resources")
        for key, row in self.rows.items():
            row.edited.connect(lambda text, key=key: self._take(key, text))
        self._hub.connection_changed.connect(lambda _: self.refresh())
        self.refresh()

    def show_options(self, texts: OptionTexts) -> None:
        self.texts = replace(texts)
        self.resources.set_open(bool(texts.cpus or texts.memory or texts.time_limit))
        self.refresh()

    def refresh(self) -> None:
        for key in _TEXTS:
            self.rows[key].show_text(getattr(self.texts, key))
        self._request.set_text("true" if self.texts.gpu else "false")
        self._wait.set_text("true" if self.texts.waits else "false")
        self.rows["waits"].setVisible(self.texts.gpu)
        problems = self.problems()
        for key, row in self.rows.items():
            row.show_problem(problems.get(key, ""))
        health = self._hub.connection.health
        gpus = None if health is None else [(gpu.name, gpu.owner or gpu.blocked) for gpu in health.gpus]
        is_told = "gpu" not in problems and (self.texts.gpu or bool(gpus))
        self.rows["gpu"].set_help(describe_gpus(gpus) if is_told else "")
        self.rows["cpus"].set_help(describe_machine(health.cpus, health.memory_mb) if health else "")

    def problems(self) -> dict[str, str]:
        health = self._hub.connection.health
        return self.texts.problems(None if health is None else len(health.gpus))

    def show_problem(self, key: str, sentence: str) -> bool:
        if key not in self.rows:
            return False
        if key in ("cpus", "memory", "time_limit"):
            self.resources.set_open(True)
        self.rows[key].show_problem(sentence)
        self.rows[key].editor.setFocus()
        return True

    def _take(self, key: str, text: str) -> None:
        setattr(self.texts, key, text == "true" if key in ("gpu", "waits") else text)
        self.refresh()
        if key == "gpu":
            self.gpu_wanted.emit(self.texts.gpu)
        self.changed.emit()

    def _column(self, *keys: str) -> QWidget:
        made = QWidget()
        layout = QVBoxLayout(made)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(10)
        for key in keys:
            layout.addWidget(self.rows[key])
        return made
