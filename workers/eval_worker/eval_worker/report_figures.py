"""The report's figures: what is drawn of a summary."""

from collections.abc import Hashable, Mapping
from typing import Any

from mosaic_sdk.results.pairing import Pair, paired
from mosaic_sdk.results.rows import counted, row_of
from mosaic_sdk.results.teams import with_teams

from eval_worker.report_markup import Html, element
from eval_worker.report_plots import Line, plot
from eval_worker.report_style import COLOURS

Colours = Mapping[str, str]
EXPLANATION = (
    "Each dot is an episode. The diamond is the mean, the bar its 95 % confidence interval (percentile bootstrap over "
    "seeds). Failed episodes are left out."
)
DIFFERENCES = "Each dot is a seed: right of the dashed line, the first of the two was better."


class Figures:
    """Where agents share a goal, the figures show lanes; otherwise operators."""

    def __init__(self, summary: Mapping[str, Any]) -> None:
        self._summary = summary
        rows = [row_of(row) for row in summary["rows"]]
        self.column = "team" if summary["lanes"] and not summary["ratings"] else "operator"
        self.rows = with_teams(rows)
        self._good = with_teams(counted(rows))
        self._entries = summary["lanes"] if self.column == "team" else summary["operators"]
        self.names = list(self._entries)

    def returns(self, colours: Colours) -> Html | None:
        lines = [self._line(name, colours, "return", it["mean_return"], it["interval"]) for name, it in self._played()]
        return _figure(lines, "return of an episode", EXPLANATION)

    def lengths(self, colours: Colours) -> Html | None:
        lines = [self._line(name, colours, "length", it["mean_length"], None) for name, it in self._played()]
        return _figure(lines, "steps of an episode", "")

    def differences(self, most: int) -> Html | None:
        """The comparisons of the summary, seed by seed."""
        scores = {(pair.a, pair.b): pair for pair in paired(self._good, self._summary["operators"])}
        found = [(it, scores.get((it["a"], it["b"]))) for it in self._summary["comparisons"][:most]]
        lines = [
            Line(f"{it['a']} − {it['b']}", COLOURS[0], _differences(pair), it["difference"], it["interval"])
            for it, pair in found
            if pair is not None and it["n"]
        ]
        return _figure(lines, "difference of returns on one seed", DIFFERENCES, has_zero=True)

    def _played(self) -> list[tuple[str, Any]]:
        return [(name, it) for name, it in self._entries.items() if it["episodes"]]

    def _line(self, name: str, colours: Colours, value: str, mean: float, interval: list[float] | None) -> Line:
        mine = [row for row in self._good if row[self.column] == name]
        return Line(name, colours[name], [(f"seed {row['seed']}", row[value]) for row in mine], mean, interval)


def _figure(lines: list[Line], axis: str, caption: str, has_zero: bool = False) -> Html | None:
    if not lines:
        return None
    return element("figure", plot(lines, axis, has_zero), element("figcaption", caption) if caption else None)


def _differences(pair: Pair) -> list[tuple[str, float]]:
    both = [seed for seed in pair.scores_a if seed in pair.scores_b]
    return [(_named(seed), pair.scores_a[seed] - pair.scores_b[seed]) for seed in both]


def _named(seed: Hashable) -> str:
    return f"seed {seed[0]}, episode {seed[1]}" if isinstance(seed, tuple) else f"seed {seed}"
