"""control/registry.json: since when the registry knows the runs, and whether it was rebuilt."""

import math
import time
from dataclasses import dataclass
from typing import Any

from mosaic.model import durable
from mosaic.model.rundir import StateRoot


@dataclass(frozen=True)
class RegistryOrigin:
    known_since: float  # unix seconds; infinite when it is unknown: no folder is younger than that
    rebuilt_at: float = 0.0  # 0: never
    why: str = ""
    runs: int = 0
    damaged_file: str = ""
    is_seen: bool = True  # the user has confirmed the message about the rebuild

    @classmethod
    def read(cls, root: StateRoot) -> "RegistryOrigin":
        try:
            stored = durable.read_json(root.registry_origin) or {}
        except OSError:
            stored = {}
        created, rebuilt = _time(stored, "created_at"), _time(stored, "rebuilt_at")
        return cls(
            known_since=max(created, rebuilt) if created else math.inf,
            rebuilt_at=rebuilt,
            why=str(stored.get("why", "")),
            runs=int(_time(stored, "runs")),
            damaged_file=str(stored.get("damaged_file", "")),
            is_seen=not rebuilt or stored.get("seen") is True,
        )

    def describe(self) -> str:
        """One sentence about the rebuild; empty if there was none, or the user has confirmed it."""
        if self.is_seen:
            return ""
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(self.rebuilt_at))
        runs = "1 run" if self.runs == 1 else f"{self.runs:,} runs"
        return f"The registry was rebuilt at {when} because {self.why}; it has {runs}."


def confirm(root: StateRoot) -> None:
    """Do not mention the last rebuild again."""
    stored = durable.read_json(root.registry_origin)
    if stored is not None:
        durable.write_json(root.registry_origin, {**stored, "seen": True})


def _time(stored: dict[str, Any], name: str) -> float:
    value = stored.get(name)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) and value > 0 else 0.0
