"""The record of one decision: a row of the ledger, and in short the answer's `report`."""

import time
import uuid
from collections import Counter
from typing import Any

from mosaic_sdk.llm.cost import cost_of
from mosaic_sdk.llm.reply import Reply
from mosaic_sdk.llm.settings import EndpointSettings

VERSION = 1
_IN_REPORT = (
    "model_served",
    "requests",
    "tokens_in",
    "tokens_cached",
    "tokens_out",
    "latency_ms",
    "retries",
    "illegal",
    "infrastructure",
    "fallback",
    "finish_reason",
    "cost",
    "replayed",
)


class Record:
    """Counts while a decision is made. `place` says which decision it is."""

    def __init__(self, config: EndpointSettings, place: dict[str, Any]) -> None:
        self._config = config
        self._place = place
        self._began = time.monotonic()
        self._requests = self._retries = 0
        self._illegal: Counter[str] = Counter()
        self._infrastructure: Counter[str] = Counter()
        self._tokens = Counter(tokens_in=0, tokens_cached=0, tokens_out=0)
        self._last = Reply("")

    def sent(self) -> None:
        self._requests += 1

    def retried(self) -> None:
        self._retries += 1

    def failed(self, kind: str) -> None:
        self._infrastructure[kind] += 1

    def answered(self, reply: Reply) -> None:
        self._last = reply
        for name in self._tokens:
            self._tokens[name] += getattr(reply, name)

    def was_illegal(self, kind: str) -> None:
        self._illegal[kind] += 1

    def row(self, *, action: Any, name: Any, text: str, fallback: str = "", error: str = "") -> dict[str, Any]:
        """The decision's row of the ledger."""
        return {
            "version": VERSION,
            "call_id": uuid.uuid4().hex,
            "ts": round(time.time(), 3),
            **self._place,
            "model": self._config.model,
            "model_served": self._last.model,
            "system_fingerprint": self._last.fingerprint,
            "requests": self._requests,
            **self._tokens,
            "latency_ms": round((time.monotonic() - self._began) * 1000, 3),
            "retries": self._retries,
            "illegal": sum(self._illegal.values()),
            "illegal_kinds": dict(self._illegal),
            "infrastructure": dict(self._infrastructure),
            "fallback": fallback,
            "action": action,
            "action_name": name,
            "text": text,
            "finish_reason": self._last.finish_reason,
            "cost": cost_of(self._config, **self._tokens),
            "error": error,
            "replayed": False,
        }


def report_of(row: dict[str, Any]) -> dict[str, Any]:
    """What the answer to select_action says of the decision."""
    return {name: row[name] for name in _IN_REPORT if name in row}
