"""report.html: the results of an evaluation in one file, without a script and without anything from the network.

    write_report(run_dir, summary, clips=[{"path": "videos/ppo-3.gif", "operator": "ppo", "seed": 3}])

Names of environments and operators, reasons and what language models wrote are the words of strangers; all of them are
shown as text (report_markup). A content security policy forbids the page to load or run anything.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from importlib import metadata
from typing import Any

import mosaic_sdk
from mosaic_sdk.files import write_text
from mosaic_sdk.ledger import read
from mosaic_sdk.results.ledgers import ledger_paths
from mosaic_sdk.results.wording import sentence

from eval_worker.report_clips import clip_gallery
from eval_worker.report_figures import Figures
from eval_worker.report_markup import Html, element, join
from eval_worker.report_style import COLOURS, STYLE
from eval_worker.report_tables import (
    entries_table,
    ledger_table,
    provenance_table,
    ratings_table,
    seeds_in_words,
    seeds_table,
)

REPORT = "report.html"
POLICY = "default-src 'none'; img-src data:; media-src data:; style-src 'unsafe-inline'"
LIBRARIES = ("gymnasium", "pettingzoo", "minigrid", "ale-py", "mpe2", "mosaic-multigrid")
MOST_PAIRS = 15
MOST_WARNINGS = 12
SAMPLES = 3  # texts of each language model

Summary = Mapping[str, Any]


def write_report(run_dir: "str | os.PathLike[str]", summary: Summary, clips: Iterable[Mapping[str, Any]] = ()) -> str:
    """Write report.html into the run's folder; returns its path. `clips`: paths in that folder; default videos/."""
    folder = os.fspath(run_dir)
    return write_text(os.path.join(folder, REPORT), render_report(folder, summary, clips))


def render_report(run_dir: str, summary: Summary, clips: Iterable[Mapping[str, Any]] = ()) -> str:
    title = f"Evaluation of {summary['env_id']}"
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=POLICY),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", title),
        element("style", STYLE),
    )
    body = element("body", element("h1", title), *_sections(run_dir, summary, clips))
    return f"<!DOCTYPE html>\n{element('html', head, body, lang='en')}\n"


def _sections(run_dir: str, summary: Summary, clips: Iterable[Mapping[str, Any]]) -> list[Html]:
    figures, colours = Figures(summary), _colours(summary)
    parts = [
        _headline(summary),
        _warnings(summary["warnings"]),
        *_section("Results", *_results(summary, colours)),
        *_section("Returns", figures.returns(colours)),
        *_section("Comparisons on equal seeds", *_comparisons(summary, figures)),
        *_section("Episode lengths", figures.lengths(colours)),
        *_section("Clips", clip_gallery(run_dir, clips)),
        *_section("Language models", *_language(run_dir, summary, colours)),
        *_section("Every seed", seeds_table(figures.rows, figures.column, figures.names, colours)),
        *_section("Where this comes from", provenance_table(summary, _versions())),
    ]
    return [part for part in parts if part is not None]


def _section(title: str, *parts: Html | None) -> list[Html | None]:
    content = [part for part in parts if part is not None]
    return [element("h2", title), *content] if content else []


def _colours(summary: Summary) -> dict[str, str]:
    names = dict.fromkeys([*summary["operators"], *summary["lanes"]])
    return {name: COLOURS[index % len(COLOURS)] for index, name in enumerate(names)}


def _headline(summary: Summary) -> Html:
    episodes = len({(row["lane"], row["env_index"], row["episode_index"]) for row in summary["rows"]})
    many = f"{len(summary['operators'])} operators, {episodes} episodes, seeds {seeds_in_words(summary['seeds'])}"
    return element("p", f"{many} · run {summary['run_id']}", class_="soft")


def _warnings(warnings: Sequence[str]) -> Html | None:
    if not warnings:
        return None
    items = [element("li", text) for text in warnings[:MOST_WARNINGS]]
    if left := len(warnings) - len(items):
        items.append(element("li", f"… and {left} more in eval_summary.json"))
    return element("div", element("ul", *items), class_="warnings", role="note")


def _results(summary: Summary, colours: Mapping[str, str]) -> list[Html | None]:
    ratings = summary["ratings"]
    lanes = entries_table("lane", summary["lanes"], colours) if summary["lanes"] and not ratings else None
    record = ratings_table(ratings, colours) if ratings else None
    return [lanes, entries_table("operator", summary["operators"], colours), record]


def _comparisons(summary: Summary, figures: Figures) -> list[Html | None]:
    pairs = summary["comparisons"]
    if not pairs:
        return []
    left = len(pairs) - MOST_PAIRS
    more = element("p", f"… and {left} more in eval_summary.json", class_="soft") if left > 0 else None
    told = element("ul", *(element("li", sentence(pair)) for pair in pairs[:MOST_PAIRS]))
    return [told, more, figures.differences(MOST_PAIRS)]


def _language(run_dir: str, summary: Summary, colours: Mapping[str, str]) -> list[Html | None]:
    if not summary["ledger"]:
        return []
    note = "Illegal answers and fallbacks are the model's; endpoint errors are not, and failed episodes are left out."
    samples = [_samples(name, path) for name, path in ledger_paths(run_dir).items()]
    return [ledger_table(summary["ledger"], colours), element("p", note, class_="soft"), *samples]


def _samples(name: str, path: str) -> Html | None:
    """The first texts of a model, and one that was not legal."""
    good: list[Html] = []
    odd: list[Html] = []
    for row in read(path):
        kept = odd if row.get("illegal") or row.get("fallback") else good
        if row.get("text") and len(kept) < SAMPLES:
            place = (
                f"seed {row.get('seed')}, step {row.get('step_index')}: {row.get('action_name') or row.get('action')}"
            )
            kept.append(join(element("h3", f"{name}, {place}"), element("pre", str(row["text"])[:4000])))
    if not good and not odd:
        return None
    return element("details", element("summary", f"What {name} wrote"), *good, *odd[:1], open=True)


def _versions() -> dict[str, str]:
    found = {"mosaic-sdk": mosaic_sdk.__version__}
    for name in LIBRARIES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found
