"""The results of a search, from the lines of its driver: one object for --json, and the table of it."""

import json
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from mosaic.present.text import number as format_number
from mosaic.present.text import printable

TRIAL, COMPLETED = "trial", "run_completed"
WORDS = {"COMPLETE": "complete", "PRUNED": "pruned", "FAIL": "failed"}


def results_of(events: Iterable[Mapping[str, Any]], settings: Mapping[str, Any]) -> dict[str, Any]:
    """What the driver has reported; `settings`: the config of the search worker."""
    trials: dict[int, dict[str, Any]] = {}
    importances: Mapping[str, float] = {}
    for event in events:
        payload = event.get("payload") or {}
        if event.get("event") == TRIAL and isinstance(payload.get("number"), int):
            trials[payload["number"]] = dict(payload)
        elif event.get("event") == COMPLETED:
            importances = payload.get("importances") or {}
    found = [trials[number] for number in sorted(trials)]
    best = _best(found, str(settings.get("direction") or "maximize"))
    return {
        "asked": settings.get("trials"),
        "metric": settings.get("metric"),
        "direction": settings.get("direction") or "maximize",
        "counts": dict(Counter(WORDS.get(str(trial["state"]), str(trial["state"])) for trial in found)),
        "best": {**best, "command": command_of(settings, best["settings"])} if best else None,
        "importances": dict(importances),
        "trials": found,
    }


def _best(trials: list[dict[str, Any]], direction: str) -> dict[str, Any] | None:
    complete = [trial for trial in trials if trial["state"] == "COMPLETE" and trial["value"] is not None]
    choose = max if direction == "maximize" else min
    return choose(complete, key=lambda trial: trial["value"], default=None)


def command_of(settings: Mapping[str, Any], chosen: Mapping[str, Any]) -> str:
    """The `mosaic run` command with the settings of a trial."""
    worker = settings.get("worker") or {}
    name = f"{worker.get('name')}@{worker['variant']}" if worker.get("variant") else str(worker.get("name"))
    words = [f"{key}={_value(value)}" for key, value in [*_flat(worker.get("config") or {}), *chosen.items()]]
    return shlex.join(["mosaic", "run", name, *words])


def _flat(config: Mapping[str, Any], start: str = "") -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for name, value in config.items():
        found += (
            _flat(value, f"{start}{name}.") if isinstance(value, Mapping) and value else [(f"{start}{name}", value)]
        )
    return found


def _value(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def rows_of(found: Mapping[str, Any], most: int = 0) -> tuple[list[str], list[list[str]]]:
    """Headings and rows of the table, the best trial first; `most`: at most so many, 0 for all."""
    keys = list(dict.fromkeys(key for trial in found["trials"] for key in trial["settings"]))
    sign = -1 if found["direction"] == "maximize" else 1

    def order(trial: Mapping[str, Any]) -> tuple[int, float, int]:
        rank = ("COMPLETE", "PRUNED", "FAIL").index(trial["state"]) if trial["state"] in WORDS else 3
        return rank, sign * (trial["value"] if trial["value"] is not None else 0.0), trial["number"]

    rows = [
        [
            *(str(trial["number"]), _number(trial["value"])),
            *(_shown(trial["settings"].get(key)) for key in keys),
            _outcome(trial),
        ]
        for trial in sorted(found["trials"], key=order)
    ]
    return ["TRIAL", "VALUE", *(printable(key) for key in keys), "STATE"], rows[: most or None]


def _outcome(trial: Mapping[str, Any]) -> str:
    state = WORDS.get(str(trial["state"]), str(trial["state"]))
    reason = printable(str(trial.get("reason") or "").partition("\n")[0])
    return reason if reason.startswith(state) else f"{state}: {reason}" if reason else state


def _number(value: Any) -> str:
    return "" if value is None else format_number(value)


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    return "" if value is None else printable(_value(value))
