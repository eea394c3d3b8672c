"""Reads the header comments of a custom script: `# @total_timesteps: 50000`."""

import re

_HEAD_BYTES = 4096
_TOTAL = re.compile(rb"^#\s*@total_timesteps\s*:?\s*([0-9][0-9_,]*)\s*$", re.MULTILINE)


def total_timesteps(script: str) -> int | None:
    """The total of all its phases, for the progress bar; None if the header does not say."""
    try:
        with open(script, "rb") as file:
            found = _TOTAL.search(file.read(_HEAD_BYTES))
    except OSError:
        return None
    total = int(found[1].replace(b",", b"").replace(b"_", b"")) if found else 0
    return total if 0 < total < 2**63 else None
