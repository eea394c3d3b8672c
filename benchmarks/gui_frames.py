"""What a shown frame costs the window: reading it, converting it and painting it, next to a bare drawImage.

    .venv-gui/bin/python benchmarks/gui_frames.py            offscreen, or on the display in DISPLAY
    .venv-gui/bin/python benchmarks/gui_frames.py --frames 2000

Both widgets have the same size and paint the same 640×480 picture in the same run, in turns, so that a busy machine
slows both. The goal is a ratio of at most 1.5 in a real window (QT_QPA_PLATFORM=xcb). Offscreen, a bare drawImage of
the same size is one memory copy, and there reading and converting count for more.
"""

import argparse
import os
import statistics
import time

if "DISPLAY" not in os.environ:
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import numpy as np
from mosaic_sdk.fastlane import FastLaneConfig, FastLaneWriter
from PySide6.QtCore import Qt
from PySide6.QtGui import QImage, QPainter, QPaintEvent
from PySide6.QtWidgets import QApplication, QWidget

from mosaic.gui.context import Context
from mosaic.gui.frames.image import image_of
from mosaic.gui.frames.shared import SharedFrames
from mosaic.gui.frames.view import FrameView
from mosaic.gui.theme import Theme
from mosaic.present.frame_fit import fit

WIDTH, HEIGHT = 640, 480
SIZES = ((640, 480), (960, 720), (1280, 960))
BATCH = 20


class Bare(QWidget):
    """Paints an image and does nothing else."""

    def __init__(self, image: QImage) -> None:
        super().__init__()
        self._image = image
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)

    def paintEvent(self, _: QPaintEvent) -> None:
        painter = QPainter(self)
        is_smooth = fit(WIDTH, HEIGHT, self.width(), self.height()).is_smooth
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, is_smooth)
        painter.drawImage(self.rect(), self._image)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--frames", type=int, default=600, help="frames per size (default 600)")
    args = parser.parse_args()
    application = QApplication([])
    run_id = f"benchmark-{os.getpid()}"
    writer = FastLaneWriter.create(run_id, FastLaneConfig(WIDTH, HEIGHT))
    print(f"CPU ms per shown {WIDTH}×{HEIGHT} frame on {application.platformName()}, medians of batches of {BATCH}")
    print(f"{'view':>10}  {'bare':>6}  {'FrameView':>9}  {'ratio':>5}")
    try:
        for size in SIZES:
            bare, shown = measure(application, writer, run_id, size, args.frames)
            print(f"{size[0]:>5}×{size[1]:<4}  {bare:6.3f}  {shown:9.3f}  {shown / bare:5.2f}")
    finally:
        writer.close()
        writer.unlink()


def measure(
    application: QApplication, writer: FastLaneWriter, run_id: str, size: tuple[int, int], count: int
) -> tuple[float, float]:
    pixels = np.random.default_rng(0).integers(0, 255, (HEIGHT, WIDTH, 3), np.uint8)
    frames = SharedFrames(run_id, None)
    bare, view = Bare(image_of(pixels)), FrameView(Context(None, None, Theme(), None, "", None, None))  # type: ignore[arg-type]
    for widget in (bare, view):
        widget.resize(*size)
        widget.show()
        application.processEvents()
    costs: tuple[list[float], list[float]] = ([], [])
    for _ in range(count // BATCH):
        costs[0].append(sum(timed(bare.repaint) for _ in range(BATCH)) / BATCH)
        costs[1].append(sum(show_one(writer, frames, view, pixels) for _ in range(BATCH)) / BATCH)
        application.processEvents()
    frames.close()
    bare.close()
    view.close()
    return statistics.median(costs[0]), statistics.median(costs[1])


def show_one(writer: FastLaneWriter, frames: SharedFrames, view: FrameView, pixels: object) -> float:
    writer.publish(pixels)  # the worker's cost, not the window's

    def show() -> None:
        frame = frames.fresh_frame()
        if frame is not None:
            view.show_frame(frame.pixels)
            view.repaint()

    return timed(show)


def timed(work: object) -> float:
    began = time.process_time()
    work()  # type: ignore[operator]
    return (time.process_time() - began) * 1000


if __name__ == "__main__":
    main()
