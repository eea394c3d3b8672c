"""python -m xuance_worker.cli --config FILE [--dry-run] [--interactive]"""

import sys
from collections.abc import Sequence

from mosaic_sdk.library.cli import run_library

from xuance_worker.config import XuanceConfig


def main(argv: Sequence[str] | None = None) -> int:
    description = "Trains XuanCe's single- and multi-agent algorithms under MOSAIC."
    return run_library("xuance_worker", XuanceConfig, description, argv)


if __name__ == "__main__":
    sys.exit(main())
