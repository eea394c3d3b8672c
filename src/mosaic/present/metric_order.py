"""The order in which a run's metrics are shown: scores, then losses, then the rest."""

import re
from collections.abc import Iterable

# The rank of a name is that of the first pattern that matches; names without a match come last.
RANKS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"^eval(uation)?\b|/eval",
        r"^episode/(return|score)$|episodic_return|(^|/)score$",
        r"return|success|win_rate",
        r"reward",
        r"episode/length|episodic_length",
        r"loss",
        r"entropy|(^|[/_])kl($|[/_])|explained_variance|learning_rate|(^|/)lr$",
    )
)


def in_order(names: Iterable[str]) -> list[str]:
    return sorted(set(names), key=_rank)


def _rank(name: str) -> tuple[int, int, str]:
    """Within a rank, short paths come first: episode/score before actor/rpc/replay/sent_rate."""
    rank = next((rank for rank, pattern in enumerate(RANKS) if pattern.search(name)), len(RANKS))
    return rank, name.count("/"), name
