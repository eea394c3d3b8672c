"""A verb of the command line: its parser, its examples, and the function that does it.

Verb files import the client and rich inside their functions: `mosaic runs` and `--help` must not wait for either.
"""

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING

from mosaic.model.errors import MosaicError

RUN_HELP = "a run: its id or the first letters of it, its name, last, or last~1 for the one before"

Action = Callable[[argparse.Namespace], int]

if TYPE_CHECKING:
    Verbs = argparse._SubParsersAction[argparse.ArgumentParser]


class BadUsage(MosaicError):
    """Words on the command line that mean nothing: exit code 2, as argparse has it."""


def add_verb(
    verbs: "Verbs", name: str, action: Action, summary: str, examples: str, has_help: bool = True
) -> argparse.ArgumentParser:
    """`has_help`: with argparse's own -h and --help; without it the verb adds them itself."""
    parser = verbs.add_parser(
        name,
        help=summary,
        description=summary[0].upper() + summary[1:] + ".",
        epilog=f"examples:\n{indent(examples)}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        parents=[common_options()],
        add_help=has_help,
    )
    parser.set_defaults(action=action, parser=parser)
    return parser


def common_options() -> argparse.ArgumentParser:
    """Options that may stand before or after the verb."""
    options = argparse.ArgumentParser(add_help=False)
    options.add_argument(
        "-v", "--verbose", action="store_true", default=argparse.SUPPRESS, help="show tracebacks of errors"
    )
    options.add_argument(
        "--host",
        metavar="USER@BOX",
        default=argparse.SUPPRESS,
        help="talk to the daemon of another machine through ssh (USER@BOX:/path names its MOSAIC_HOME)",
    )
    return options


def add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON, for programs")


def count(text: str) -> int:
    """A number that is not negative, for options."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"'{text}' is not a number from 0 on")
    return int(text)


def indent(text: str) -> str:
    return "\n".join(f"  {line.strip()}" for line in text.strip().splitlines())
