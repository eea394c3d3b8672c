"""A verb of the command line: its parser, its examples, and the function that does it.

Modules of verbs import the client and rich inside functions, so that `--help` does not wait for either.
"""

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING

from mosaic.model.errors import MosaicError
from mosaic.model.host import why_bad_host

RUN_HELP = "a run's id or the first characters of it, its name, last, or last~1 for the run before the last"

Action = Callable[[argparse.Namespace], int]

if TYPE_CHECKING:
    Verbs = argparse._SubParsersAction[argparse.ArgumentParser]


class BadUsage(MosaicError):
    """Invalid arguments: exit code 2, like argparse's own."""


def add_verb(
    verbs: "Verbs",
    name: str,
    action: Action,
    summary: str,
    examples: str,
    details: str = "",
    has_help: bool = True,
) -> argparse.ArgumentParser:
    """`details` is a second paragraph of the verb's help. Without `has_help` the verb adds --help itself."""
    parser = verbs.add_parser(
        name,
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}.\n\n{details}".rstrip(),
        epilog=f"examples:\n{indent(examples)}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        parents=[common_options()],
        add_help=has_help,
    )
    parser.set_defaults(action=action, parser=parser)
    return parser


def common_options() -> argparse.ArgumentParser:
    """Options that may be given before or after the verb."""
    options = argparse.ArgumentParser(add_help=False)
    options.add_argument(
        "-v", "--verbose", action="store_true", default=argparse.SUPPRESS, help="show the traceback of an error"
    )
    options.add_argument(
        "--host",
        metavar="USER@BOX",
        type=_host,
        default=argparse.SUPPRESS,
        help="use the daemon of another machine through ssh (USER@BOX:/path also sets its MOSAIC_HOME)",
    )
    return options


def _host(text: str) -> str:
    if why := why_bad_host(text):
        raise argparse.ArgumentTypeError(f"{text!r} {why}")
    return text


def add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")


def count(text: str) -> int:
    """An option's value that is a non-negative integer."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"'{text}' is not a non-negative integer")
    return int(text)


def indent(text: str) -> str:
    return "\n".join(f"  {line.strip()}" for line in text.strip().splitlines())
