"""A chart as a picture: in the clipboard, or in a PNG or SVG file."""

from pathlib import Path

from PySide6.QtCore import QBuffer, QByteArray, QIODevice, QPoint, QRectF
from PySide6.QtGui import QColor, QGuiApplication, QImage, QPainter
from PySide6.QtSvg import QSvgGenerator
from PySide6.QtWidgets import QWidget

SCALE = 2.0  # so that it stays sharp on a slide
FORMATS = (".png", ".svg")


class PictureError(Exception):
    """A picture that could not be written, in one sentence."""


def copy_picture(widget: QWidget, ground: str) -> None:
    QGuiApplication.clipboard().setImage(as_image(widget, ground))


def save_picture(widget: QWidget, ground: str, path: Path) -> None:
    """Write a PNG or an SVG, by the file's ending."""
    if path.suffix.lower() not in FORMATS:
        raise PictureError(f"{path.name}: a picture's name must end with .png or .svg.")
    saved = _save_svg(widget, ground, path) if path.suffix.lower() == ".svg" else _save_png(widget, ground, path)
    if not saved:
        raise PictureError(f"{path} could not be written. Is the folder writable, and is there space on the disk?")


def as_image(widget: QWidget, ground: str) -> QImage:
    image = QImage(widget.size() * SCALE, QImage.Format.Format_ARGB32_Premultiplied)
    image.setDevicePixelRatio(SCALE)
    image.fill(QColor(ground))
    widget.render(image)
    return image


def _save_png(widget: QWidget, ground: str, path: Path) -> bool:
    return as_image(widget, ground).save(str(path))


def _save_svg(widget: QWidget, ground: str, path: Path) -> bool:
    # Through memory: the generator does not report a full disk.
    text = QByteArray()
    buffer = QBuffer(text)
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    generator = QSvgGenerator()
    generator.setOutputDevice(buffer)
    generator.setSize(widget.size())
    generator.setViewBox(QRectF(0, 0, widget.width(), widget.height()))
    generator.setTitle(widget.accessibleName())
    painter = QPainter(generator)
    painter.fillRect(widget.rect(), QColor(ground))
    widget.render(painter, QPoint())
    painter.end()
    try:
        path.write_bytes(bytes(text.data()))
    except OSError:
        return False
    return True
