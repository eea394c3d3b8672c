"""checkpoints/journal.jsonl: the episodes that are over, from which another run continues.

    {"kind": "header", "version": 1, "settings": {…}}
    {"kind": "episode", "task": "babyai/goto", "seed": 3, "progression": 100.0, "return": 0.8, "length": 24, …}

A line is written and synced when an episode ends. A line that a kill has cut off is ignored.
"""

import json
import os
from collections.abc import Mapping
from typing import Any

from mosaic_sdk.checkpoints import CheckpointError
from mosaic_sdk.emit import to_json

VERSION = 1
FILE_NAME = "journal.jsonl"
Row = dict[str, Any]
# Settings that must be the same in the run that continues; episodes, tasks and the endpoint's address may differ.
MUST_AGREE = (
    "agent",
    "model",
    "max_steps",
    "history",
    "thought_history",
    "output",
    "temperature",
    "max_tokens",
    "treasure_hunter_level",
    "coin_collector_level",
    "cooking_rooms",
    "nle_progression_file",
)


class Journal:
    """Appends to the journal of this run, and keeps what an earlier start of the same run has written."""

    def __init__(self, path: str) -> None:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        self._fd = os.open(path, flags, 0o600)
        self.path = path

    def write(self, kind: str, **fields: Any) -> None:
        size = os.fstat(self._fd).st_size
        broken = size and os.pread(self._fd, 1, size - 1) != b"\n"
        line = ("\n" if broken else "") + to_json({"kind": kind, **fields}) + "\n"
        data = line.encode()
        if os.write(self._fd, data) != len(data):
            raise OSError(28, os.strerror(28), self.path)
        os.fsync(self._fd)

    def close(self) -> None:
        os.close(self._fd)


def read_journal(path: str, settings: Mapping[str, Any]) -> dict[tuple[str, int], Row]:
    """The finished episodes by task and seed. CheckpointError if they were played with other settings."""
    found: dict[tuple[str, int], Row] = {}
    has_header = False
    for row in _rows(path):
        if row.get("kind") == "header":
            _require_same(path, row, settings)
            has_header = True
        elif row.get("kind") == "episode" and isinstance(row.get("seed"), int):
            found[str(row.get("task")), row["seed"]] = row
    if found and not has_header:
        raise CheckpointError(f"resume_from: {path} has no header. It is not the journal of an evaluation.")
    return found


def _rows(path: str) -> list[Row]:
    try:
        with open(path, "rb") as file:
            lines = file.read().splitlines()
    except OSError as error:
        raise CheckpointError(f"resume_from: cannot read {path}: {error.strerror}.") from None
    rows = []
    for line in lines:
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if isinstance(row, dict):
            rows.append(row)
    return rows


def _require_same(path: str, header: Row, settings: Mapping[str, Any]) -> None:
    if header.get("version") != VERSION:
        raise CheckpointError(f"resume_from: {path} was written by another version of the worker.")
    before = header.get("settings")
    for name in MUST_AGREE:
        if not isinstance(before, dict) or before.get(name) != settings.get(name):
            was = before.get(name) if isinstance(before, dict) else None
            raise CheckpointError(
                f"resume_from: {path} is of an evaluation with {name}={was!r}, and this one has "
                f"{settings.get(name)!r}. Results of different settings are not mixed."
            )
