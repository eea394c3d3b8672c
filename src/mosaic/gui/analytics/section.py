"""The section "Analytics" of a run's tab. Everything in it comes from the run's folder, whatever its worker is."""

import shlex
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QHideEvent, QShowEvent
from PySide6.QtWidgets import QScrollArea, QStackedWidget, QVBoxLayout, QWidget

from mosaic.client.endpoint import by_ssh
from mosaic.gui.analytics.boards import Boards
from mosaic.gui.analytics.file_list import FileList
from mosaic.gui.analytics.opening import open_address
from mosaic.gui.widgets.buttons import button
from mosaic.gui.widgets.card import Card
from mosaic.gui.widgets.copy_field import CopyField
from mosaic.gui.widgets.empty import EmptyState
from mosaic.gui.widgets.labels import label
from mosaic.gui.widgets.problem import Problem
from mosaic.present.analytics import Analytics, Wandb, read_analytics
from mosaic.present.text import printable

if TYPE_CHECKING:
    from mosaic.gui.context import Context
    from mosaic.gui.hub.job import Job

REFRESH_MS = 5000
OPEN_BOARD, STARTING_BOARD = "Open in TensorBoard", "Starting TensorBoard…"
NOTHING_YET = "TensorBoard curves, videos and reports appear here as the run writes them, if its settings ask for them."
NOTHING = "This run left no TensorBoard files, videos or reports. Switch them on in its settings and run it again."
ELSEWHERE = "The run is on another machine, and its files are there. Over there, use: {mosaic} tensorboard"


class AnalyticsSection(QWidget):
    """Reads the folder while it is on the screen, and again every few seconds while the run is live."""

    def __init__(self, context: "Context", run_id: str) -> None:
        super().__init__()
        self.setObjectName("analytics")
        self._context = context
        self._run_id = run_id
        self._reading: Job | None = None
        self._timer = QTimer(self, interval=REFRESH_MS)
        self._timer.timeout.connect(self.refresh)
        self.problem = Problem()
        self.board_button = button(
            OPEN_BOARD, self._open_board, "primary", "Start TensorBoard on this run and open the browser"
        )
        self.board_button.setObjectName("analytics.tensorboard")
        self.board = self._board_card()
        self.wandb = WandbCard(context)
        self.videos = FileList(context, "Videos", "analytics.videos")
        self.reports = FileList(context, "Reports", "analytics.reports")
        self.nothing = EmptyState("Nothing to open yet", NOTHING_YET)
        self.pages = QStackedWidget()
        self._lay_out()
        self.show_analytics(Analytics())

    def refresh(self) -> None:
        """Read the folder again, unless that is happening already."""
        run = self._context.hub.runs.get(self._run_id)
        if run and run.state.is_over:
            self._timer.stop()
        if self._reading is None and self._context.root is not None and run:
            run_dir, origin = run.run_dir, run.origin
            self._reading = self._context.hub.compute(
                lambda: read_analytics(run_dir, origin), self._read, self._fail_to_read, owner=self
            )

    def show_analytics(self, found: Analytics) -> None:
        self.board.setVisible(found.has_tensorboard)
        self.wandb.show_wandb(found.wandb)
        self.videos.show_files(found.videos)
        self.reports.show_files(found.reports)
        self.nothing.set_text(*self._nothing_words())
        self.pages.setCurrentIndex(0 if found.is_empty else 1)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._timer.start()
        self.refresh()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._timer.stop()

    def _nothing_words(self) -> tuple[str, str]:
        run = self._context.hub.runs.get(self._run_id)
        if self._context.root is None:
            host = self._context.host
            return "On another machine", ELSEWHERE.format(mosaic=by_ssh(host) if host else "mosaic")
        return ("Nothing to open", NOTHING) if run and run.state.is_over else ("Nothing to open yet", NOTHING_YET)

    def _read(self, found: Analytics) -> None:
        self._reading = None
        self.show_analytics(found)

    def _fail_to_read(self, error: Exception) -> None:
        self._reading = None
        self.problem.show_problem("The run's folder cannot be read.", str(error))

    def _open_board(self) -> None:
        run, root = self._context.hub.runs.get(self._run_id), self._context.root
        if run is None or root is None:
            return
        self.problem.clear()
        self.board_button.setEnabled(False)
        self.board_button.setText(STARTING_BOARD)
        boards = Boards.of(self._context.hub)
        self._context.hub.compute(lambda: boards.address(root, run), self._show_board, self._fail_board, owner=self)

    def _show_board(self, url: str) -> None:
        self._reset_board_button()
        self.board_address.set_text(url)
        self.board_address.show()
        open_address(url, self._context.notices)

    def _fail_board(self, error: Exception) -> None:
        self._reset_board_button()
        sentence, _, details = str(error).partition("\n")
        self.problem.show_problem(sentence, details)

    def _reset_board_button(self) -> None:
        self.board_button.setEnabled(True)
        self.board_button.setText(OPEN_BOARD)

    def _board_card(self) -> Card:
        card = Card("TensorBoard")
        card.head.addWidget(self.board_button)
        card.body.addWidget(label("All curves that the worker wrote for TensorBoard, in your browser.", "muted"))
        self.board_address = CopyField("", "The address of TensorBoard")
        card.body.addWidget(self.board_address)
        self.board_address.hide()
        return card

    def _lay_out(self) -> None:
        content = QWidget()
        inner = QVBoxLayout(content)
        inner.setContentsMargins(16, 8, 16, 8)
        inner.setSpacing(8)
        for widget in (self.board, self.wandb, self.videos, self.reports):
            inner.addWidget(widget)
        inner.addStretch(1)
        area = QScrollArea(widgetResizable=True)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        area.setWidget(content)
        self.pages.addWidget(self.nothing)
        self.pages.addWidget(area)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(self.problem)
        layout.addWidget(self.pages, 1)


class WandbCard(Card):
    """The run at Weights & Biases: its page, or the command that uploads what was recorded offline."""

    def __init__(self, context: "Context") -> None:
        super().__init__("Weights & Biases")
        self._context = context
        self._url = ""
        self.open_button = button("Open in W&&B", self._open, "plain", name="analytics.wandb")  # & marks a shortcut
        self.open_button.setAccessibleName("Open in W&B")
        self.words = label("", "muted", wrap=True)
        self.command = CopyField("", "The command that uploads the run")
        self.head.addWidget(self.open_button)
        self.body.addWidget(self.words)
        self.body.addWidget(self.command)

    def show_wandb(self, wandb: Wandb | None) -> None:
        self.setVisible(wandb is not None)
        if wandb is None:
            return
        self._url = wandb.url
        self.open_button.setVisible(bool(wandb.url))
        self.words.setText(_wandb_words(wandb))
        self.command.setVisible(bool(wandb.offline))
        self.command.set_text(shlex.join(["wandb", "sync", *map(str, wandb.offline)]) if wandb.offline else "")

    def _open(self) -> None:
        open_address(self._url, self._context.notices)


def _wandb_words(wandb: Wandb) -> str:
    project = f"Project {printable(wandb.project)}. " if wandb.project else ""
    if wandb.offline:
        return f"{project}It was recorded offline. Upload it with this command, in the worker's environment:"
    if wandb.url:
        return project.strip()
    return f"{project}The worker left no link; find the run in its project at wandb.ai."
