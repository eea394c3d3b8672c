"""python -m ray_worker.cli --config FILE [--dry-run | --interactive]"""

import sys
from collections.abc import Sequence

from mosaic_sdk.library.cli import run_library

from ray_worker.config import RayWorkerConfig


def main(argv: Sequence[str] | None = None) -> int:
    return run_library("ray_worker", RayWorkerConfig, "Trains with Ray RLlib under MOSAIC.", argv)


if __name__ == "__main__":
    sys.exit(main())
