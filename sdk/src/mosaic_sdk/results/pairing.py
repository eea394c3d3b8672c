"""Who is compared with whom, and on which returns.

Operators are compared on the seeds that both have played; in a competition, in the games between the two. Agents that
share a goal share its reward, so that comparing them with each other says nothing; then lanes are compared, by the mean
return of their agents.
"""

from itertools import combinations
from typing import Iterable, List, NamedTuple, Sequence

from mosaic_sdk.results.comparison import Comparison, Scores, adjust, compare
from mosaic_sdk.results.games import Row, episodes_of, is_competition, is_multi_agent
from mosaic_sdk.results.rows import is_repeated, scores_of
from mosaic_sdk.results.teams import with_teams


class Pair(NamedTuple):
    a: str
    scores_a: Scores
    b: str
    scores_b: Scores


def comparisons(good: Sequence[Row], operators: Iterable[str]) -> List[Comparison]:
    return adjust([compare(*pair) for pair in paired(good, operators)])


def paired(good: Sequence[Row], operators: Iterable[str]) -> List[Pair]:
    """Every pair and its returns. `good`: the rows that are averaged; `operators`: in the order of the result."""
    names = [name for name in operators if of("operator", name, good)]
    if is_competition(good):
        met = [_head_to_head(a, b, good) for a, b in combinations(names, 2)]
        return [pair for pair in met if pair.scores_a]
    if not is_multi_agent(good):
        return _pairs("operator", names, good)
    teams = with_teams(good)
    return _pairs("team", distinct("team", teams), teams)


def of(column: str, name: str, rows: Iterable[Row]) -> List[Row]:
    """The rows with this name in a column."""
    return [row for row in rows if row[column] == name]


def distinct(column: str, rows: Iterable[Row]) -> List[str]:
    """The names in a column, in the order of their first rows."""
    return list(dict.fromkeys(row[column] for row in rows))


def _pairs(column: str, names: Sequence[str], good: Sequence[Row]) -> List[Pair]:
    scores = {name: scores_of(of(column, name, good), is_repeated(good)) for name in names}
    return [Pair(a, scores[a], b, scores[b]) for a, b in combinations(names, 2)]


def _head_to_head(a: str, b: str, good: Sequence[Row]) -> Pair:
    met = [rows for rows in episodes_of(good) if {a, b} <= {row["operator"] for row in rows}]
    rows = [row for episode in met for row in episode]
    scores = [scores_of(of("operator", name, rows), is_repeated(good)) for name in (a, b)]
    return Pair(a, scores[0], b, scores[1])
