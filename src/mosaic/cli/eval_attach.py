"""`mosaic eval attach`, and what every form of `mosaic eval` does with an evaluation that has been submitted."""

import argparse
import json
import os
import sys
from typing import TYPE_CHECKING, Any

from mosaic.cli.connection import connected, host_of
from mosaic.cli.follow import exit_code, how_it_ended, interrupted, summary, updates
from mosaic.cli.terminal_text import is_screen
from mosaic.cli.verb import RUN_HELP, BadUsage, add_json, add_verb
from mosaic.model import durable
from mosaic.model.errors import MosaicError
from mosaic.model.nearest import did_you_mean
from mosaic.model.states import RunState
from mosaic.present.text import printable

if TYPE_CHECKING:
    from mosaic.cli.verb import Verbs
    from mosaic.client import Run, TrainerClient

EXAMPLES = """
mosaic eval attach last                 show the newest run's lanes; step them, or play
mosaic eval attach 01JCQ --as me        only what the operator or agent `me` is asked
echo step 5 | mosaic eval attach last   one command per line
"""


def add_verbs(verbs: "Verbs") -> None:
    summary = "show an evaluation that is running: step it by hand, or play in it"
    details = "Any number of terminals may show one evaluation."
    parser = add_verb(verbs, "attach", attach_to, summary, EXAMPLES, details)
    parser.add_argument("run", metavar="RUN", help=RUN_HELP)
    parser.add_argument(
        "--as",
        dest="acts_as",
        default="",
        metavar="NAME",
        help="act only for this operator or agent (default: for all)",
    )
    add_json(parser)


def attach_to(args: argparse.Namespace) -> int:
    with connected(args) as client:
        return show(client, client.get_run(args.run), args)


def show(client: "TrainerClient", run: "Run", args: argparse.Namespace) -> int:
    """Show the evaluation as it needs to be shown, until it is over or the user leaves it."""
    try:
        run, is_left = _watch(client, run, args)
    except KeyboardInterrupt:
        return interrupted(client, run)
    if is_left:
        left = f"Run {run.run_id} continues. Attach to it again with: mosaic eval attach {run.run_id}"
        print(left, file=sys.stderr)
        return 0
    run = client.get_run(run.run_id)
    print(_as_json(run) if args.json else ending(client, run, bool(host_of(args))), flush=True)
    return exit_code(run)


def _watch(client: "TrainerClient", run: "Run", args: argparse.Namespace) -> "tuple[Run, bool]":
    """The run, and whether the user left it running."""
    plan = _plan(client.get_run(run.run_id))
    if run.state.is_over:
        return run, False
    is_manual = plan.get("mode") == "manual"
    if not is_manual and not _people(plan):
        return (_wait(client, run) if args.json else _follow(client, run)), False
    name = _known(getattr(args, "acts_as", ""), plan)
    if is_screen(sys.stdout) and sys.stdin.isatty() and not args.json:
        from mosaic.cli.eval_view import open_screen

        return open_screen(client, run, is_manual, name)
    from mosaic.cli.eval_lines import drive_by_lines

    return drive_by_lines(client, run, is_manual, name, args.json)


def has_lanes(run: "Run") -> bool:
    """Whether the run is the evaluation of a script. Needs the run's config."""
    return isinstance(_settings(run).get("script"), dict)


def _plan(run: "Run") -> dict[str, Any]:
    """The settings of the evaluation: its script and its mode."""
    if not has_lanes(run):
        raise MosaicError(
            f"Run {run.run_id} has no lanes: it is not an evaluation of a script. See: mosaic eval --help"
        )
    return _settings(run)


def _settings(run: "Run") -> dict[str, Any]:
    worker = ((run.config or {}).get("metadata") or {}).get("worker") or {}
    settings = worker.get("config")
    return settings if isinstance(settings, dict) else {}


def _people(plan: dict[str, Any]) -> list[str]:
    operators = plan["script"].get("operators") or {}
    return [name for name, operator in operators.items() if operator.get("kind") == "human"]


def _known(name: str, plan: dict[str, Any]) -> str:
    """Check --as. The ids of agents are known only to the environment, so any word may be one if there are lanes."""
    people, operators = _people(plan), plan["script"].get("operators") or {}
    may_be_agent = bool(plan["script"].get("lanes")) and name not in operators
    if not name or name in people or may_be_agent:
        return name
    hint = did_you_mean(name, people, 1) or f"People in this evaluation: {', '.join(people) or 'none'}."
    raise BadUsage(f"--as {name}: there is no person '{name}'. {hint}")


def _follow(client: "TrainerClient", run: "Run") -> "Run":
    from mosaic.cli.eval_follow import follow_lanes

    return follow_lanes(client, run)


def _wait(client: "TrainerClient", run: "Run") -> "Run":
    for latest in updates(client, run.run_id):
        run = latest
    return run


# ---- the end


def ending(client: "TrainerClient", run: "Run", is_remote: bool) -> str:
    """What is printed when an evaluation is over: how it ended, the table of results, and where they are."""
    if not run.summary.episodes:
        return summary(run)
    from mosaic.cli.eval_results import results_of
    from mosaic.cli.eval_table import render

    table = render(results_of(client, run, is_remote))
    return "\n".join([how_it_ended(run), "", table, "", *(_files(run) or [run.run_dir]), *_next_step(run)])


def _next_step(run: "Run") -> list[str]:
    has_journal = os.path.exists(os.path.join(run.run_dir, "checkpoints", "journal.jsonl"))
    may_continue = has_journal and run.state is not RunState.TERMINATED
    return [f"Next: mosaic resume {run.run_id}, which continues with the unfinished episode"] if may_continue else []


def read_summary(run: "Run") -> dict[str, Any]:
    """eval_summary.json of a run; empty if it has none on this machine."""
    try:
        return durable.read_json(os.path.join(run.run_dir, "eval_summary.json")) or {}
    except OSError:
        return {}


def _files(run: "Run") -> list[str]:
    names = ("eval_summary.json", "report.html", "demonstrations")
    paths = (os.path.join(run.run_dir, name) for name in names)
    return [printable(path) for path in paths if os.path.exists(path)]


def _as_json(run: "Run") -> str:
    # One line: in manual mode it is the last of many objects.
    return json.dumps({"type": "end", **run.to_dict(), "evaluation": read_summary(run)})
