"""Which of a run's metrics are shown first: a few of each kind, so that fifty losses do not hide the rest."""

import re
from collections.abc import Iterable

from mosaic.present.metric_order import in_order

MOST = 6
KINDS = (  # pattern, and how many of them at most
    (r"^eval|/eval", 1),
    (r"return|score|success|win_rate|reward", 2),
    (r"length", 1),
    (r"(value|policy|actor|critic|qf\d?|td|model)_?loss|loss/(value|policy|actor|critic|model)", 2),
    (r"(^|[/_])(sps|fps)$|steps?_per_s", 1),
    (r"loss[^/]*$", 3),
    (r"entropy|epsilon", 1),
)
# The same number under two names: a worker's own, and the one that MOSAIC gives to every worker's episodes.
TWINS = (
    ("episode/return", re.compile(r"episod(e|ic)_?(return|reward)|ep_rew_mean", re.IGNORECASE)),
    ("episode/length", re.compile(r"episod(e|ic)_?length|ep_len_mean", re.IGNORECASE)),
)


def first_metrics(names: Iterable[str], most: int = MOST) -> list[str]:
    """At most `most` names: return, length, losses and speed before the rest."""
    known = set(names)
    ordered = in_order(known - _twins(known))
    chosen: list[str] = []
    for pattern, many in KINDS:
        found = [name for name in ordered if name not in chosen and re.search(pattern, name, re.IGNORECASE)]
        chosen += found[:many]
    chosen += [name for name in ordered if name not in chosen]
    return chosen[:most]


def _twins(names: set[str]) -> set[str]:
    """The names that only repeat another one of them."""
    return {
        name
        for shared, pattern in TWINS
        if shared in names
        for name in names
        if name != shared and pattern.search(name)
    }


def search(names: Iterable[str], wanted: str) -> list[str]:
    """The names that contain every word that was typed."""
    words = wanted.lower().split()
    return [name for name in names if all(word in name.lower() for word in words)]
