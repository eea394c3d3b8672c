"""What somebody meant who wrote a name that is not there."""

import difflib
from collections.abc import Iterable

LONGEST = 100  # letters; comparing texts of a million would stop the daemon


def nearest(asked: str, known: Iterable[str], n: int = 3) -> list[str]:
    """Known names, at most `n`, best first: those that begin with it, end with it after a / or a dot, or look alike."""
    if not asked or len(asked) > LONGEST:
        return []
    names, low = list(known), asked.lower()
    begin = [name for name in names if name.lower().startswith(low)]
    end = [name for name in names if name.lower().endswith((f"/{low}", f".{low}"))]
    alike = difflib.get_close_matches(low, [name.lower() for name in names], n)
    by_low = {name.lower(): name for name in names}
    return list(dict.fromkeys([*begin, *end, *(by_low[name] for name in alike)]))[:n]


def did_you_mean(asked: str, known: Iterable[str], n: int = 3) -> str:
    """`Did you mean 'a' or 'b'?`; empty when nothing is near."""
    quoted = [f"'{name}'" for name in nearest(asked, known, n)]
    return f"Did you mean {' or '.join(quoted)}?" if quoted else ""
