"""python -m dreamer_worker.cli --config FILE [--script parallel | train | eval] [--role env --index 0-7]

A role (env, replay, logger, agent) is one process, or several envs, of a run whose launcher is on another machine. The
config has the three addresses, and DREAMER_SECRET (or the config) the secret. The command restarts its processes when
they die.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence

from mosaic_sdk.cli import WorkerStopped, conduct, print_dry_run, refuse, standard_parser
from mosaic_sdk.config import ConfigError, load_config
from mosaic_sdk.parts import own_part

from dreamer_worker.config import SCRIPTS, DreamerConfig

ROLES = ("env", "replay", "logger", "agent")
EXAMPLES = """examples:
  echo '{"run_id": "try", "env": "gym_CartPole-v1", "size": "1m"}' > run.json
  python -m dreamer_worker.cli --config run.json                      the processes of a run, into logdir/try
  python -m dreamer_worker.cli --config run.json --script train       the same in one process
  python -m dreamer_worker.cli --config run.json --script eval        play what it has learned
  python -m dreamer_worker.cli --config run.json --role env --index 0-7      envs of a run that is launched elsewhere
  python -m dreamer_worker.cli --config run.json --interactive        step by step: {"cmd": "reset"}, {"cmd": "step"}, …
"""


def main(argv: Sequence[str] | None = None) -> int:
    parser = standard_parser("dreamer_worker", "DreamerV3: learns a world model and trains its policy inside it.")
    parser.epilog, parser.formatter_class = EXAMPLES, argparse.RawDescriptionHelpFormatter
    parser.add_argument("--script", choices=SCRIPTS, help="overrides the script of the config")
    parser.add_argument("--role", choices=ROLES, help="run one process of a run that is launched elsewhere")
    parser.add_argument("--index", default="0", help="which envs, with --role env: 3, or 0-7")
    args = parser.parse_args(argv)
    if args.verbose:
        _log_to_stderr()
    part = own_part()
    try:
        if part and not (args.dry_run or args.interactive):
            from dreamer_worker.meeting import run_part

            return run_part(part, str(load_config(args.config)["run_id"]))
        config = DreamerConfig.from_dict(load_config(args.config))
        if args.script:
            config = config.replace(script=args.script)
        if args.dry_run:
            return dry_run(config.resolved())
    except ConfigError as error:
        return refuse(error)
    if args.interactive:
        from dreamer_worker.interactive import run_interactive

        try:
            return run_interactive(config)
        except ConfigError as error:
            return refuse(error)
    return run_role(config, args.role, args.index) if args.role else run(config)


def dry_run(config: DreamerConfig) -> int:
    """Print what would run. The env is created as a check; the agent is not, because that takes a minute."""
    from dreamer_worker.factories import make_env

    if config.checkpoint and not os.path.exists(config.checkpoint):
        raise ConfigError(f"checkpoint: {config.checkpoint} does not exist. Give a run's folder.")
    try:
        make_env(config, 0).close()
    except ConfigError:
        raise
    except Exception as error:  # noqa: BLE001  a library may raise anything about an unknown name or option
        raise ConfigError(f"env: {config.env} cannot be created: {type(error).__name__}: {error}") from None
    return print_dry_run({**config.to_dict(), "secret": "…" if config.secret else ""})


def run(config: DreamerConfig) -> int:
    from dreamer_worker.life import leave
    from dreamer_worker.runtime import DreamerRuntime
    from dreamer_worker.telemetry import Telemetry

    telemetry = Telemetry(run_id=config.run_id)
    code = conduct(DreamerRuntime(config, telemetry).run, telemetry)
    if config.script == "parallel" and not config.agent_process:
        leave(code)  # the agent may be compiling in a thread, and a normal exit would abort Python
    return code


def run_role(config: DreamerConfig, role: str, index: str) -> int:
    """A role of a run, until SIGTERM or Ctrl-C."""
    from dreamer_worker import parallel
    from dreamer_worker.supervisor import RoleFailed

    if "auto" in (config.actor_addr, config.replay_addr, config.logger_addr):
        return refuse(ConfigError("A role needs actor_addr, replay_addr and logger_addr in its config."))
    if not (config.secret or os.environ.get("DREAMER_SECRET")):
        return refuse(ConfigError("A role needs the run's secret. Set DREAMER_SECRET on all machines."))
    try:
        config = parallel.prepare(config)
        names = names_of(role, index, config)
    except ConfigError as error:
        return refuse(error)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _raise_stopped)
    print(f"{', '.join(names)}: {place_of(role, config)}", file=sys.stderr, flush=True)
    try:
        parallel.run_role(config, names)
    except RoleFailed as error:
        print(error, file=sys.stderr)
        return 1
    except WorkerStopped:
        pass
    return 0


def place_of(role: str, config: DreamerConfig) -> str:
    """Where a role listens or connects. Nothing else is printed until the other processes are there."""
    if role == "env":
        return f"waits for the actor at {config.actor_addr}, which must have the same secret."
    address = {"agent": config.actor_addr, "replay": config.replay_addr, "logger": config.logger_addr}[role]
    return f"listens at {address} for clients with the secret."


def names_of(role: str, index: str, config: DreamerConfig) -> list[str]:
    """The processes of a role."""
    if role != "env":
        return [role]
    first, _, last = index.partition("-")
    count = config.envs + config.eval_envs
    if not (first.isdigit() and (last or first).isdigit() and int(first) <= int(last or first) < count):
        raise ConfigError(f"--index {index}: this run has envs 0 to {count - 1}. Give one (3) or a range (0-7).")
    return [f"env{number}" for number in range(int(first), int(last or first) + 1)]


def _raise_stopped(*_: object) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)  # a second signal must not interrupt the shutdown
    raise WorkerStopped


def _log_to_stderr() -> None:
    import logging

    os.environ["DREAMER_LOG"] = "INFO"  # the processes of the run too
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")


if __name__ == "__main__":
    sys.exit(main())
