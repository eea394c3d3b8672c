"""The report of a comparison: one HTML page without a script and without anything from the network.

Names of runs, metrics and settings are the words of strangers; all of them are shown as text (markup). A content
security policy forbids the page to load or run anything.
"""

import shlex
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mosaic_sdk.results.wording import bracket, number

from mosaic import __version__
from mosaic.model.rundir import RunDir
from mosaic.present.group_comparison import GroupComparison, GroupResult
from mosaic.present.markup import Html, element, join, table
from mosaic.present.provenance_rows import MOST_BYTES, provenance_rows
from mosaic.present.run_files import read_run_json
from mosaic.present.settings_diff import ABSENT, setting_text
from mosaic.present.svg_chart import Curve, Dots, colour, curve_chart, dots_chart
from mosaic.stats.averages import TITLES
from mosaic.stats.bands import BANDS, Band

if TYPE_CHECKING:
    from mosaic.client import Run

POLICY = "default-src 'none'; style-src 'unsafe-inline'"
COLUMNS = ("iqm", "mean", "median", "optimality_gap")
MOST_SETTINGS, MOST_PAIRS, MOST_VALUES = 40, 40, 6
STYLE = Html("""
:root { color-scheme: light dark; --ink: #1c1c1e; --soft: #63636a; --line: #d9d9de; --ground: #ffffff; --panel: #f6f6f8;
  --warn: #fff4d6; --warn-line: #c98a00; }
@media (prefers-color-scheme: dark) { :root { --ink: #ececef; --soft: #a3a3ad; --line: #3a3a40; --ground: #18181b;
  --panel: #222226; --warn: #3a2f12; --warn-line: #d9a520; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 2rem 1.25rem 4rem; max-width: 62rem; color: var(--ink); background: var(--ground);
  font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.6rem; margin: 0 0 .25rem; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; margin: 2.25rem 0 .5rem; padding-bottom: .25rem; border-bottom: 1px solid var(--line); }
p, ul { margin: .5rem 0; }
.soft { color: var(--soft); font-size: .875rem; }
.clear { font-weight: 600; }
.warnings { background: var(--warn); border-left: 4px solid var(--warn-line); padding: .5rem 1rem; border-radius: 4px; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; margin: .5rem 0; font-size: .9rem; }
th, td { text-align: left; padding: .3rem .9rem .3rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
td { overflow-wrap: anywhere; }
.rows td, .rows th { white-space: nowrap; }
thead th { color: var(--soft); font-weight: 600; }
.numbers td, .numbers thead th + th { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.chip { display: inline-block; width: .7em; height: .7em; border-radius: 50%; margin-right: .4em; }
figure { margin: .75rem 0; background: var(--panel); border-radius: 6px; padding: .75rem; }
svg { display: block; width: 100%; height: auto; }
svg text { fill: var(--ink); font: 13px system-ui, sans-serif; }
svg .tick { fill: var(--soft); font-size: 12px; }
svg .grid { stroke: var(--line); }
svg .mean { stroke: var(--ground); stroke-width: 1.5; }
.legend { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; font-size: .875rem; margin-top: .5rem; }
.legend .swatch { display: inline-block; width: 22px; height: 10px; margin-right: .4em; vertical-align: baseline; }
details { margin: .5rem 0; }
summary { cursor: pointer; }
@media print { body { max-width: none; padding: 0; font-size: 11pt; } h2 { break-after: avoid; }
  figure, tr, .warnings { break-inside: avoid; } * { print-color-adjust: exact; } }
""")


def render_report(
    found: GroupComparison, runs: "Mapping[str, Sequence[Run]]", command: Sequence[str] = (), is_local: bool = True
) -> str:
    """`runs`: those of each group, with their settings. `is_local`: their folders are on this machine."""
    title = "Comparison of " + _names([group.label for group in found.groups])
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=POLICY),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", title),
        element("style", STYLE),
    )
    body = element("body", element("h1", title), *_sections(found, runs, command, is_local))
    return f"<!DOCTYPE html>\n{element('html', head, body, lang='en')}\n"


def _sections(
    found: GroupComparison, runs: "Mapping[str, Sequence[Run]]", command: Sequence[str], is_local: bool
) -> list[Html]:
    parts: list[Html | None] = [
        element("p", _headline(found), class_="soft"),
        _verdicts(found),
        _warnings(found.warnings),
        *_section("Results", _results(found), _values(found)),
        *_section("Curves", _curves(found), _note(_curve_note(found)), *_panels(found)),
        *_section("Performance profiles", _profiles(found), _note(_profile_note(found))),
        *_section("Settings that differ", _settings(runs)),
        *_section("Every run", _every_run(found)),
        *_section("Where this comes from", _provenance(runs, command, is_local)),
    ]
    return [part for part in parts if part is not None]


def _section(title: str, *parts: Html | None) -> list[Html | None]:
    content = [part for part in parts if part is not None]
    return [element("h2", title), *content] if content else []


def _note(words: str) -> Html | None:
    return element("p", words, class_="soft") if words else None


def _names(labels: Sequence[str]) -> str:
    shown = list(labels[:4]) + ([f"{len(labels) - 4} more groups"] if len(labels) > 4 else [])
    return " and ".join([", ".join(shown[:-1]), shown[-1]]) if len(shown) > 1 else shown[0]


def _headline(found: GroupComparison) -> str:
    where = ", ".join(env for env in found.envs if env)
    runs = sum(len(group.samples) for group in found.groups)
    return " · ".join(filter(None, (where, f"{len(found.groups)} groups, {runs} runs", found.value_words)))


def _verdicts(found: GroupComparison) -> Html | None:
    told = sorted(zip(found.pairs, found.sentences(), strict=True), key=lambda pair: not pair[0].is_clear)
    items = [element("li", text, class_="clear" if pair.is_clear else None) for pair, text in told[:MOST_PAIRS]]
    if left := len(told) - len(items):
        items.append(element("li", f"… and {left} more comparisons"))
    return element("ul", *items) if items else None


def _warnings(warnings: Sequence[str]) -> Html | None:
    items = [element("li", text) for text in warnings]
    return element("div", element("ul", *items), class_="warnings", role="note") if items else None


def _results(found: GroupComparison) -> Html:
    shown = [name for name in COLUMNS if any(name in group.estimates for group in found.groups)]
    headings = ("group", f"{found.unit}s", *(f"{TITLES[name]} [95 %]" for name in shown))
    return table(headings, [_result(group, index, shown) for index, group in enumerate(found.groups)], "numbers")


def _result(group: GroupResult, index: int, shown: Sequence[str]) -> list[object]:
    many = f"{len(group.counted)} of {len(group.samples)}"
    cells = [
        f"{number(estimate.value)} {bracket(estimate.interval)}".rstrip()
        if (estimate := group.estimates.get(name))
        else "–"
        for name in shown
    ]
    return [_chip(group.label, index), many, *cells]


def _chip(label: str, index: int) -> Html:
    return join(element("span", "", class_="chip", style=f"background: {colour(index)}"), label)


def _values(found: GroupComparison) -> Html | None:
    lines = []
    for group in found.groups:
        estimate = group.estimates.get(found.options.average)
        # Normalised averages do not belong on the axis of the values.
        shown = estimate if estimate and not found.options.scales else None
        dots = [(sample.title, sample.value) for sample in group.counted if sample.value is not None]
        lines.append(Dots(group.label, dots, shown.value if shown else None, shown.interval if shown else None))
    title = f"each run; {TITLES[found.options.average]} and its 95 % interval"
    return dots_chart(lines, title if not found.options.scales else "each run, as it is")


def _curves(found: GroupComparison) -> Html | None:
    title = f"{found.metric}{' (normalised)' if found.options.scales else ''}"
    return _band_chart(found, [group.band for group in found.groups], title)


def _panels(found: GroupComparison) -> list[Html | None]:
    """The curves in each of several environments."""
    parts: list[Html | None] = []
    for panel in found.panels:
        parts += [element("h3", panel.env), _band_chart(found, panel.bands, found.metric)]
    return parts


def _band_chart(found: GroupComparison, bands: "Sequence[Band | None]", title: str) -> Html | None:
    curves = [
        Curve(group.label, band.step, band.middle, band.low, band.high)
        for group, band in zip(found.groups, bands, strict=True)
        if band
    ]
    return curve_chart(curves, found.axis, title)


def _curve_note(found: GroupComparison) -> str:
    if not any(group.band for group in found.groups):
        return found.curve_words
    shown = f"Line: {TITLES[found.options.average]} of the runs. Band: {BANDS[found.options.band]}."
    return f"{shown} {found.curve_words}".rstrip()


def _profiles(found: GroupComparison) -> Html | None:
    curves = [
        Curve(group.label, group.profile.thresholds, group.profile.share, group.profile.low, group.profile.high)
        for group in found.groups
        if group.profile
    ]
    return curve_chart(curves, f"threshold ({found.metric})", "share of runs above it")


def _profile_note(found: GroupComparison) -> str:
    return "The higher curve is better: more of its runs are above the threshold. Band: 95 % bootstrap interval."


def _settings(runs: "Mapping[str, Sequence[Run]]") -> Html | None:
    """The settings that are not equal in all runs; a cell has the values within its group."""
    every = [run.settings or {} for members in runs.values() for run in members]
    keys = sorted({key for settings in every for key in settings})
    rows = []
    for key in keys:
        cells = [_setting_cell(key, members) for members in runs.values()]
        if len({_value(settings, key) for settings in every}) > 1:
            rows.append([key, *cells])
    if not rows:
        return element("p", "All settings are the same.", class_="soft") if every else None
    more = len(rows) - MOST_SETTINGS
    note = element("p", f"… and {more} more settings", class_="soft") if more > 0 else None
    return join(table(["setting", *runs], rows[:MOST_SETTINGS]), note)


def _value(settings: Mapping[str, Any], key: str) -> str:
    return setting_text(settings[key]) if key in settings else ABSENT


def _setting_cell(key: str, members: "Sequence[Run]") -> str:
    values = list(dict.fromkeys(_value(run.settings or {}, key) for run in members))
    more = f" … ({len(values)} values)" if len(values) > MOST_VALUES else ""
    return ", ".join(values[:MOST_VALUES]) + more


def _every_run(found: GroupComparison) -> Html:
    rows: list[list[object]] = []
    for index, group in enumerate(found.groups):
        for sample in group.samples:
            run = sample.run
            last = f"{sample.trace.step[-1]:,.0f}" if sample.trace else "–"
            value = number(sample.value) if not sample.left_out else f"left out: {sample.left_out}"
            rows.append([_chip(group.label, index), sample.title, value, last, str(run.state), run.run_id])
    headings = ("group", found.unit, "value", f"last of {found.axis}", "state", "run")
    return table(headings, rows, "rows")


def _provenance(runs: "Mapping[str, Sequence[Run]]", command: Sequence[str], is_local: bool) -> Html:
    """What the runs have in common, and how many different values there are of the rest."""
    found: dict[str, list[str]] = {}
    for members in runs.values():
        for run in members:
            for name, value in _provenance_of(run) if is_local else []:
                found.setdefault(name, []).append(value)
    made = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
    rows: list[list[object]] = [["This page", f"{made}, MOSAIC {__version__}"]]
    if command:
        rows.append(["Made with", shlex.join(command)])
    for name, values in found.items():
        unique = list(dict.fromkeys(values))
        more = f" … and {len(unique) - 3} more" if len(unique) > 3 else ""
        rows.append([name, "; ".join(unique[:3]) + more])
    return table(["", ""], rows)


def _provenance_of(run: "Run") -> list[tuple[str, str]]:
    document = read_run_json(RunDir(run.run_dir).provenance, MOST_BYTES) if run.run_dir else None
    skipped = ("Command", "Seeds")  # each run has its own
    return [row for row in provenance_rows(document or {}) if row[0] not in skipped]
