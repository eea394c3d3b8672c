"""python -m balrog_worker.cli --config FILE [--dry-run]"""

import sys
from collections.abc import Sequence

from mosaic_sdk import emit
from mosaic_sdk.cli import conduct, print_dry_run, refuse, standard_parser
from mosaic_sdk.config import ConfigError, load_config

from balrog_worker.config import BalrogConfig


def main(argv: Sequence[str] | None = None) -> int:
    parser = standard_parser("balrog_worker", "Evaluates language models as agents in text games.")
    args = parser.parse_args(argv)
    if args.interactive:
        parser.error("this worker has no interactive mode; play single environments with the worker llm")
    try:
        config = BalrogConfig.from_dict(load_config(args.config))
    except ConfigError as error:
        return refuse(error)
    if args.dry_run:
        return print_dry_run({**config.to_dict(), "plays": [str(task) for task in config.chosen_tasks()]})
    from balrog_worker.runtime import BalrogRuntime

    emit.stdout().run_id = config.run_id
    return conduct(lambda: BalrogRuntime(config).run())


if __name__ == "__main__":
    sys.exit(main())
