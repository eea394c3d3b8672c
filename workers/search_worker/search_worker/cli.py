"""python -m search_worker.cli --config FILE [--dry-run]"""

import sys
from collections.abc import Sequence

from mosaic_sdk import emit
from mosaic_sdk.cli import conduct, print_dry_run, refuse, standard_parser
from mosaic_sdk.config import ConfigError, load_config

from search_worker.config import SearchConfig


def main(argv: Sequence[str] | None = None) -> int:
    parser = standard_parser("search_worker", "Searches hyper-parameters with Optuna.")
    args = parser.parse_args(argv)
    if args.interactive:
        parser.error("this worker has no interactive mode")
    try:
        config = SearchConfig.from_dict(load_config(args.config))
    except ConfigError as error:
        return refuse(error)
    if args.dry_run:
        return print_dry_run(config.to_dict())
    from search_worker.runtime import SearchRuntime

    emit.stdout().run_id = config.run_id
    return conduct(lambda: SearchRuntime(config).run())


if __name__ == "__main__":
    sys.exit(main())
