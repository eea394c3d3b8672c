"""The ledger of a language model's decisions: operators/NAME.ledger.jsonl in a run's folder, one row per decision.

    totals("operators/gpt.ledger.jsonl")                    # one run
    totals("old/operators/gpt.ledger.jsonl", "new/…")       # a run and the one that resumed it

A row has `call_id`. A resumed run copies the row of a decision that it did not request again, marked `replayed`; with
both files, each decision counts once.
"""

import json
import os
from typing import Any, Dict, Iterator, List, Set, Tuple, Union

Path = Union[str, "os.PathLike[str]"]
Row = Dict[str, Any]
SUFFIX = ".ledger.jsonl"
# Sums over rows: the keys of totals() that are keys of rows too.
_SUMMED = ("requests", "tokens_in", "tokens_cached", "tokens_out", "retries", "illegal")


def read(path: Path) -> Iterator[Row]:
    """The whole rows of a ledger, in order. A row that was cut off by a kill is left out; so is a missing file."""
    if not os.path.exists(path):
        return
    with open(path, "rb") as file:
        for line in file:
            row = _parse(line)
            if row is not None:
                yield row


def totals(*paths: Path) -> Dict[str, Any]:
    """Sums over ledgers; a decision that is in several of them counts once.

    decisions, replayed, requests, tokens_in (tokens_cached of them from the server's cache), tokens_out, retries,
    illegal (answers without a legal action), fallbacks, errors (decisions that the endpoint failed), infrastructure
    (failed requests by kind), latency_ms (mean of a decision), cost (null without prices), models (as served).
    """
    rows = _once([row for path in paths for row in read(path)])
    found: Dict[str, Any] = {"decisions": len(rows), "replayed": sum(1 for row in rows if row.get("replayed"))}
    found.update({name: sum(_number(row.get(name)) for row in rows) for name in _SUMMED})
    found["fallbacks"] = sum(1 for row in rows if row.get("fallback"))
    found["errors"] = sum(1 for row in rows if row.get("error"))
    found["infrastructure"] = _kinds(rows)
    waits = [_number(row.get("latency_ms")) for row in rows]
    found["latency_ms"] = round(sum(waits) / len(waits), 3) if waits else None
    costs = [row["cost"] for row in rows if isinstance(row.get("cost"), (int, float))]
    found["cost"] = round(sum(costs), 9) if costs else None
    found["models"] = sorted({str(row["model_served"]) for row in rows if row.get("model_served")})
    return found


def _parse(line: bytes) -> "Row | None":
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) and isinstance(row.get("call_id"), str) else None


def _once(rows: List[Row]) -> List[Row]:
    """Each call once; the original rather than its copy."""
    found: List[Row] = []
    seen: Set[str] = set()
    for row in sorted(rows, key=lambda row: bool(row.get("replayed"))):
        if row["call_id"] not in seen:
            seen.add(row["call_id"])
            found.append(row)
    return found


def _kinds(rows: List[Row]) -> Dict[str, int]:
    found: Dict[str, int] = {}
    for kind, count in _failures(rows):
        found[kind] = found.get(kind, 0) + int(count)
    return dict(sorted(found.items()))


def _failures(rows: List[Row]) -> Iterator[Tuple[str, float]]:
    for row in rows:
        kinds = row.get("infrastructure")
        yield from ((str(kind), _number(count)) for kind, count in (kinds.items() if isinstance(kinds, dict) else ()))


def _number(value: Any) -> float:
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else 0
