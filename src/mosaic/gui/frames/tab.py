"""FramesTab: the live frames of one run with their controls."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, QTimer
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from mosaic.gui.frames.bar import FrameBar
from mosaic.gui.frames.full_screen import FullScreenFrame
from mosaic.gui.frames.saving import Saving
from mosaic.gui.frames.source import FrameSource
from mosaic.gui.frames.tiles import first_cell, names_of, tiles_of
from mosaic.gui.frames.view import FrameView
from mosaic.gui.widgets.elided import ElidedLabel
from mosaic.present.frame_facts import Rate, metrics_of, size_of, watching
from mosaic.present.frame_files import save_png
from mosaic.present.frame_recorder import ClipRecorder

if TYPE_CHECKING:
    from mosaic.client import Frame
    from mosaic.gui.context import Context
    from mosaic.present.frame_files import Clip
    from mosaic.present.frame_situation import Situation

OVERLAY = "frames/overlay"
WORDS_MS = 500  # how often the numbers below the frame change: faster, nobody could read them
TILES_MS = 1000


class FramesTab(QWidget):
    """Watches the run while it is visible and not paused."""

    def __init__(self, context: "Context", run_id: str) -> None:
        super().__init__()
        self._context = context
        self._run_id = run_id
        self._rate = Rate()
        self._frame: Frame | None = None
        self._tiles: list[int] = []
        self._is_first_only = False  # the first environment of a grid is cut out of the whole picture
        self._recorder: ClipRecorder | None = None
        self._screen: FullScreenFrame | None = None
        self.view = FrameView(context)
        self.view.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.bar = FrameBar()
        self.caption = ElidedLabel("", "muted")
        self.caption.setObjectName("frames.caption")
        self._saving = Saving(context, self, run_id)
        self.source = FrameSource(context, run_id, self.view, parent=self)
        self._lay_out()
        self._connect()
        self._explain(self.source.situation)

    def _lay_out(self) -> None:
        below = QHBoxLayout()
        below.setContentsMargins(8, 4, 8, 0)
        below.addWidget(self.caption, 1)
        controls = QHBoxLayout()
        controls.setContentsMargins(4, 0, 4, 4)
        controls.addWidget(self.bar, 1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(self.view, 1)
        layout.addLayout(below)
        layout.addLayout(controls)

    def _connect(self) -> None:
        self.source.arrived.connect(self._show)
        self.source.situation_changed.connect(self._explain)
        bar = self.bar
        self.view.addActions(list(bar.actions_of_view))
        bar.metrics.setChecked(bool(self._context.memory.value(OVERLAY, True)))
        bar.pause.toggled.connect(self._pause)
        bar.metrics.toggled.connect(self._switch_overlay)
        bar.save.triggered.connect(self._save)
        bar.record.toggled.connect(self._record)
        bar.copy.triggered.connect(self._copy)
        bar.full_screen.toggled.connect(self._fill_screen)
        bar.choice.currentIndexChanged.connect(self._choose)
        self._words = QTimer(self, interval=WORDS_MS)
        self._words.timeout.connect(self._write_caption)
        self._search = QTimer(self, interval=TILES_MS)
        self._search.timeout.connect(self._find_tiles)

    def showEvent(self, event: object) -> None:
        self._words.start()
        self._search.start()
        self._find_tiles()

    def hideEvent(self, event: object) -> None:
        self._words.stop()
        self._search.stop()
        if self._recorder:
            self.bar.record.setChecked(False)

    # ---- what is shown

    def _show(self, frame: "Frame") -> None:
        is_first = self._frame is None
        self._frame = frame
        self._rate.count(frame)
        pixels = first_cell(frame.pixels, len(self._tiles) + 1) if self._is_first_only else frame.pixels
        text = metrics_of(frame) if self.bar.metrics.isChecked() and not self._shows_many else ""
        for view in self._views():
            view.set_overlay(text)
            view.show_frame(pixels)
        if self._recorder:
            self._film(frame)
        if is_first:
            self._explain(self.source.situation)

    @property
    def _shows_many(self) -> bool:
        """A picture of several environments has no reward of its own."""
        return bool(self._tiles) and self.bar.choice.currentIndex() <= 0

    def _views(self) -> list[FrameView]:
        return [self.view, self._screen.view] if self._screen else [self.view]

    def _explain(self, situation: "Situation") -> None:
        has_frame = self._frame is not None
        note = "Ended" if situation.is_over and has_frame else "Paused" if self.bar.pause.isChecked() else ""
        for view in self._views():
            view.set_message(situation.title, situation.text)
            view.set_note(note)
        for action in (self.bar.save, self.bar.copy, self.bar.full_screen, self.bar.metrics):
            action.setEnabled(has_frame)
        self.bar.record.setEnabled((has_frame and not situation.is_over) or self._recorder is not None)
        self.bar.pause.setEnabled(not situation.is_over)
        if situation.is_over and self._recorder:
            self.bar.record.setChecked(False)
        self._write_caption()

    def _write_caption(self) -> None:
        self.caption.setText(self._caption())

    def _caption(self) -> str:
        if self._recorder:
            return f"Recording: {self._recorder.filmed_s:.1f} of {self._recorder.seconds:g} s"
        if self._frame is None:
            return ""
        size = size_of(self._frame)
        if self.source.situation.is_over:
            return f"{size} · the last frame"
        if not self.source.is_watching:
            return f"{size} · not watching, so the run renders nothing"
        through = "" if self._frame.is_shared else " · through the daemon"
        return f"{watching(self._frame, self._rate)} · {size}{through}"

    def _find_tiles(self) -> None:
        if self._context.root is None or self.source.situation.is_over:
            return
        self._tiles = tiles_of(self._run_id)
        self.bar.offer(names_of(self._tiles, self._context.hub.runs.get(self._run_id)))

    # ---- what the user asks for

    def _choose(self, place: int) -> None:
        first = 1 if self.bar.choice.itemText(1).startswith("Lane") else 2
        self._is_first_only = place == 1 and first == 2
        self.source.set_lane(self._tiles[place - first] - 1 if place >= first else None)

    def _pause(self, is_paused: bool) -> None:
        self.source.set_paused(is_paused)
        self.bar.pause.setText("Continue" if is_paused else "Pause")
        if self._recorder and is_paused:
            self.bar.record.setChecked(False)
        self._explain(self.source.situation)

    def _switch_overlay(self, is_on: bool) -> None:
        self._context.memory.remember(OVERLAY, is_on)
        text = metrics_of(self._frame) if is_on and self._frame and not self._shows_many else ""
        for view in self._views():
            view.set_overlay(text)

    def _save(self) -> None:
        frame = self._frame
        if frame is None:
            return

        def write(path: Path) -> str:
            save_png(path, frame.pixels)
            return f"Saved the frame ({size_of(frame)}) to {path}."

        self._saving.ask("picture", ".png", write)

    def _copy(self) -> None:
        if self.view.copy_picture():
            self._context.notices.say("Copied the frame.")

    def _record(self, is_on: bool) -> None:
        if is_on:
            self._recorder = recorder = ClipRecorder()
            self._context.hub.compute(recorder.reduce, self._offer_clip, self._lose_clip, owner=self)
            self.destroyed.connect(recorder.end)
        elif self._recorder:
            self._recorder.end()
            self._recorder = None
        self.bar.record.setText("Stop recording" if is_on else "Record clip")
        self._write_caption()

    def _film(self, frame: "Frame") -> None:
        if self._recorder:
            self._recorder.add(frame)
            if self._recorder.is_full:
                self.bar.record.setChecked(False)

    def _offer_clip(self, clip: "Clip") -> None:
        if len(clip):
            self._saving.ask("clip", ".gif", partial(_write_clip, clip))
        else:
            self._context.notices.problem("No frame arrived during the recording, so there is no clip.")

    def _lose_clip(self, error: Exception) -> None:
        self._context.notices.problem(f"The clip was lost: {error}")

    def _fill_screen(self, is_on: bool) -> None:
        if not is_on:
            if self._screen:
                self._screen.close()
            return
        self._screen = FullScreenFrame(self._context, self)
        self._screen.closed.connect(self._leave_screen)
        self._screen.paused.connect(self.bar.pause.toggle)
        self.source.add_viewer(self._screen.view)
        self._screen.showFullScreen()
        if self._frame:
            self._screen.view.show_frame(self._frame.pixels)
        self._explain(self.source.situation)

    def _leave_screen(self) -> None:
        self._screen = None
        self.bar.full_screen.setChecked(False)


def _write_clip(clip: "Clip", path: Path) -> str:
    clip.save(path)
    return f"Saved a clip of {clip.seconds:.1f} s, {len(clip)} frames, to {path}."
