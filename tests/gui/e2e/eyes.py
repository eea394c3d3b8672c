"""Finds words on a screenshot, as a person would. The window is not asked where its widgets are."""

from dataclasses import dataclass

import numpy as np
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QFont, QFontMetrics, QImage, QPainter

from mosaic.gui.theme import text_font

ENOUGH = 0.84  # of 1: how like the word a place must look; the neighbours of the right place have less


@dataclass(frozen=True)
class Spot:
    """The rectangle of a word on the screen."""

    left: int
    top: int
    width: int
    height: int
    likeness: float

    @property
    def centre(self) -> tuple[int, int]:
        return self.left + self.width // 2, self.top + self.height // 2


def find(picture: np.ndarray, word: str, size_px: int = 13, is_bold: bool = False) -> Spot | None:
    """The place on the picture (height × width, grey, float) that looks most like the word; None if none does."""
    pattern = _draw(word, size_px, is_bold)
    likeness = _correlate(picture, pattern)
    top, left = np.unravel_index(np.argmax(likeness), likeness.shape)
    best = float(likeness[top, left])
    height, width = pattern.shape
    return Spot(int(left), int(top), width, height, best) if best >= ENOUGH else None


def _draw(word: str, size_px: int, is_bold: bool) -> np.ndarray:
    """The word as the window draws it, cut to its letters with a margin of 1 px."""
    font = text_font()
    font.setPixelSize(size_px)
    if is_bold:
        font.setWeight(QFont.Weight.DemiBold)
    metrics = QFontMetrics(font)
    image = QImage(metrics.horizontalAdvance(word) + 16, metrics.height() + 8, QImage.Format.Format_Grayscale8)
    image.fill(QColor("white"))
    painter = QPainter(image)
    painter.setFont(font)
    painter.drawText(image.rect(), Qt.AlignmentFlag.AlignCenter, word)
    painter.end()
    pixels = np.frombuffer(image.constBits(), np.uint8).reshape(image.height(), image.bytesPerLine())
    ink = 255.0 - pixels[:, : image.width()]
    rows, columns = np.nonzero(ink.max(1) > 40)[0], np.nonzero(ink.max(0) > 40)[0]
    return ink[rows[0] - 1 : rows[-1] + 2, columns[0] - 1 : columns[-1] + 2]


def _correlate(picture: np.ndarray, pattern: np.ndarray) -> np.ndarray:
    """How like the pattern each place looks, from 0 to 1, whatever the colours of text and ground are."""
    centred = pattern - pattern.mean()
    height, width = pattern.shape
    shape = picture.shape
    product = np.fft.irfft2(np.fft.rfft2(picture) * np.conj(np.fft.rfft2(centred, shape)), shape)
    product = product[: shape[0] - height + 1, : shape[1] - width + 1]
    count = height * width
    spread = _box(picture**2, height, width) - _box(picture, height, width) ** 2 / count
    # A ground without any letters has no spread; noise of the transform must not look like a word there.
    scale = np.sqrt(np.maximum(spread, 1.0) * (centred**2).sum())
    return np.where(spread > count, np.abs(product) / scale, 0.0)


def _box(values: np.ndarray, height: int, width: int) -> np.ndarray:
    """The sum of every height × width window."""
    sums = np.pad(values.cumsum(0).cumsum(1), ((1, 0), (1, 0)))
    return sums[height:, width:] - sums[:-height, width:] - sums[height:, :-width] + sums[:-height, :-width]
