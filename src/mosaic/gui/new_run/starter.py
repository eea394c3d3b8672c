"""Checks and submits what the sheet asks for, without blocking it."""

import asyncio
import hashlib
import json
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer, Signal

from mosaic.model.ulid import new_ulid
from mosaic.present.run_request import SCRIPT, TRAIN
from mosaic.present.worker_choice import refusal

if TYPE_CHECKING:
    from mosaic.client import AsyncTrainerClient, Run
    from mosaic.gui.context import Context
    from mosaic.gui.hub.job import Job
    from mosaic.present.run_request import RunRequest

PAUSE_MS = 300  # after the last key, before the check


class Starter(QObject):
    """1. A request is submitted once, however often its button is pressed: the key follows from its content.
    2. Of several checks only the newest is reported.
    """

    checked = Signal(str, str)  # the field, and what is wrong or unchecked; both empty: all is well
    started = Signal(object)  # the Run
    refused = Signal(object)  # the error

    def __init__(self, context: "Context") -> None:
        super().__init__()
        self._context = context
        self._key = ""
        self._check_job: Job | None = None
        self._submit_job: Job | None = None
        self._request: RunRequest | None = None
        self._pause = QTimer(self, singleShot=True, interval=PAUSE_MS)
        self._pause.timeout.connect(self._check)

    @property
    def is_starting(self) -> bool:
        return self._submit_job is not None

    def begin(self) -> None:
        """The sheet was opened: what is submitted now is new, even if an earlier run had the same settings."""
        self._key = new_ulid()
        self.forget_check()

    def forget_check(self) -> None:
        self._pause.stop()
        if self._check_job:
            self._check_job.cancel()

    def check_soon(self, request: "RunRequest") -> None:
        self.forget_check()
        self._request = request
        self._pause.start()

    def start(self, request: "RunRequest") -> None:
        if self.is_starting:
            return
        root = self._context.root

        async def submit(client: "AsyncTrainerClient") -> "Run":
            config = await asyncio.to_thread(request.config, root)
            digest = hashlib.sha256(json.dumps(config, sort_keys=True, default=str).encode()).hexdigest()[:16]
            return await client.submit_run(config, f"{self._key}-{digest}")

        self._submit_job = self._context.hub.ask(submit, self._done, self._failed, owner=self)

    def _done(self, run: "Run") -> None:
        self._submit_job = None
        self.started.emit(run)

    def _failed(self, error: Exception) -> None:
        self._submit_job = None
        self.refused.emit(error)

    def _check(self) -> None:
        request, root = self._request, self._context.root
        # What a parent run adds is known to the daemon alone, and so are the workers of another machine.
        if request is None or root is None or request.mode not in (TRAIN, SCRIPT):
            return
        self._check_job = self._context.hub.compute(
            lambda: refusal(request, root),
            lambda found: self.checked.emit(*found),
            lambda error: self.checked.emit("?", str(error)),
            owner=self,
        )
