"""The entry point: parse the arguments, run the verb, turn errors into one sentence and an exit code."""

import argparse
import errno
import importlib
import os
import sys
import traceback
from collections.abc import Sequence

from mosaic import __version__
from mosaic.cli.connection import host_of, seen_from_here
from mosaic.cli.parser import Parser
from mosaic.cli.safe_output import safe_output
from mosaic.cli.settings import as_typed
from mosaic.cli.verb import BadUsage, common_options
from mosaic.model.errors import MosaicError
from mosaic.model.owner import refuse_foreign
from mosaic.model.place import refuse_shifted
from mosaic.model.rundir import StateRoot

# Modules of mosaic.cli and their verbs, in the order of the help. Only the module of the requested verb is imported:
# importing all of them would take a third of the time until a listing appears.
MODULES = {
    "run": ("run", "submit"),
    "resume": ("resume",),
    "eval": ("eval",),
    "search": ("search",),
    "runs": ("runs",),
    "show": ("show",),
    "experiment": ("experiment",),
    "diff": ("diff",),
    "edit": ("rename", "note", "tag"),
    "compare": ("compare",),
    "watch": ("watch",),
    "gui": ("gui",),
    "frames": ("frames",),
    "logs": ("logs",),
    "export": ("export", "curve"),
    "model": ("model",),
    "tensorboard": ("tensorboard",),
    "imports": ("import",),
    "command": ("command",),
    "cancel": ("cancel",),
    "remove": ("rm",),
    "disk_usage": ("du",),
    "garbage": ("gc",),
    "machines": ("machines",),
    "daemon": ("daemon",),
    "root": ("root",),
    "worker": ("worker",),
    "env": ("env",),
    "registry": ("registry",),
    "doctor": ("doctor",),
    "completion": ("completion",),
}
OVERVIEW = """\
MOSAIC runs any reinforcement-learning library, each in its own process and environment.

  mosaic run toy steps=500 rate=50     start a run and follow it
  mosaic run python train.py --lr 1e-3 start a script of your own, unmodified
  mosaic run toy --seeds 0-4           one run for each seed: an experiment
  mosaic experiment show NAME          its groups, returns and failures
  mosaic runs                          list the runs
  mosaic watch                         watch them live
  mosaic gui                           the same and more in a window
  mosaic show RUN                      show everything about one run
  mosaic frames RUN                    watch its environment
  mosaic logs RUN -f                   follow its output
  mosaic cancel RUN                    cancel it
  mosaic resume RUN                    continue it from its newest checkpoint
  mosaic eval RUN                      evaluate the policy it has learned
  mosaic compare EXPERIMENT            compare its groups of runs over their seeds
  mosaic export RUN > run.jsonl        print its telemetry as JSON lines
  mosaic worker list                   list the workers you can run
  mosaic doctor                        find problems

RUN is a run's id or the first characters of it, a name, last or last~1.
All commands: mosaic --help. One command, with examples: mosaic run --help
"""


def main(argv: Sequence[str] | None = None) -> int:
    with safe_output():
        return _main(argv)


def _main(argv: Sequence[str] | None) -> int:
    arguments = sys.argv[1:] if argv is None else argv
    if arguments[:1] == ["__complete"]:
        from mosaic.cli.completion_query import main as complete

        return complete(arguments[1:])
    try:
        args = build_parser(_modules_of(arguments)).parse(arguments)
    except BrokenPipeError:  # `mosaic run cleanrl --help | head`
        return _end_quietly()
    try:
        _refuse_unusable_home(args)
        code: int = args.action(args)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        return _end_quietly()
    except KeyboardInterrupt:
        return 130
    except Exception as error:  # noqa: BLE001  # the edge of the process: every error becomes one sentence and an exit code
        message = str(error) if getattr(args, "names_config_fields", False) else as_typed(str(error))
        return _print_error(error, message, getattr(args, "verbose", False), host_of(args))


def _modules_of(arguments: Sequence[str]) -> Sequence[str]:
    """The module that has the verb; all modules if the arguments name no verb, for the help and for suggestions."""
    rest = iter(arguments)
    for argument in rest:
        if argument == "--host":
            next(rest, "")
        elif not argument.startswith("-"):
            return [name for name, verbs in MODULES.items() if argument in verbs] or tuple(MODULES)
    return tuple(MODULES)


def build_parser(modules: Sequence[str] = tuple(MODULES)) -> Parser:
    parser = Parser(
        prog="mosaic",
        description="Run reinforcement-learning libraries, each in its own process and environment.",
        epilog="Run 'mosaic COMMAND --help' for the options of a command and for examples.",
        parents=[common_options()],
    )
    parser.add_argument("--version", action="version", version=f"mosaic {__version__}")
    parser.set_defaults(action=_overview, parser=parser)
    verbs = parser.add_subparsers(metavar="COMMAND", title="commands")
    for name in modules:
        importlib.import_module(f"mosaic.cli.{name}").add_verbs(verbs)
    return parser


def _overview(_: argparse.Namespace) -> int:
    print(OVERVIEW, end="")
    return 0


def _refuse_unusable_home(args: argparse.Namespace) -> None:
    """Refuse another user's or a copied state folder before any verb starts: it would fail halfway, or do harm."""
    if host_of(args) or os.environ.get("MOSAIC_ADDRESS") or args.action is _overview:
        return
    root = StateRoot.from_environment()
    refuse_foreign(root.path)
    if args.action.__module__ != "mosaic.cli.root":
        refuse_shifted(root)


def _print_error(error: Exception, message: str, verbose: bool, host: str) -> int:
    if verbose:
        traceback.print_exception(error)
    elif isinstance(error, MosaicError):
        print(f"mosaic: {seen_from_here(message, host)}", file=sys.stderr)
    elif isinstance(error, OSError) and error.errno == errno.ENOSPC:
        print("mosaic: No space is left on the disk, so what was written is not complete.", file=sys.stderr)
    else:
        print(f"mosaic: {type(error).__name__}: {error} (add -v for the traceback)", file=sys.stderr)
    return 2 if isinstance(error, BadUsage) else 1


def _end_quietly() -> int:
    # The reader of a pipe is gone, as in `mosaic export RUN | head`. The interpreter's last flush must not fail either.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


if __name__ == "__main__":
    sys.exit(main())
