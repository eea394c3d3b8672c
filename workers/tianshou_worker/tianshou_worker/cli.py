"""python -m tianshou_worker.cli --config FILE [--dry-run | --interactive]"""

import sys
from collections.abc import Sequence

from mosaic_sdk.library.cli import run_library

from tianshou_worker.config import TianshouConfig


def main(argv: Sequence[str] | None = None) -> int:
    return run_library("tianshou_worker", TianshouConfig, "Trains with Tianshou under MOSAIC.", argv)


if __name__ == "__main__":
    sys.exit(main())
