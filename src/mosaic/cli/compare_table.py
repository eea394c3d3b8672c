"""A comparison of groups on the terminal: what is compared, a line per group, a sentence per pair, curves, warnings."""

import csv
import io
import shutil
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mosaic_sdk.results.wording import bracket, number

from mosaic.cli.braille import Line, plot
from mosaic.cli.table import clip, render_table
from mosaic.cli.terminal_text import paint
from mosaic.present.text import printable
from mosaic.stats.averages import TITLES
from mosaic.stats.bands import BANDS

if TYPE_CHECKING:
    from mosaic.present.group_comparison import GroupComparison, GroupResult
    from mosaic.stats.bands import Band
    from mosaic.stats.estimate import Estimate

NARROWEST, WIDEST_PLOT = 80, 110
MOST_SENTENCES, MOST_WARNINGS = 15, 12
MOST_PANELS, PANEL_ROWS = 4, 10
LONGEST_LABEL = 40
COLUMNS = ("iqm", "mean", "median", "optimality_gap")


def render(found: "GroupComparison", width: int | None = None) -> str:
    wide = max(NARROWEST, width or shutil.get_terminal_size((NARROWEST, 24)).columns)
    curves = [_curves(found, wide), *_panels(found, wide)]
    sections = [heading(found), _table(found), _sentences(found, wide), *curves, _warnings(found, wide)]
    return "\n\n".join(section for section in sections if section)


def heading(found: "GroupComparison") -> str:
    where = ", ".join(env for env in found.envs if env)
    return f"{f'{where}: ' if where else ''}{found.value_words}"


def _table(found: "GroupComparison") -> str:
    shown = [name for name in COLUMNS if any(name in group.estimates for group in found.groups)]
    headings = ("GROUP", f"{found.unit.upper()}S", *(f"{TITLES[name].upper()} [95 %]" for name in shown))
    rows = [
        (clip(group.label, LONGEST_LABEL), _many(group), *(_cell(group.estimates.get(name)) for name in shown))
        for group in found.groups
    ]
    return render_table(headings, rows, right=frozenset({1}))


def _many(group: "GroupResult") -> str:
    counted, every = len(group.counted), len(group.samples)
    return str(every) if counted == every else f"{counted} of {every}"


def _cell(estimate: "Estimate | None") -> str:
    return "–" if estimate is None else f"{number(estimate.value)} {bracket(estimate.interval)}".rstrip()


def _sentences(found: "GroupComparison", width: int) -> str:
    # Clear differences first: with many groups the others would hide them.
    told = sorted(zip(found.pairs, found.sentences(), strict=True), key=lambda pair: not pair[0].is_clear)
    lines = [_wrap(text, width) for _, text in told[:MOST_SENTENCES]]
    if left := len(told) - len(lines):
        lines.append(paint(f"… and {left} more comparisons: --json has all of them", "dim"))
    return "\n".join(lines)


def _lines(found: "GroupComparison", bands: "Sequence[Band | None]") -> list[Line]:
    return [
        Line(group.label, band.step, band.middle, band.low, band.high)
        for group, band in zip(found.groups, bands, strict=True)
        if band
    ]


def _panels(found: "GroupComparison", width: int) -> list[str]:
    """The curves in each of several environments."""
    shown = [
        f"{paint(f'{printable(panel.env)}: {found.metric} over {found.axis}', 'dim')}\n"
        + plot(_lines(found, panel.bands), min(width, WIDEST_PLOT), PANEL_ROWS)
        for panel in found.panels[:MOST_PANELS]
    ]
    if left := len(found.panels) - len(shown):
        shown.append(paint(f"… and {left} more environments: --report has all of them", "dim"))
    return shown


def _curves(found: "GroupComparison", width: int) -> str:
    lines = _lines(found, [group.band for group in found.groups])
    drawn = plot(lines, min(width, WIDEST_PLOT)) if lines else ""
    metric = f"{found.metric}{', normalised,' if found.options.scales else ''}"
    title = f"{metric} over {found.axis}: {TITLES[found.options.average]}, {BANDS[found.options.band]} dotted"
    parts = [paint(title, "dim"), drawn] if drawn else []
    return "\n".join([*parts, _wrap(found.curve_words, width)]).rstrip()


def _warnings(found: "GroupComparison", width: int) -> str:
    told = [paint(_wrap(f"warning: {text}", width), "yellow") for text in found.warnings[:MOST_WARNINGS]]
    if left := len(found.warnings) - len(told):
        told.append(paint(f"… and {left} more warnings: --json has all of them", "dim"))
    return "\n".join(told)


def _wrap(text: str, width: int) -> str:
    return "\n".join(textwrap.wrap(text, width, subsequent_indent="  ", break_on_hyphens=False))


def csv_text(found: "GroupComparison") -> str:
    """A line per group."""
    shown = [name for name in COLUMNS if any(name in group.estimates for group in found.groups)]
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(("group", "n", "of", *(f"{name}{end}" for name in shown for end in ("", "_low", "_high"))))
    for group in found.groups:
        cells = [cell for name in shown for cell in _csv_cells(group.estimates.get(name))]
        writer.writerow((group.label, len(group.counted), len(group.samples), *cells))
    return file.getvalue()


def _csv_cells(estimate: "Estimate | None") -> tuple[object, object, object]:
    if estimate is None:
        return "", "", ""
    return (estimate.value, *(estimate.interval or ("", "")))
