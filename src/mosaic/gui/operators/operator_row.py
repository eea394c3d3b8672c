"""One operator in the composer: its name, its kind, and the fields that its kind needs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QComboBox, QFrame, QHBoxLayout, QLineEdit, QVBoxLayout, QWidget

from mosaic.gui.widgets.buttons import icon_button
from mosaic.gui.widgets.labels import label
from mosaic.gui.widgets.polish import set_property
from mosaic.gui.widgets.tip import set_tip
from mosaic.present.eval_draft import BEST, KIND_WORDS, KINDS, NEWEST, OperatorDraft

if TYPE_CHECKING:
    from mosaic.gui.context import Context

ROW_PX = 28  # words stand at the height of fields
CHECKPOINTS = {"newest checkpoint": NEWEST, "best checkpoint": BEST}


@dataclass(frozen=True)
class Trained:
    """A trained run in the picker."""

    run_id: str
    title: str


class OperatorRow(QFrame):
    changed = Signal()
    removed = Signal()

    def __init__(self, context: "Context", draft: OperatorDraft, trained: Sequence[Trained]) -> None:
        super().__init__()
        self.setObjectName("operators.row")
        self.name = self._field("Name of the operator", "name")
        self.name.setFixedWidth(120)
        self.kind = QComboBox()
        self.kind.setAccessibleName("Kind of operator")
        for kind in KINDS:
            self.kind.addItem(KIND_WORDS[kind], kind)
        self.kind.setFixedWidth(160)
        self.run = QComboBox()
        self.run.setAccessibleName("Trained run")
        self.checkpoint = QComboBox()
        self.checkpoint.setAccessibleName("Checkpoint")
        self.checkpoint.addItems(list(CHECKPOINTS))
        self.model = self._field("Model", "model, such as qwen3-8b")
        self.base_url = self._field("Address of the endpoint", "http://127.0.0.1:8000/v1")
        self.key_env = self._field("Variable with the key", "OPENAI_API_KEY")
        set_tip(self.key_env, "The name of the variable that holds the key, never the key itself")
        self.key_file = self._field("File with the key", "file with the key (optional)")
        set_tip(self.key_file, "The absolute path of a file with mode 600 that holds the key")
        self.worker = self._field("Worker", "worker with an interactive mode")
        self.time_limit = self._field("Seconds for one action", "no limit")
        self.time_limit.setFixedWidth(96)
        self._wrong = label("", "problem", wrap=True)
        self._remove = icon_button(context.theme, "close", "Remove this operator", self.removed.emit)
        self._pages = self._make_pages()
        self._arrange()
        self.set_trained(trained)
        self.fill(draft)
        self._connect()

    def _field(self, name: str, example: str) -> QLineEdit:
        made = QLineEdit()
        made.setAccessibleName(name)
        made.setPlaceholderText(example)
        return made

    def _make_pages(self) -> dict[str, QWidget]:
        """The fields of each kind; only those of the chosen one are visible, so that a row is as low as it can be."""
        limit = label("plays with the keyboard; seconds for one action", "muted")
        return {
            "random": _page([[label("chooses a random legal action", "muted")]]),
            "passive": _page([[label("chooses the action that does nothing", "muted")]]),
            "human": _page([[limit, self.time_limit]], is_filled=False),
            "rl": _page([[self.run, self.checkpoint]]),
            "llm": _page([[self.model, self.base_url], [self.key_env, self.key_file]]),
            "worker": _page([[self.worker]]),
        }

    def _turn(self) -> None:
        for kind, page in self._pages.items():
            page.setVisible(kind == self.kind.currentData())

    def _arrange(self) -> None:
        row = QHBoxLayout()
        row.setSpacing(8)
        top = Qt.AlignmentFlag.AlignTop
        row.addWidget(self.name, 0, top)
        row.addWidget(self.kind, 0, top)
        for page in self._pages.values():
            row.addWidget(page, 1, top)
        row.addWidget(self._remove, 0, top)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(2)
        layout.addLayout(row)
        layout.addWidget(self._wrong)
        self._wrong.hide()

    def _connect(self) -> None:
        self.kind.currentIndexChanged.connect(lambda _: self._turn())
        for box in (self.kind, self.run, self.checkpoint):
            box.currentIndexChanged.connect(lambda _: self.changed.emit())
        for field in self.findChildren(QLineEdit):
            field.textEdited.connect(lambda _: self.changed.emit())

    def set_trained(self, trained: Sequence[Trained]) -> None:
        """Keep the chosen run while the list changes."""
        self.run.setPlaceholderText("choose a trained run" if trained else "no trained run yet")
        if [self.run.itemData(place) for place in range(self.run.count())] == [one.run_id for one in trained]:
            return
        chosen, title = self.run.currentData(), self.run.currentText()
        self.run.blockSignals(True)
        self.run.clear()
        for one in trained:
            self.run.addItem(one.title, one.run_id)
        if chosen and self.run.findData(chosen) < 0:
            self.run.addItem(title, chosen)  # it may still be running, or its listing is on its way
        self.run.setCurrentIndex(self.run.findData(chosen) if chosen else -1)
        self.run.blockSignals(False)

    def fill(self, draft: OperatorDraft) -> None:
        self.name.setText(draft.name)
        self.kind.setCurrentIndex(KINDS.index(draft.kind))
        self._turn()
        if draft.run and self.run.findData(draft.run) < 0:
            self.run.addItem(draft.run, draft.run)
        self.run.setCurrentIndex(self.run.findData(draft.run) if draft.run else -1)
        self.checkpoint.setCurrentIndex(list(CHECKPOINTS.values()).index(draft.checkpoint))
        self.model.setText(draft.model)
        self.base_url.setText(draft.base_url)
        self.key_env.setText(draft.key_env)
        self.key_file.setText(draft.key_file)
        self.worker.setText(draft.worker)
        self.time_limit.setText(draft.time_limit_s)

    @property
    def draft(self) -> OperatorDraft:
        return OperatorDraft(
            name=self.name.text().strip(),
            kind=str(self.kind.currentData()),
            run=str(self.run.currentData() or ""),
            checkpoint=CHECKPOINTS.get(self.checkpoint.currentText(), NEWEST),
            model=self.model.text(),
            base_url=self.base_url.text(),
            key_env=self.key_env.text(),
            key_file=self.key_file.text(),
            worker=self.worker.text(),
            time_limit_s=self.time_limit.text(),
        )

    def mark(self, problem: str) -> None:
        """Show what is wrong with this operator; empty for nothing."""
        self._wrong.setText(problem)
        self._wrong.setVisible(bool(problem))
        set_property(self.name, "wrong", bool(problem))


def _page(lines: list[list[QWidget]], is_filled: bool = True) -> QWidget:
    """Fields in one line or several, which share the width."""
    page = QWidget()
    layout = QVBoxLayout(page)
    layout.setContentsMargins(0, 0, 0, 0)
    layout.setSpacing(4)
    for parts in lines:
        row = QHBoxLayout()
        row.setSpacing(8)
        for part in parts:
            part.setMinimumHeight(ROW_PX)
            row.addWidget(part, 1 if is_filled else 0)
        if not is_filled:
            row.addStretch(1)
        layout.addLayout(row)
    return page
