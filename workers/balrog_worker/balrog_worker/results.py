"""The results table in the paper's form: mean progression ± standard error, of each environment and overall.

results.json and results.md in the run's folder. They are written after each episode, so a stopped run has them too.
"""

import math
import os
from typing import Any

from mosaic_sdk.files import write_json, write_text
from mosaic_sdk.results.averages import mean
from mosaic_sdk.results.finite import finite

from balrog_worker.tasks import BABA, ENVIRONMENTS

VERSION = 1
JSON_FILE, TABLE_FILE = "results.json", "results.md"
Row = dict[str, Any]


def summarise(rows: list[Row], planned: int, about: dict[str, Any]) -> dict[str, Any]:
    """The whole document. `planned`: episodes in total; `about`: agent, model and so on."""
    environments = {name: _entry([row for row in rows if row["environment"] == name]) for name in ENVIRONMENTS}
    environments = {name: entry for name, entry in environments.items() if entry["episodes"]}
    tasks = {task: _entry([row for row in rows if row["task"] == task]) for task in dict.fromkeys(_tasks(rows))}
    costs = [row["cost"] for row in rows if row["cost"] is not None]
    return {
        "version": VERSION,
        **about,
        "complete": len(rows) == planned,
        "episodes": len(rows),
        "planned_episodes": planned,
        "average": _average(list(environments.values())),
        "environments": environments,
        "tasks": tasks,
        "tokens_in": sum(row["tokens_in"] for row in rows),
        "tokens_out": sum(row["tokens_out"] for row in rows),
        "cost": math.fsum(costs) if costs else None,
        "notes": [BABA],
    }


def write_results(folder: str, summary: dict[str, Any]) -> None:
    write_json(os.path.join(folder, JSON_FILE), finite(summary), indent=1)
    write_text(os.path.join(folder, TABLE_FILE), table(summary))


def table(summary: dict[str, Any]) -> str:
    """The table as Markdown."""
    lines = [
        f"# {summary['agent']}" + (f", {summary['model']}" if summary["model"] else ""),
        "",
        "| environment | progression (%) | episodes |",
        "|---|---|---|",
        *(_line(ENVIRONMENTS[name].title, entry) for name, entry in summary["environments"].items()),
        _line("**Average**", {**summary["average"], "episodes": summary["episodes"]}),
        "",
        "| task | progression (%) | episodes | steps | invalid answers (%) |",
        "|---|---|---|---|---|",
        *(_task_line(name, entry) for name, entry in summary["tasks"].items()),
        "",
    ]
    lines += [f"{summary['tokens_in']} tokens in, {summary['tokens_out']} tokens out" + _price(summary) + ".", ""]
    if not summary["complete"]:
        lines += [f"Not complete: {summary['episodes']} of {summary['planned_episodes']} episodes.", ""]
    left_out = [f"{task} is left out: it {reason}" for task, reason in summary["left_out"].items()]
    return "\n".join(lines + [f"- {note}" for note in [*summary["notes"], *left_out]]) + "\n"


def _entry(rows: list[Row]) -> dict[str, Any]:
    values = [row["progression"] for row in rows]
    steps = sum(row["length"] for row in rows)
    return {
        "progression": mean(values),
        "standard_error": standard_error(values),
        "episodes": len(rows),
        "mean_length": mean([row["length"] for row in rows]),
        "invalid": sum(row["invalid"] for row in rows) / steps if steps else 0.0,
    }


def standard_error(values: list[float]) -> float:
    """Of the mean, from the sample's standard deviation; NaN for a single value."""
    if len(values) < 2:
        return math.nan
    middle = mean(values)
    return math.sqrt(math.fsum((value - middle) ** 2 for value in values) / (len(values) - 1) / len(values))


def _average(entries: list[dict[str, Any]]) -> dict[str, float]:
    """Every environment counts the same, however many episodes it has."""
    errors = [entry["standard_error"] for entry in entries]
    both = math.sqrt(math.fsum(error**2 for error in errors)) / len(errors) if errors else math.nan
    return {"progression": mean([entry["progression"] for entry in entries]), "standard_error": both}


def _tasks(rows: list[Row]) -> list[str]:
    return [row["task"] for row in rows]


def _line(title: str, entry: dict[str, Any]) -> str:
    return f"| {title} | {_number(entry)} | {entry['episodes']} |"


def _task_line(name: str, entry: dict[str, Any]) -> str:
    steps, invalid = f"{entry['mean_length']:.1f}", f"{100 * entry['invalid']:.1f}"
    return f"| {name} | {_number(entry)} | {entry['episodes']} | {steps} | {invalid} |"


def _number(entry: dict[str, Any]) -> str:
    error = entry["standard_error"]
    return f"{entry['progression']:.1f}" + ("" if math.isnan(error) else f" ± {error:.1f}")


def _price(summary: dict[str, Any]) -> str:
    return "" if summary["cost"] is None else f", price {summary['cost']:.4f}"
