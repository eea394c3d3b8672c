"""FrameView: paints one frame as large as it fits, with notes over it, or says in words why there is none."""

from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QRect, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QGuiApplication, QImage, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from mosaic.gui.frames.image import image_of
from mosaic.present.frame_fit import fit
from mosaic.present.text import printable

if TYPE_CHECKING:
    from mosaic.gui.context import Context

PAD = 8
SHRINKS = 0.6  # frames that are drawn smaller than this are averaged
LINE_GAP = 8


class FrameView(QWidget):
    """1. The last frame stays until another one comes. 2. Text is painted as it is, never interpreted as markup."""

    def __init__(self, context: "Context", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = context.theme
        self._image: QImage | None = None
        self._target = QRectF()  # where the frame was painted
        self._title = self._text = self._overlay = self._note = ""
        self.setObjectName("frames.view")
        self.setAccessibleName("Frame of the environment")
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setMinimumSize(96, 72)
        self._theme.changed.connect(self.update)

    def sizeHint(self) -> QSize:
        return QSize(480, 360)

    def show_frame(self, pixels: Any) -> None:
        """A uint8 array, height × width [× 1, 3 or 4]. It may have another size than the one before."""
        try:
            self._image = image_of(pixels)
        except ValueError as error:
            self.set_message("This frame cannot be shown", str(error))
            return
        self.update()

    def clear(self) -> None:
        self._image = None
        self.update()

    def set_message(self, title: str, text: str = "") -> None:
        """What is shown while there is no frame."""
        words = printable(title), printable(text)
        if words == (self._title, self._text):
            return
        self._title, self._text = words
        self.setAccessibleDescription(f"{title}. {text}" if text else title)
        self.update()

    def set_overlay(self, text: str) -> None:
        """Numbers in the lower left corner of the frame; empty for none."""
        if text != self._overlay:
            self._overlay = printable(text)
            self.update()

    def set_note(self, text: str) -> None:
        """One word or two in the upper right corner: "Paused", "Ended"."""
        if text != self._note:
            self._note = printable(text)
            self.update()

    @property
    def message(self) -> tuple[str, str]:
        return self._title, self._text

    @property
    def overlay(self) -> str:
        return self._overlay

    @property
    def note(self) -> str:
        return self._note

    @property
    def picture(self) -> QImage | None:
        """The frame in its own size."""
        return self._image

    def copy_picture(self) -> bool:
        """Put the frame on the clipboard; False if there is none."""
        if self._image is None:
            return False
        QGuiApplication.clipboard().setImage(self._image)
        return True

    def paintEvent(self, _: QPaintEvent) -> None:
        painter = QPainter(self)
        self._target = QRectF(self.rect())
        if self._image is None:
            painter.fillRect(self.rect(), QColor(self._theme.colours.ground))
            self._paint_message(painter)
        else:
            self._paint_frame(painter, self._image)
        if self._image is not None and self._overlay:
            self._paint_chip(painter, self._overlay, Qt.AlignmentFlag.AlignBottom | Qt.AlignmentFlag.AlignLeft)
        if self._note:
            self._paint_chip(painter, self._note, Qt.AlignmentFlag.AlignTop | Qt.AlignmentFlag.AlignRight)

    def _paint_frame(self, painter: QPainter, image: QImage) -> None:
        ratio = self.devicePixelRatioF()
        place = fit(image.width(), image.height(), round(self.width() * ratio), round(self.height() * ratio))
        target = QRectF(place.left / ratio, place.top / ratio, place.width / ratio, place.height / ratio)
        self._target = target
        self._fill_around(painter, target)
        if place.width < SHRINKS * image.width():
            # Four neighbours are too few for a frame that shrinks this much: thin lines would be lost.
            smooth = Qt.TransformationMode.SmoothTransformation
            image = image.scaled(place.width, place.height, Qt.AspectRatioMode.IgnoreAspectRatio, smooth)
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, place.is_smooth)
        painter.drawImage(target, image, QRectF(image.rect()))

    def _fill_around(self, painter: QPainter, target: QRectF) -> None:
        """Only the bars beside the frame: filling all of it would cost as much as drawing the frame."""
        colour, width, height = QColor(self._theme.colours.ground), self.width(), self.height()
        for bar in (
            QRectF(0, 0, width, target.top()),
            QRectF(0, target.bottom(), width, height - target.bottom()),
            QRectF(0, target.top(), target.left(), target.height()),
            QRectF(target.right(), target.top(), width - target.right(), target.height()),
        ):
            if bar.width() > 0 and bar.height() > 0:
                painter.fillRect(bar, colour)

    def _paint_message(self, painter: QPainter) -> None:
        wraps = Qt.AlignmentFlag.AlignHCenter | Qt.TextFlag.TextWordWrap
        room = self.rect().adjusted(3 * PAD, PAD, -3 * PAD, -PAD)
        font = painter.font()
        font.setBold(True)
        painter.setFont(font)
        title = painter.boundingRect(room, wraps, self._title)
        font.setBold(False)
        painter.setFont(font)
        text = painter.boundingRect(room, wraps, self._text)
        top = room.top() + max(0, (room.height() - title.height() - LINE_GAP - text.height()) // 2)
        painter.setPen(QColor(self._theme.colours.muted))
        below = top + title.height() + LINE_GAP
        painter.drawText(QRect(room.left(), below, room.width(), room.bottom() - below), wraps, self._text)
        font.setBold(True)
        painter.setFont(font)
        painter.setPen(QColor(self._theme.colours.text))
        painter.drawText(QRect(room.left(), top, room.width(), title.height()), wraps, self._title)

    def _paint_chip(self, painter: QPainter, text: str, corner: Qt.AlignmentFlag) -> None:
        metrics = painter.fontMetrics()
        # In the corner of the frame, or of the view where the frame is too small for the words.
        is_roomy = self._target.width() >= metrics.horizontalAdvance(text) + 4 * PAD
        room = (self._target.toRect() if is_roomy else self.rect()).adjusted(PAD, PAD, -PAD, -PAD)
        text = metrics.elidedText(text, Qt.TextElideMode.ElideRight, room.width() - 2 * PAD)
        width, height = metrics.horizontalAdvance(text) + 2 * PAD, metrics.height() + PAD
        left = room.right() - width + 1 if corner & Qt.AlignmentFlag.AlignRight else room.left()
        top = room.bottom() - height + 1 if corner & Qt.AlignmentFlag.AlignBottom else room.top()
        chip = QRect(left, top, width, height)
        ground = QColor(self._theme.colours.surface)
        ground.setAlpha(224)  # readable on any picture, which stays visible behind it
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(ground)
        painter.drawRoundedRect(chip, 4, 4)
        painter.setPen(QColor(self._theme.colours.text))
        painter.drawText(chip, Qt.AlignmentFlag.AlignCenter, text)
