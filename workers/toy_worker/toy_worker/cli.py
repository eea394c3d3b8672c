"""python -m toy_worker.cli --config FILE"""

import sys
from typing import Optional, Sequence

from mosaic_sdk.cli import conduct, refuse, standard_parser, tell_dry_run
from mosaic_sdk.config import ConfigError, load_config

from toy_worker.config import ToyConfig


def main(argv: Optional[Sequence[str]] = None) -> int:
    parser = standard_parser("toy_worker", "Pretends to learn, at a chosen rate, and misbehaves on request.")
    args = parser.parse_args(argv)
    if args.interactive:
        parser.error("the toy worker has no interactive mode")
    try:
        config = ToyConfig.from_dict(load_config(args.config))
    except ConfigError as error:
        return refuse(error)
    return tell_dry_run(config.to_dict()) if args.dry_run else run(config)


def run(config: ToyConfig) -> int:
    from toy_worker.runtime import ToyRuntime
    from toy_worker.telemetry import Telemetry

    tell = Telemetry(config)
    code = conduct(ToyRuntime(config, tell).run, tell)
    if config.no_newline_at_end:
        tell.raw(b'{"event_type":"metric","name":"toy/last","value":1,"step":0}', "unterminated", 0)
    tell.record.close()
    return code or config.exit_code


if __name__ == "__main__":
    sys.exit(main())
