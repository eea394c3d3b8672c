"""`mosaic run` and `mosaic submit`."""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mosaic.catalog.request import RunOptions, trainer_config, worker_section
from mosaic.cli.amounts import cpus, memory
from mosaic.cli.connection import connected, host_of, refuse_host, seen_from_here
from mosaic.cli.durations import parse_duration
from mosaic.cli.follow import follow, wait_quietly
from mosaic.cli.parser import Parser
from mosaic.cli.run_program import (
    add_program_options,
    program_hint,
    program_part,
    refuse_program_options,
    split_program,
    variables_of,
    wanted_of,
)
from mosaic.cli.settings import parse_settings
from mosaic.cli.sweep import add_sweep_options, is_sweep, refuse_sweep_options, run_sweep
from mosaic.cli.verb import BadUsage, add_json, add_verb, count
from mosaic.model.errors import MosaicError
from mosaic.model.rundir import StateRoot

if TYPE_CHECKING:
    from mosaic.cli.verb import Verbs
    from mosaic.client import Run

RUN_EXAMPLES = """
mosaic run toy steps=500 rate=50
mosaic run cleanrl algo=ppo env=CartPole-v1 seed=1 total_timesteps=1e5 learning_rate=3e-4
mosaic run cleanrl@jax algo=dqn_jax env=CartPole-v1 --gpus 1 --gpus-mandatory --time-limit 12h --detach
mosaic run toy steps=200 --seeds 0-4                   an experiment: one run for each seed
mosaic run toy steps=200 --sweep agents=1,2 --seeds 0-4 --name agents --max-parallel 2 --detach
mosaic run cleanrl algo=ppo env=CartPole-v1 --on slurm:gpu --gpus 1 --time-limit 12h    a job of the cluster
mosaic run cleanrl algo=ppo env=CartPole-v1 --on slurm:spot --requeue-as-resume 5       continued if it is preempted
mosaic run dreamer env=crafter_reward --on slurm:gpu --gpus 1 --part env:2@slurm:cpu    its envs in jobs of their own
mosaic run toy --help                                  the settings of this worker
mosaic run python train.py --lr 3e-4                   your own script, in the environment of its project
mosaic run --gpus 1 --env-of cleanrl python train.py   the same in the environment of a worker
mosaic run --module my_package.train --lr 3e-4         a module of your own
mosaic run --script train.sh -- --seed 1               a script of any kind, written for MOSAIC
mosaic run --script babyai_quick_test --env-of cleanrl --set total_timesteps=20000       a script that a worker ships
"""

PROGRAMS = """Everything after `python FILE` and `--module PKG.MOD` belongs to your program;
options of `mosaic run` come before it. See docs/howto/scripts.md."""


def add_verbs(verbs: "Verbs") -> None:
    parser = add_verb(verbs, "run", run_worker, "start a run and follow it", RUN_EXAMPLES, PROGRAMS, has_help=False)
    if isinstance(parser, Parser):
        parser.split = split_program
    parser.add_argument("-h", "--help", action=WorkerHelp, help="show this help, or after WORKER its settings")
    parser.add_argument(
        "worker",
        metavar="WORKER[@VARIANT]|python",
        nargs="?",
        help="a worker that `mosaic worker list` shows; or `python`, followed by your script and its arguments",
    )
    parser.add_argument(
        "settings", metavar="key=value", nargs="*", help="settings of the worker; a dot in a key nests: extras.lr=3e-4"
    )
    parser.add_argument(
        "--script",
        default="",
        metavar="FILE",
        help="run this script, or one that the worker of --env-of ships; arguments after -- are passed to it",
    )
    parser.add_argument(
        "--env-of", default="", metavar="WORKER[@VARIANT]", help="run your own program in this worker's environment"
    )
    add_program_options(parser)
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="key=value",
        help="a setting for the config of a --script; repeat for more",
    )
    parser.add_argument(
        "--commands", action="store_true", help="the worker reads commands on its stdin; send them with mosaic command"
    )
    add_run_options(parser)
    add_sweep_options(parser)

    examples = "mosaic submit config.json\ngenerate-config | mosaic submit - --json"
    parser = add_verb(verbs, "submit", submit_config, "submit a trainer config and return", examples)
    parser.add_argument("config", metavar="CONFIG.json", help="the file with the config, or - for stdin")
    parser.set_defaults(names_config_fields=True)  # the user has the config at hand: errors name its fields
    _add_submit_options(parser)


def add_run_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of every verb that starts a run and follows it."""
    parser.add_argument("--name", default="", help="name the run")
    parser.add_argument("--tag", action="append", default=[], metavar="TAG", help="tag the run; repeat for more tags")
    parser.add_argument("--gpus", type=count, default=0, metavar="N", help="request N GPUs")
    parser.add_argument(
        "--gpus-mandatory", action="store_true", help="wait for the GPUs instead of running without them"
    )
    parser.add_argument(
        "--cpus", type=cpus, metavar="N", help="request N CPUs and wait for them; 0.5 is valid (default 1)"
    )
    parser.add_argument("--memory", type=memory, metavar="4G", help="request memory (default: the worker's estimate)")
    parser.add_argument(
        "--on",
        default="",
        metavar="PLACE",
        help="run it there: local, or a cluster: slurm, slurm:PARTITION, ray … (docs/howto/slurm.md, ray-cluster.md)",
    )
    parser.add_argument(
        "--requeue-as-resume",
        type=count,
        default=0,
        metavar="N",
        help="on a cluster: after a preemption, a lost node or a time limit of the cluster, continue it from its "
        "newest checkpoint, as a new run, at most N times",
    )
    parser.add_argument(
        "--part",
        action="append",
        default=[],
        metavar="NAME[:N][@PLACE]",
        help="do this part of the run in N runs of their own, which are replaced if they are lost; repeat for more "
        "(docs/howto/dreamer.md)",
    )
    parser.add_argument("--time-limit", type=parse_duration, metavar="2h", help="stop the run after this time")
    parser.add_argument(
        "--spin-limit",
        type=parse_duration,
        metavar="2h",
        help="stop a run that sends no output and no heartbeat for this time; 0: never",
    )
    parser.add_argument("--detach", action="store_true", help="return once the run is submitted")
    _add_submit_options(parser)


def _add_submit_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--idempotency-key", default="", metavar="KEY", help="submitting a config twice with one key starts one run"
    )
    add_json(parser)


def run_worker(args: argparse.Namespace) -> int:
    if is_sweep(args):
        return run_sweep(args, run_options(args))
    refuse_sweep_options(args)
    part = program_part if args.program else script_part if args.script else worker_part
    config = build_config(args, part(args))
    with connected(args) as client:
        run = client.submit_run(config, args.idempotency_key)
        if args.detach:
            print_submitted(run, args)
            return 0
        _warn_if_unchecked(run)
        return wait_quietly(client, run) if args.json else follow(client, run)


def submit_config(args: argparse.Namespace) -> int:
    text = sys.stdin.read() if args.config == "-" else _read(Path(args.config))
    with connected(args) as client:
        print_submitted(client.submit_run(text, args.idempotency_key), args)
    return 0


def worker_part(args: argparse.Namespace) -> dict[str, Any]:
    """`metadata.worker` of `mosaic run WORKER key=value …`."""
    if not args.worker:
        raise BadUsage("name a worker (list them with: mosaic worker list), python and a script, or a --script")
    if hint := program_hint(args):
        raise BadUsage(f"there is no worker '{args.worker}'. Did you mean: {hint}")
    refuse_program_options(args)
    if args.env_of:
        raise BadUsage("--env-of needs a program of your own; a worker runs in its own environment")
    if args.set:
        raise BadUsage("--set needs --script; write the settings of a worker without it: key=value")
    # The catalog of another machine cannot be read from here.
    root = None if host_of(args) else StateRoot.from_environment()
    section = worker_section(args.worker, parse_settings(args.settings), root)
    return {**section, "observe": False} if args.no_observe else section


def script_part(args: argparse.Namespace) -> dict[str, Any]:
    """`metadata.worker` of `mosaic run --script FILE`. All positional arguments are passed to the script."""
    from mosaic.catalog.scripts import script_section

    refuse_host(args, "run --script")
    # An empty first argument is one too.
    arguments = [*([] if args.worker is None else [args.worker]), *args.settings]
    root, wanted = StateRoot.from_environment(), wanted_of(args)
    section = script_section(args.script, args.env_of, parse_settings(args.set), arguments, root)
    if wanted.python or wanted.env:
        from mosaic.catalog.interpreters import choose_interpreter

        section["python"] = str(choose_interpreter(wanted, Path.cwd(), os.environ, root).python)
    given = {"cwd": args.cwd and os.path.abspath(os.path.expanduser(args.cwd)), "environment": variables_of(args)}
    section |= {name: value for name, value in given.items() if value}
    return {**section, "observe": False} if args.no_observe else section


def build_config(args: argparse.Namespace, worker: dict[str, Any]) -> dict[str, Any]:
    """The trainer config for the arguments of `mosaic run`."""
    return trainer_config(worker, run_options(args))


def run_options(args: argparse.Namespace) -> RunOptions:
    """What `add_run_options` has parsed."""
    limits = {"time_s": args.time_limit, "spin_s": args.spin_limit}
    return RunOptions(
        name=args.name,
        tags=args.tag,
        on=args.on,
        requeue_as_resume=args.requeue_as_resume,
        parts=args.part,
        gpus=args.gpus,
        gpus_mandatory=args.gpus_mandatory,
        cpus=args.cpus,
        memory_mb=args.memory,
        commands=getattr(args, "commands", False),  # a resumed run has its parent's
        limits={name: limit for name, limit in limits.items() if limit is not None},
    )


class WorkerHelp(argparse.Action):
    """Prints the help of `mosaic run`, or after a WORKER the settings in its schema."""

    def __init__(self, option_strings: Sequence[str], dest: str, help: str | None = None) -> None:
        super().__init__(option_strings, dest=argparse.SUPPRESS, default=argparse.SUPPRESS, nargs=0, help=help)

    def __call__(self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, *_: object) -> None:
        name = getattr(namespace, "worker", None)
        if name:
            from mosaic.cli.worker_settings import describe_settings

            try:
                print(describe_settings(name, parse_settings(getattr(namespace, "settings", None) or ())))
            except (MosaicError, BadUsage) as error:
                parser.exit(1, f"mosaic: {error}\n")
        else:
            parser.print_help()
        parser.exit()


def print_submitted(run: "Run", args: argparse.Namespace) -> None:
    _warn_if_unchecked(run)
    if args.json:
        print(json.dumps(run.to_dict(), indent=1))
    else:
        message = f"Run {run.run_id} ({run.name}) is {run.state}. Watch it with: mosaic watch {run.run_id}"
        print(seen_from_here(message, host_of(args)))


def _warn_if_unchecked(run: "Run") -> None:
    if run.settings_note:
        print(f"mosaic: the settings of {run.worker_name} are unchecked: {run.settings_note}", file=sys.stderr)


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not a text file"
        raise MosaicError(f"Cannot read {path}: {reason}.") from None
