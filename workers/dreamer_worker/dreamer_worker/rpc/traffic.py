"""How much goes over connections."""

from __future__ import annotations

import time


class Traffic:
    """Counts messages and bytes; `rates` returns them per second since its last call."""

    def __init__(self) -> None:
        self._since = time.monotonic()
        self._counts = dict.fromkeys(("sent", "received", "sent_bytes", "received_bytes", "wait_s"), 0.0)

    def sent(self, size: int) -> None:
        self._counts["sent"] += 1
        self._counts["sent_bytes"] += size

    def received(self, size: int) -> None:
        self._counts["received"] += 1
        self._counts["received_bytes"] += size

    def waited(self, seconds: float) -> None:
        self._counts["wait_s"] += seconds

    def rates(self) -> dict[str, float]:
        now = time.monotonic()
        counts, self._counts = self._counts, dict.fromkeys(self._counts, 0.0)
        elapsed, self._since = max(1e-9, now - self._since), now
        return {f"{name}_rate": count / elapsed for name, count in counts.items()}
