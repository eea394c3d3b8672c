"""Suggestions for a name that does not exist."""

import difflib
from collections.abc import Iterable

LONGEST = 100  # characters; comparing texts of a million would block the daemon


def nearest(asked: str, known: Iterable[str], n: int = 3) -> list[str]:
    """At most `n` known names, best first: those that start with it, end with it after / or a dot, or are similar."""
    if not asked or len(asked) > LONGEST:
        return []
    low = asked.lower()
    names = [name for name in known if isinstance(name, str)]  # a damaged registry has names of other types
    begin = [name for name in names if name.lower().startswith(low)]
    end = [name for name in names if name.lower().endswith((f"/{low}", f".{low}"))]
    alike = difflib.get_close_matches(low, [name.lower() for name in names], n)
    by_low = {name.lower(): name for name in names}
    return list(dict.fromkeys([*begin, *end, *(by_low[name] for name in alike)]))[:n]


def did_you_mean(asked: str, known: Iterable[str], n: int = 3) -> str:
    """`Did you mean 'a' or 'b'?`; empty when no name is similar."""
    quoted = [f"'{name}'" for name in nearest(asked, known, n)]
    return f"Did you mean {' or '.join(quoted)}?" if quoted else ""
