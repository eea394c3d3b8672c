"""python -m stable_baselines3_worker.cli --config FILE [--dry-run | --interactive]"""

import sys
from collections.abc import Sequence

from mosaic_sdk.library.cli import run_library

from stable_baselines3_worker.config import StableBaselines3Config


def main(argv: Sequence[str] | None = None) -> int:
    description = "Runs Stable-Baselines3 under MOSAIC."
    return run_library("stable_baselines3_worker", StableBaselines3Config, description, argv)


if __name__ == "__main__":
    sys.exit(main())
