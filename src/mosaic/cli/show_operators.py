"""The operators of an evaluation, as `mosaic show` prints them."""

import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from mosaic.present.text import printable

if TYPE_CHECKING:
    from mosaic.client import Run


def operator_lines(run: "Run") -> list[str]:
    """`ppo: cleanrl, checkpoint-000000001000.pt (step 1000) of run 01… (walker)`, one line for each."""
    operators = ((run.config or {}).get("metadata") or {}).get("operators") or {}
    return [printable(f"{name}: {', '.join(_facts(entry))}") for name, entry in operators.items()]


def _facts(entry: Mapping[str, Any]) -> Iterator[str]:
    about = (entry.get("resolved") or {}).get("about") or {}
    yield str(about.get("worker") or entry.get("kind") or "")
    if about.get("model"):
        yield str(about["model"])
    if about.get("checkpoint"):
        step = f" (step {about['step']})" if "step" in about else ""
        yield f"{os.path.basename(about['checkpoint'])}{step}{_run(about)}"


def _run(about: Mapping[str, Any]) -> str:
    if not about.get("run_id"):
        return ""
    name = f" ({about['run_name']})" if about.get("run_name") else ""
    return f" of run {about['run_id']}{name}"
