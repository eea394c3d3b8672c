"""The entry point: parse, do, and turn errors into one sentence and an exit code."""

import argparse
import importlib
import os
import sys
import traceback
from collections.abc import Sequence

from mosaic import __version__
from mosaic.cli.connection import host_of, seen_from_here
from mosaic.cli.parser import Parser
from mosaic.cli.settings import as_typed
from mosaic.cli.verb import BadUsage, common_options
from mosaic.model.errors import MosaicError
from mosaic.model.owner import refuse_foreign
from mosaic.model.rundir import StateRoot

# Of mosaic.cli, in the order of the help, with their verbs. Only the one that is asked for is imported: a third of the
# time until a listing appears would go to the others.
MODULES = {
    "run": ("run", "submit"),
    "resume": ("resume",),
    "eval": ("eval",),
    "runs": ("runs", "show"),
    "watch": ("watch",),
    "frames": ("frames",),
    "logs": ("logs",),
    "export": ("export", "curve"),
    "tensorboard": ("tensorboard",),
    "cancel": ("cancel",),
    "remove": ("rm",),
    "disk_usage": ("du",),
    "garbage": ("gc",),
    "daemon": ("daemon",),
    "worker": ("worker",),
    "doctor": ("doctor",),
    "completion": ("completion",),
}
OVERVIEW = """\
MOSAIC runs any reinforcement-learning library, each in its own process and environment.

  mosaic run toy steps=500 rate=50     start a run and follow it
  mosaic runs                          what runs, what ran
  mosaic watch                         the same, live
  mosaic show RUN                      everything about one run
  mosaic frames RUN                    what its env shows
  mosaic logs RUN -f                   what it prints
  mosaic cancel RUN                    end it
  mosaic resume RUN                    continue it from its newest checkpoint
  mosaic eval RUN                      evaluate what it has learned
  mosaic export RUN > run.jsonl        its telemetry, as JSON lines
  mosaic worker list                   what can be run
  mosaic doctor                        when something is odd

RUN is an id or its first letters, a name, last or last~1. Every verb explains itself: mosaic run --help
All verbs: run submit resume eval runs show watch frames logs cancel export curve tensorboard du rm gc daemon worker
           doctor completion
"""


def main(argv: Sequence[str] | None = None) -> int:
    words = sys.argv[1:] if argv is None else argv
    if words[:1] == ["__complete"]:
        from mosaic.cli.completion_query import main as complete

        return complete(words[1:])
    try:
        args = build_parser(_modules_of(words)).parse(words)
    except BrokenPipeError:  # `mosaic run cleanrl --help | head`
        return _reader_left()
    try:
        _refuse_foreign_home(args)
        code: int = args.action(args)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        return _reader_left()
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        told = str(error) if getattr(args, "tells_paths", False) else as_typed(str(error))
        return _tell(error, told, getattr(args, "verbose", False), host_of(args))


def _modules_of(words: Sequence[str]) -> Sequence[str]:
    """The one module that has the verb; all of them when the first word that could be one is not."""
    rest = iter(words)
    for word in rest:
        if word == "--host":
            next(rest, "")
        elif not word.startswith("-"):
            return [name for name, verbs in MODULES.items() if word in verbs] or tuple(MODULES)
    return tuple(MODULES)


def build_parser(modules: Sequence[str] = tuple(MODULES)) -> Parser:
    parser = Parser(
        prog="mosaic",
        description="Run reinforcement-learning libraries, each in its own process and environment.",
        epilog="Each verb has its own --help, with examples.",
        parents=[common_options()],
    )
    parser.add_argument("--version", action="version", version=f"mosaic {__version__}")
    parser.set_defaults(action=_overview, parser=parser)
    verbs = parser.add_subparsers(metavar="VERB", title="verbs")
    for name in modules:
        importlib.import_module(f"mosaic.cli.{name}").add_verbs(verbs)
    return parser


def _overview(_: argparse.Namespace) -> int:
    print(OVERVIEW, end="")
    return 0


def _refuse_foreign_home(args: argparse.Namespace) -> None:
    """Before any verb: half of another user's state folder can be read at best, and that fails in a hundred ways."""
    if not host_of(args) and not os.environ.get("MOSAIC_ADDRESS") and args.action is not _overview:
        refuse_foreign(StateRoot.from_environment().path)


def _tell(error: Exception, words: str, verbose: bool, host: str) -> int:
    if verbose:
        traceback.print_exception(error)
    elif isinstance(error, MosaicError):
        print(f"mosaic: {seen_from_here(words, host)}", file=sys.stderr)
    else:
        print(f"mosaic: {type(error).__name__}: {error} (run it again with -v for the traceback)", file=sys.stderr)
    return 2 if isinstance(error, BadUsage) else 1


def _reader_left() -> int:
    # `mosaic export RUN | head` has what it wanted; the interpreter's last flush must not complain either.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


if __name__ == "__main__":
    sys.exit(main())
