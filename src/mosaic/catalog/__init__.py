"""Which workers exist, in which environment, and the command that starts one."""

import importlib.util
import sys
from pathlib import Path


def _find_sdk() -> None:
    """`pip install -e .` alone brings no mosaic-sdk: take the one in the checkout, or the one inside the wheel."""
    package = Path(__file__).parents[1]
    for place in (package / "bundled", package.parents[1]):
        if (place / "sdk" / "src").is_dir():
            sys.path.append(str(place / "sdk" / "src"))
            return


if importlib.util.find_spec("mosaic_sdk") is None:
    _find_sdk()
