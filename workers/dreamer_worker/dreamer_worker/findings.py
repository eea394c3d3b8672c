"""The findings of an update, sent back to the replay: new latent states and priorities of the steps it used."""

from __future__ import annotations

import threading
from typing import Any, Protocol

import numpy as np

from dreamer_worker.rpc import Caller, Client, Disconnected
from dreamer_worker.timers import Timers

Found = dict[str, Any]


class Findings(Protocol):
    def give_back(self, found: Found) -> None: ...
    def close(self) -> None: ...


class LateFindings:
    """Sends each finding when the next update has started: fetching it does not keep the device idle."""

    def __init__(self, replay: Caller) -> None:
        self._replay = replay
        self._last: Found | None = None

    def give_back(self, found: Found) -> None:
        last, self._last = self._last, found
        if last is not None:
            self._replay.call("update", *fetch(last))

    def close(self) -> None:
        pass


class ThreadedFindings:
    """Sends findings from a thread of its own, because fetching them waits for the device.

    One at a time. So the learner is never further ahead of the device than the update that it just started, and a
    policy call, which the device runs after everything started before it, does not wait for more than that.
    """

    def __init__(self, client: Client, timers: Timers) -> None:
        self._client = client
        self._timers = timers
        self._changed = threading.Condition()
        self._given: Found | None = None  # until it is sent
        self._error: Exception | None = None
        self._is_closed = False
        threading.Thread(target=self._run, name="findings", daemon=True).start()

    def give_back(self, found: Found) -> None:
        """Returns when the previous finding is on its way."""
        with self._timers.section("give_back"), self._changed:
            self._changed.wait_for(lambda: self._given is None or self._is_closed)
            if self._error:
                raise self._error
            self._given = found
            self._changed.notify_all()

    def close(self) -> None:
        self._client.close()
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def _run(self) -> None:
        while (found := self._next()) is not None:
            try:
                self._send(found)
            except Disconnected:
                pass  # closing
            except Exception as error:  # noqa: BLE001  the device failed: the next `give_back` raises it
                self._error = error
            with self._changed:
                self._given = None
                self._changed.notify_all()

    def _next(self) -> Found | None:
        with self._changed:
            self._changed.wait_for(lambda: self._given is not None or self._is_closed)
            return None if self._is_closed else self._given

    def _send(self, found: Found) -> None:
        with self._timers.section("fetch"):
            arguments = fetch(found)
        self._client.call("update", *arguments)


def fetch(found: Found) -> tuple[Any, ...]:
    """The arguments of the replay's `update`, as numpy arrays; waits for the device."""
    fetched = {key: np.asarray(value) for key, value in found.items()}
    ids, starts, priority = (fetched.pop(key, None) for key in ("stepid", "start", "priority"))
    return ids, fetched, starts, priority
