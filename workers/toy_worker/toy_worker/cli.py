"""python -m toy_worker.cli --config FILE [--dry-run | --interactive]"""

import sys
from typing import Optional, Sequence

from mosaic_sdk.cli import conduct, print_dry_run, refuse, standard_parser
from mosaic_sdk.config import ConfigError, load_config

from toy_worker.config import ToyConfig


def main(argv: Optional[Sequence[str]] = None) -> int:
    parser = standard_parser("toy_worker", "Pretends to learn, at a chosen rate, and misbehaves on request.")
    args = parser.parse_args(argv)
    try:
        config = ToyConfig.from_dict(load_config(args.config))
    except ConfigError as error:
        return refuse(error)
    if args.dry_run:
        return print_dry_run(config.to_dict())
    return play(config) if args.interactive else run(config)


def run(config: ToyConfig) -> int:
    from mosaic_sdk.parts import own_part

    from toy_worker.helpers import help_run
    from toy_worker.runtime import ToyRuntime
    from toy_worker.telemetry import Telemetry

    telemetry, part = Telemetry(config), own_part()
    if part:
        return conduct(lambda: help_run(part, config, telemetry), telemetry)
    code = conduct(ToyRuntime(config, telemetry).run, telemetry)
    if config.no_newline_at_end:
        telemetry.raw(b'{"event_type":"metric","name":"toy/last","value":1,"step":0}', "unterminated", 0)
    telemetry.record.close()
    return code or config.exit_code


def play(config: ToyConfig) -> int:
    import os

    from mosaic_sdk.interactive import serve

    from toy_worker.faults import Faults
    from toy_worker.interactive import ToyPlayer

    # A copy, because serve() takes stdout away from everything but answers.
    faults = Faults(config, os.dup(1))
    return serve(lambda: ToyPlayer(config, faults), run_id=config.run_id, first_seed=config.seed or 0)


if __name__ == "__main__":
    sys.exit(main())
