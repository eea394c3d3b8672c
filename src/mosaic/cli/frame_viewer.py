"""The frames of a run for a user who may press q: they come until the run is over, the time is up, or q is pressed."""

import math
import select
import sys
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, aclosing, contextmanager, nullcontext
from typing import TYPE_CHECKING

from mosaic.cli.inbox import Inbox
from mosaic.model.errors import MosaicError

if TYPE_CHECKING:
    from mosaic.cli.keyboard import Keyboard
    from mosaic.client import AsyncTrainerClient, Frame, TrainerClient

    Source = Callable[[AsyncTrainerClient], AsyncIterator[Frame]]


@contextmanager
def open_viewer(
    client: "TrainerClient", source: "Source", resume: Callable[[], None] | None = None
) -> "Iterator[FrameViewer]":
    """A viewer of one run. With `resume` it reads the keyboard; `resume` is called when Ctrl-Z was undone with fg."""
    with Inbox(client) as inbox, _keyboard(resume) as keyboard:
        yield FrameViewer(inbox, source, keyboard)


def _keyboard(resume: Callable[[], None] | None) -> "AbstractContextManager[Keyboard | None]":
    if resume is None or not sys.stdin.isatty():
        return nullcontext()
    from mosaic.cli.keyboard import Keyboard

    return Keyboard(enter=resume)


class FrameViewer:
    """Receives frames until the run is over, the time is up, or the user presses q."""

    def __init__(self, inbox: Inbox, source: "Source", keyboard: "Keyboard | None") -> None:
        self.is_left = self.is_over = False
        self._inbox = inbox
        self._keyboard = keyboard
        self._arrived: deque[Frame] = deque()
        self._error: MosaicError | None = None
        inbox.subscribe(lambda inner: _with_end(source(inner)), self._receive)

    def _receive(self, item: "Frame | MosaicError | None") -> None:
        if item is None:
            self.is_over = True
        elif isinstance(item, MosaicError):
            self._error = item
        else:
            self._arrived.append(item)

    def frames(self, seconds: float | None = None, newest: bool = False) -> "Iterator[Frame]":
        """Yield frames for `seconds` after the first one, or until the end. `newest`: skip frames that are outdated."""
        deadline = math.inf
        while not self.is_left:
            self._wait(min(1.0, max(0.0, deadline - time.monotonic())))
            while self._arrived and time.monotonic() < deadline:
                frame = self._arrived.popleft()
                if seconds and deadline == math.inf:
                    deadline = time.monotonic() + seconds
                if not (newest and self._arrived):
                    yield frame
            if self._error:
                raise self._error
            if self.is_over or time.monotonic() >= deadline:
                return

    def _wait(self, timeout_s: float) -> None:
        files = [self._inbox.fileno(), *([self._keyboard.fileno()] if self._keyboard else [])]
        ready = select.select(files, [], [], timeout_s)[0]
        if self._keyboard and self._keyboard.fileno() in ready:
            self.is_left = not {"q", "escape", "closed"}.isdisjoint(self._keyboard.keys(0))
        self._inbox.deliver()


async def _with_end(frames: "AsyncIterator[Frame]") -> "AsyncIterator[Frame | None]":
    """The frames, then None: the inbox does not report the end of a stream."""
    async with aclosing(frames):  # type: ignore[type-var]
        async for frame in frames:
            yield frame
    yield None
