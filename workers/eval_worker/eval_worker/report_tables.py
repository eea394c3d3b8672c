"""The report's tables: operators, seeds, games, language models, and where everything came from."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from mosaic_sdk.results.wording import bracket, number

from eval_worker.report_markup import Html, element, join, table

MOST_SEEDS = 200

Summary = Mapping[str, Any]
Colours = Mapping[str, str]


def entries_table(kind: str, entries: Mapping[str, Any], colours: Colours) -> Html:
    """Operators or lanes, one per line."""
    tells_success = any(it["success_rate"] is not None for it in entries.values())
    success: list[object] = ["success"] if tells_success else []
    headings = [kind, "episodes", "return [95 %]", "IQM", "min … max", *success, "length", "steps/s", "decision, ms"]
    rows: list[list[object]] = [
        [
            named(name, colours),
            _episodes(it),
            f"{number(it['mean_return'])} {bracket(it['interval'])}",
            number(it["iqm"]),
            f"{number(it['min_return'])} … {number(it['max_return'])}" if it["episodes"] else "–",
            *(["–" if it["success_rate"] is None else f"{it['success_rate']:.0%}"] if tells_success else []),
            *(number(it[key]) for key in ("mean_length", "steps_per_s", "decision_ms")),
        ]
        for name, it in entries.items()
    ]
    return table(headings, rows)


def _episodes(it: Mapping[str, Any]) -> Html:
    failed = element("span", f" + {it['failed']} failed", class_="failed") if it["failed"] else None
    return join(it["episodes"], failed)


def named(name: str, colours: Colours) -> Html:
    chip = element("span", class_="chip", style=f"background:{colours[name]}") if name in colours else None
    return join(chip, name)


def ratings_table(ratings: Mapping[str, Any], colours: Colours) -> Html:
    bounds = {"lower": " or more", "upper": " or less"}
    rows: list[list[object]] = [
        [
            named(name, colours),
            *(it[key] for key in ("games", "wins", "draws", "losses")),
            f"{it['rating']:.0f}{bounds.get(it['bound'], '')} {_rounded(it['interval'])}".rstrip(),
        ]
        for name, it in ratings.items()
    ]
    return table(["operator", "games", "won", "drawn", "lost", "rating [95 %]"], rows)


def _rounded(interval: Sequence[float] | None) -> str:
    return bracket([round(edge) for edge in interval]) if interval else ""


def seeds_table(rows: Sequence[Mapping[str, Any]], column: str, names: Sequence[str], colours: Colours) -> Html:
    """A line per seed: the return of each operator on it, the best one in bold."""
    cells: dict[object, dict[str, list[Mapping[str, Any]]]] = {}
    for row in rows:
        cells.setdefault(row["seed"], {}).setdefault(row[column], []).append(row)
    shown = list(cells.items())[:MOST_SEEDS]
    lines: list[list[object]] = [
        ["–" if seed is None else str(seed), *_seed_cells([played.get(name, []) for name in names])]
        for seed, played in shown
    ]
    left = len(cells) - len(shown)
    more = element("p", f"… and {left} more seeds in eval_summary.json", class_="soft") if left else None
    return join(table(["seed", *(named(name, colours) for name in names)], lines), more)


def _seed_cells(played: Sequence[Sequence[Mapping[str, Any]]]) -> list[object]:
    means = [
        _mean([row["return"] for row in rows if not row["failed"] and row["return"] is not None]) for rows in played
    ]
    known = [value for value in means if value is not None]
    best = max(known) if len(set(known)) > 1 else None
    return [_seed_cell(rows, value, best) for rows, value in zip(played, means, strict=True)]


def _seed_cell(rows: Sequence[Mapping[str, Any]], value: float | None, best: float | None) -> object:
    failed = [row for row in rows if row["failed"]]
    if value is None and failed:
        return element("span", "failed", class_="failed", title=failed[0]["reason"])
    return element("span", number(value), class_="best") if value is not None and value == best else number(value)


def is_good(row: Mapping[str, Any]) -> bool:
    return not row["failed"] and math.isfinite(row["return"])


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def ledger_table(ledger: Mapping[str, Any], colours: Colours) -> Html:
    columns = {
        "decisions": "decisions",
        "tokens_in": "tokens in",
        "tokens_out": "tokens out",
        "cost": "cost",
        "latency_ms": "ms each",
        "illegal": "illegal",
        "fallbacks": "fallbacks",
    }
    rows: list[list[object]] = [
        [
            named(name, colours),
            ", ".join(it.get("models") or ["–"]),
            *(_amount(it.get(key)) for key in columns),
            _amount(sum((it.get("infrastructure") or {}).values())),
        ]
        for name, it in ledger.items()
    ]
    return table(["operator", "model", *columns.values(), "endpoint errors"], rows)


def _amount(value: float | None) -> str:
    return f"{value:,.0f}" if value is not None and value >= 1000 else number(value)


def provenance_table(summary: Summary, versions: Mapping[str, str]) -> Html:
    facts: list[list[object]] = [
        ["run", summary["run_id"]],
        ["environment", summary["env_id"]],
        ["mode", summary["mode"]],
        ["seeds", seeds_in_words(summary["seeds"])],
    ]
    facts += [[f"operator {name}", _origin(it)] for name, it in summary["operators"].items()]
    facts.append(["software", ", ".join(f"{name} {version}" for name, version in versions.items())])
    return table(["what", "value"], facts, numbers=False)


def _origin(it: Mapping[str, Any]) -> str:
    about = it["about"] if isinstance(it["about"], Mapping) else {}
    facts = [f"{key.replace('_', ' ')} {value}" for key, value in about.items() if value not in (None, "", {}, [])]
    return ", ".join([it["kind"] or "–", *facts])


def seeds_in_words(seeds: Sequence[int]) -> str:
    """`0 … 19`, or the first ones of a list without order."""
    if len(seeds) > 2 and list(seeds) == list(range(seeds[0], seeds[0] + len(seeds))):
        return f"{seeds[0]} … {seeds[-1]}"
    return ", ".join(map(str, seeds[:20])) + (" …" if len(seeds) > 20 else "")
