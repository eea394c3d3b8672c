"""The score card: one line for each requirement of the contract, with what was observed instead."""

from dataclasses import dataclass, field
from typing import Any, Callable, Dict, List, Optional

OK, FAILED, SKIPPED = "ok", "failed", "skipped"
_MARKS = {OK: "✓", FAILED: "✗", SKIPPED: "·"}


class Fault(Exception):
    """What was observed instead of what the contract requires."""


class Skip(Exception):
    """Why a check does not apply to this worker."""


@dataclass(frozen=True)
class Check:
    """One line of the score card."""

    name: str
    outcome: str
    asks: str
    seen: str = ""  # what was wrong, why it was skipped, or a note

    def __str__(self) -> str:
        line = f"{_MARKS[self.outcome]} {self.name}"
        if self.outcome == FAILED:
            return f"{line}\n    the contract requires: {self.asks}\n    observed: {self.seen}"
        return f"{line} ({self.seen})" if self.seen else line


@dataclass
class ScoreCard:
    module: str
    checks: List[Check] = field(default_factory=list)

    @property
    def failed(self) -> List[str]:
        return [check.name for check in self.checks if check.outcome == FAILED]

    @property
    def is_clean(self) -> bool:
        return not self.failed

    @property
    def total(self) -> str:
        """`12 ok, 1 failed, 2 skipped`"""
        outcomes = [check.outcome for check in self.checks]
        return ", ".join(f"{outcomes.count(outcome)} {outcome}" for outcome in (OK, FAILED, SKIPPED))

    def to_dict(self) -> Dict[str, Any]:
        return {"module": self.module, "is_clean": self.is_clean, "checks": [vars(check) for check in self.checks]}

    def __str__(self) -> str:
        return "\n".join([self.module, *(str(check) for check in self.checks), self.total])


def judge(check: Callable[..., Optional[str]], *arguments: Any) -> Check:
    """The line of a check: its name is the function's, its requirement the docstring, and its result a note."""
    name, asks = check.__name__.replace("_", " "), " ".join((check.__doc__ or "").split())
    try:
        return Check(name, OK, asks, check(*arguments) or "")
    except Skip as reason:
        return Check(name, SKIPPED, asks, str(reason))
    except Fault as fault:
        return Check(name, FAILED, asks, str(fault))
