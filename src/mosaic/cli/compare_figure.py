"""The curves of a comparison as a figure for a paper: `--save curves.pdf`. Drawn by matplotlib, which is optional."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mosaic.model.errors import MosaicError

if TYPE_CHECKING:
    from mosaic.present.group_comparison import GroupComparison
    from mosaic.stats.bands import Band

FORMATS = (".svg", ".png", ".pdf")
# Okabe and Ito's palette, which people with a colour vision deficiency can tell apart; dashes from the eighth on.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#8C8C8C")
DASHES = ("-", "--", ":", "-.")
MOST_COLUMNS = 3
STYLE: Any = {
    "figure.figsize": (5.5, 3.4),
    "figure.dpi": 200,
    "font.size": 9,
    "font.family": "sans-serif",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.5,
    "legend.frameon": False,
    "pdf.fonttype": 42,  # text stays text, as journals require
    "svg.fonttype": "none",
    "svg.hashsalt": "mosaic",  # the same numbers give the same file
}


def check_figure(path: str) -> None:
    """Refuse a figure that cannot be drawn, before any work is done."""
    if os.path.splitext(path)[1].lower() not in FORMATS:
        raise MosaicError(f"'{path}' does not end in {', '.join(FORMATS[:-1])} or {FORMATS[-1]}.")
    if not os.path.isdir(os.path.dirname(path) or "."):
        raise MosaicError(f"Cannot write {path}: the folder does not exist.")
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise MosaicError(
            "Saving a figure needs matplotlib. Install it beside MOSAIC with: pip install 'mosaic-rl[plots]'"
        ) from None


def save_figure(found: "GroupComparison", path: str) -> None:
    import matplotlib

    from mosaic.exports.target import overwritten_file

    wanted = _wanted(found)
    if not wanted:
        raise MosaicError(f"There is nothing to save in {path}. {found.curve_words}")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    with matplotlib.rc_context(STYLE):
        width, height = STYLE["figure.figsize"]
        columns = min(len(wanted), MOST_COLUMNS)
        rows = -(-len(wanted) // columns)
        size = (width * columns, height * rows)
        figure, places = pyplot.subplots(rows, columns, layout="constrained", squeeze=False, figsize=size)
        for axes, (env, bands) in zip(places.flat, wanted, strict=False):
            _draw(axes, found, env, bands)
        for axes in places.flat[len(wanted) :]:
            axes.remove()
        kind = os.path.splitext(path)[1].lower().lstrip(".")
        try:
            with overwritten_file(path) as place:
                figure.savefig(place, format=kind, metadata={"Date": None} if kind == "svg" else None)
        finally:
            pyplot.close(figure)


def _wanted(found: "GroupComparison") -> "list[tuple[str, list[Band | None]]]":
    """The plots: one, or with several environments the average over them and one of each."""
    average = [group.band for group in found.groups]
    return [*([("", average)] if any(average) else []), *((panel.env, panel.bands) for panel in found.panels)]


def _draw(axes: Any, found: "GroupComparison", env: str, bands: "Sequence[Band | None]") -> None:
    """`env`: the environment of a panel; empty for all of them, which may be normalised."""
    from mosaic.stats.averages import TITLES
    from mosaic.stats.bands import BANDS

    for index, (group, band) in enumerate(zip(found.groups, bands, strict=True)):
        if band is None:
            continue
        colour, dash = COLOURS[index % len(COLOURS)], DASHES[index // len(COLOURS) % len(DASHES)]
        runs = sum(not env or sample.run.env_id == env for sample in group.counted)
        label = _plain(f"{group.label} ({runs} {found.unit}s)")
        axes.plot(band.step, band.middle, dash, color=colour, label=label)
        axes.fill_between(band.step, band.low, band.high, color=colour, alpha=0.18, linewidth=0)
    axes.set_xlabel(_plain(found.axis))
    axes.set_ylabel(f"{_plain(found.metric)}{' (normalised)' if found.options.scales and not env else ''}")
    where = f"{_plain(env)}: " if env else ""
    axes.set_title(f"{where}{TITLES[found.options.average]}, {BANDS[found.options.band]}", fontsize=8, color="0.35")
    axes.ticklabel_format(axis="x", style="sci", scilimits=(-3, 5), useMathText=True)
    axes.margins(x=0.01)
    axes.legend(loc="best", fontsize=8)


def _plain(text: str) -> str:
    """Text that matplotlib takes neither for a formula nor, because of its first character, for a hidden label."""
    return text.replace("$", r"\$").replace("_", "\N{ZERO WIDTH SPACE}_", text.startswith("_"))
