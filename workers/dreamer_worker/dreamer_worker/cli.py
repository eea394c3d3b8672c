"""python -m dreamer_worker.cli --config FILE [--script parallel | train | eval] [--role env --index 3]

A role alone (env, replay, logger, agent) is one process of a run whose launcher is on another machine: the config names
the three addresses, and DREAMER_SECRET (or the config) the secret.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from dataclasses import replace

from mosaic_sdk.cli import conduct, refuse, standard_parser, tell_dry_run
from mosaic_sdk.config import ConfigError, load_config

from dreamer_worker.config import SCRIPTS, DreamerConfig

ROLES = ("env", "replay", "logger", "agent")


def main(argv: Sequence[str] | None = None) -> int:
    parser = standard_parser("dreamer_worker", "DreamerV3: learns a world model and acts by dreaming in it.")
    parser.add_argument("--script", choices=SCRIPTS, help="instead of the config's")
    parser.add_argument("--role", choices=ROLES, help="be one process of a run that is launched elsewhere")
    parser.add_argument("--index", type=int, default=0, help="which env, with --role env")
    args = parser.parse_args(argv)
    if args.verbose:
        _log_to_stderr()
    try:
        config = DreamerConfig.from_dict(load_config(args.config))
        if args.script:
            config = replace(config, script=args.script)
        if args.dry_run:
            return tell_dry_run(config.resolved().to_dict())
    except ConfigError as error:
        return refuse(error)
    if args.interactive:
        from dreamer_worker.interactive import serve

        serve(config)
        return 0
    return run_role(config, args.role, args.index) if args.role else run(config)


def run(config: DreamerConfig) -> int:
    from dreamer_worker.runtime import DreamerRuntime
    from dreamer_worker.telemetry import Telemetry

    tell = Telemetry(run_id=config.run_id)
    return conduct(DreamerRuntime(config, tell).run, tell)


def run_role(config: DreamerConfig, role: str, index: int) -> int:
    """One process of a run, until SIGTERM or Ctrl-C."""
    from dreamer_worker.life import Life
    from dreamer_worker.parallel import prepare, works

    if "auto" in (config.actor_addr, config.replay_addr, config.logger_addr):
        return refuse(ConfigError("A role of its own needs actor_addr, replay_addr and logger_addr in its config."))
    config = prepare(config)
    life = Life()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: life.stop())
    works(config)[f"env{index}" if role == "env" else role](life)
    return 0


def _log_to_stderr() -> None:
    import logging
    import os

    os.environ["DREAMER_LOG"] = "INFO"  # the processes of the run too
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")


if __name__ == "__main__":
    sys.exit(main())
