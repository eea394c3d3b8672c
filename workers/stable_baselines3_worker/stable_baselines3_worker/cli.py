"""python -m stable_baselines3_worker.cli --config FILE [--dry-run | --interactive]"""

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from mosaic_sdk.cli import run_worker, standard_parser

from stable_baselines3_worker.config import POLICY_EVAL, StableBaselines3Config


def work(keys: dict[str, Any], args: Any) -> Mapping[str, Any]:
    # Imported here: --help and --dry-run need not wait for the library.
    config = StableBaselines3Config.from_dict(keys)
    if config.mode == POLICY_EVAL:
        from stable_baselines3_worker.evaluate import evaluate

        return evaluate(config)
    from stable_baselines3_worker.runtime import StableBaselines3Runtime

    return StableBaselines3Runtime(config).run()


def interact(keys: dict[str, Any], args: Any) -> int:
    from mosaic_sdk.interactive import serve

    from stable_baselines3_worker.interactive import StableBaselines3Player

    config = StableBaselines3Config.from_dict(keys)
    return serve(lambda: StableBaselines3Player(config), run_id=config.run_id, first_seed=config.seed)


def main(argv: Sequence[str] | None = None) -> int:
    parser = standard_parser("stable_baselines3_worker", "Runs Stable-Baselines3 under MOSAIC.")
    return run_worker(work, argv=argv, parser=parser, check=StableBaselines3Config.from_dict, interactive=interact)


if __name__ == "__main__":
    sys.exit(main())
