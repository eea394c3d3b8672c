"""`mosaic command`: send a command to a run's worker."""

import argparse
import json
from typing import TYPE_CHECKING, Any

from mosaic.catalog.typed_settings import parse_value
from mosaic.cli.connection import connected
from mosaic.cli.verb import RUN_HELP, BadUsage, add_json, add_verb
from mosaic.model.errors import MosaicError
from mosaic.present.text import printable

if TYPE_CHECKING:
    from mosaic.cli.verb import Verbs
    from mosaic.client import TrainerClient

EXAMPLES = """
mosaic command last pause
mosaic command last step lanes=[0] count=5 --wait
mosaic command 01JCQ reset seed=7 --json
mosaic command 01JCQ finish --id end-of-my-script       sent once, however often this line is executed
"""
DETAILS = """Which commands there are is up to the worker, which reads them from its stdin. Only a run that was started
with metadata.worker.commands takes any (`mosaic run --commands`)."""
DONE = "command_done"


def add_verbs(verbs: "Verbs") -> None:
    parser = add_verb(verbs, "command", send_command, "send a command to a run's worker", EXAMPLES, DETAILS)
    parser.add_argument("run", metavar="RUN", help=RUN_HELP)
    parser.add_argument("cmd", metavar="CMD", help="the name of the command, such as step or pause")
    parser.add_argument("values", metavar="key=value", nargs="*", help="its arguments; values are JSON, or text")
    parser.add_argument("--id", default="", help="two commands with the same id are one (default: a new id)")
    parser.add_argument("--wait", action="store_true", help="return when the worker has reported that it is done")
    add_json(parser)


def send_command(args: argparse.Namespace) -> int:
    command = _command(args.cmd, args.values)
    with connected(args) as client:
        run = client.get_run(args.run)
        # With an id the command may have been sent, and reported as done, long ago.
        since = 0 if args.id else run.summary.events
        seq = client.command_run(run.run_id, command, args.id or None)
        done = _wait_for(client, run.run_id, seq, since) if args.wait else {}
    if args.json:
        print(json.dumps({"run_id": run.run_id, "seq": seq, **({"done": done} if done else {})}))
    else:
        print(printable(f"Command {seq} ({args.cmd}) {_outcome(done)}"))
    return 0 if done.get("ok", True) else 1


def _command(name: str, arguments: list[str]) -> dict[str, Any]:
    command: dict[str, Any] = {"cmd": name}
    for key, value in map(_split, arguments):
        if key in command:
            raise BadUsage(f"{key}: given twice")
        command[key] = value
    return command


def _split(argument: str) -> tuple[str, Any]:
    key, equals, text = argument.partition("=")
    if not equals or not key:
        raise BadUsage(f"'{argument}' is not of the form key=value, such as count=5 or lanes=[0,1]")
    return key, parse_value(text)


def _wait_for(client: "TrainerClient", run_id: str, seq: int, since: int) -> dict[str, Any]:
    """What the worker reported about the command."""
    from mosaic.client.events import Lifecycle

    for event in client.stream_events(run_id, since):
        if isinstance(event, Lifecycle) and event.event == DONE and event.payload.get("seq") == seq:
            return event.payload
    raise MosaicError(f"Run {run_id} ended and did not report command {seq} as done.")


def _outcome(done: dict[str, Any]) -> str:
    if not done:
        return "was sent."
    message = str(done.get("message") or "")
    return ": ".join(filter(None, ("is done" if done.get("ok") else "failed", message.rstrip(".")))) + "."
