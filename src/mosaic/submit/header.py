"""What a custom script says of itself in comments at its top: `# @total_timesteps: 50000`."""

import re

_HEAD_BYTES = 4096
_TOTAL = re.compile(rb"^#\s*@total_timesteps\s*:?\s*([0-9][0-9_,]*)\s*$", re.MULTILINE)


def total_timesteps(script: str) -> int | None:
    """Of all its phases together, for the progress bar; None when it does not say."""
    try:
        with open(script, "rb") as file:
            found = _TOTAL.search(file.read(_HEAD_BYTES))
    except OSError:
        return None
    total = int(found[1].replace(b",", b"").replace(b"_", b"")) if found else 0
    return total if 0 < total < 2**63 else None
