"""One call to the daemon, or one computation, whose result arrives in a later tick."""

import logging
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from typing import Any

import shiboken6
from PySide6.QtCore import QObject

from mosaic.gui.hub.outbox import Outbox

log = logging.getLogger(__name__)


class Job:
    """Can be cancelled; then neither `then` nor `failed` is called. Nor are they when `owner` is destroyed."""

    def __init__(
        self,
        outbox: Outbox,
        then: Callable[[Any], None] | None,
        failed: Callable[[Exception], None] | None,
        owner: QObject | None,
    ) -> None:
        self._outbox = outbox
        self._then = then
        self._failed = failed
        self._owner = owner
        self._future: Future[None] | None = None
        self._is_cancelled = False

    def bind(self, future: "Future[None]") -> None:
        self._future = future

    def cancel(self) -> None:
        self._is_cancelled = True
        self._then = self._failed = self._owner = None
        if self._future:
            self._future.cancel()

    async def carry_out(self, work: Awaitable[Any]) -> None:
        try:
            result = await work
        except Exception as error:  # the edge of the hub's thread: the view decides what to show
            failure = error
            if self._failed is None and not self._is_cancelled:
                log.warning("A job failed, and no view shows why", exc_info=error)
            self._outbox.put(lambda: self._finish(self._failed, failure))
        else:
            self._outbox.put(lambda: self._finish(self._then, result))

    def _finish(self, call: Callable[[Any], None] | None, value: Any) -> None:
        owner, self._owner = self._owner, None
        # Released here: the hub's thread keeps this job a moment longer, and must not be the last to hold a widget.
        self._then = self._failed = None
        is_gone = owner is not None and not shiboken6.isValid(owner)
        if call and not self._is_cancelled and not is_gone:
            call(value)
