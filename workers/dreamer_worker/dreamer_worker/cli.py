"""python -m dreamer_worker.cli --config FILE [--script parallel | train | eval] [--role env --index 0-7]

A role alone (env, replay, logger, agent) is one process of a run whose launcher is on another machine, or several envs:
the config names the three addresses, and DREAMER_SECRET (or the config) the secret. The command stays beside its
processes and starts one again that dies.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from dataclasses import replace

from mosaic_sdk.cli import WorkerStopped, conduct, refuse, standard_parser, tell_dry_run
from mosaic_sdk.config import ConfigError, load_config

from dreamer_worker.config import SCRIPTS, DreamerConfig

ROLES = ("env", "replay", "logger", "agent")


def main(argv: Sequence[str] | None = None) -> int:
    parser = standard_parser("dreamer_worker", "DreamerV3: learns a world model and acts by dreaming in it.")
    parser.add_argument("--script", choices=SCRIPTS, help="instead of the config's")
    parser.add_argument("--role", choices=ROLES, help="a process of a run that is launched elsewhere, kept alive")
    parser.add_argument("--index", default="0", help="which envs, with --role env: 3, or 0-7")
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
    from dreamer_worker.life import leave
    from dreamer_worker.runtime import DreamerRuntime
    from dreamer_worker.telemetry import Telemetry

    tell = Telemetry(run_id=config.run_id)
    code = conduct(DreamerRuntime(config, tell).run, tell)
    if config.script == "parallel" and not config.agent_process:
        leave(code)  # its agent may be compiling in here, and Python would abort over it
    return code


def run_role(config: DreamerConfig, role: str, index: str) -> int:
    """A role of a run, until SIGTERM or Ctrl-C."""
    from dreamer_worker import parallel
    from dreamer_worker.supervisor import RoleFailed

    if "auto" in (config.actor_addr, config.replay_addr, config.logger_addr):
        return refuse(ConfigError("A role of its own needs actor_addr, replay_addr and logger_addr in its config."))
    config = parallel.prepare(config)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _raise_stopped)
    try:
        parallel.run_role(config, names_of(role, index, config))
    except ConfigError as error:
        return refuse(error)
    except RoleFailed as error:
        print(error, file=sys.stderr)
        return 1
    except WorkerStopped:
        pass
    return 0


def names_of(role: str, index: str, config: DreamerConfig) -> list[str]:
    """The processes that a role stands for."""
    if role != "env":
        return [role]
    first, _, last = index.partition("-")
    count = config.envs + config.eval_envs
    if not (first.isdigit() and (last or first).isdigit() and int(first) <= int(last or first) < count):
        raise ConfigError(f"--index {index}: this run has envs 0 to {count - 1}. Name one (3) or some (0-7).")
    return [f"env{number}" for number in range(int(first), int(last or first) + 1)]


def _raise_stopped(*_: object) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)  # a second one must not cut the ending short
    raise WorkerStopped


def _log_to_stderr() -> None:
    import logging
    import os

    os.environ["DREAMER_LOG"] = "INFO"  # the processes of the run too
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")


if __name__ == "__main__":
    sys.exit(main())
