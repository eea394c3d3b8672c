"""python -m ray_worker.cli --config FILE [--dry-run | --interactive]"""

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from mosaic_sdk.cli import run_worker, standard_parser

from ray_worker.config import POLICY_EVAL, RayWorkerConfig


def work(keys: dict[str, Any], args: Any) -> Mapping[str, Any]:
    # Imported here: --help and --dry-run need not wait for the libraries.
    config = RayWorkerConfig.from_dict(keys)
    if config.mode == POLICY_EVAL:
        from ray_worker.evaluate import evaluate

        return evaluate(config)
    from ray_worker.runtime import RayWorkerRuntime

    return RayWorkerRuntime(config).run()


def interact(keys: dict[str, Any], args: Any) -> int:
    from mosaic_sdk.interactive import serve

    from ray_worker.interactive import RayPlayer

    config = RayWorkerConfig.from_dict(keys)
    return serve(lambda: RayPlayer(config), run_id=config.run_id, first_seed=config.seed)


def main(argv: Sequence[str] | None = None) -> int:
    parser = standard_parser("ray_worker", "Trains with Ray RLlib under MOSAIC.")
    return run_worker(work, argv=argv, parser=parser, check=RayWorkerConfig.from_dict, interactive=interact)


if __name__ == "__main__":
    sys.exit(main())
