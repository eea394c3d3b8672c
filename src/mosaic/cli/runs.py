"""`mosaic runs` and `mosaic show`."""

import argparse
import json
import sys
import time
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from mosaic.cli.asked_runs import CSV_COLUMNS, columns_csv, columns_json, columns_table, parse_columns, tell_left_out
from mosaic.cli.connection import connected, tell_rebuild
from mosaic.cli.table import clip, render_table
from mosaic.cli.terminal_text import STATE_STYLE, paint
from mosaic.cli.verb import BadUsage, add_verb, count
from mosaic.model.errors import BadQuery
from mosaic.model.run_fields import SETTING, field_of
from mosaic.model.states import LIVE_STATES, RunState
from mosaic.present.durations import format_duration
from mosaic.present.runs import note, return_cell
from mosaic.present.scores import is_rate_known
from mosaic.present.text import number, printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mosaic.cli.verb import Verbs
    from mosaic.client import Run
    from mosaic.client.run import RunList

PART = "part"  # the relation of a part to its run
SHORT_ID = 13  # the ten characters of the timestamp and three random ones
NEWEST = 20
SAME_AS_SETTINGS = ("algo", "env", "seed", "id", "worker")  # fields that have the value of the setting of this name
RUNS_EXAMPLES = """
mosaic runs
mosaic runs --state live
mosaic runs --where 'worker=toy and steps>50' --sort -return
mosaic runs --where 'return>400 and age<2d or tag=paper' --columns seed,return --csv
mosaic runs --all --json
"""
WHERE_HELP = """\
A condition compares fields with = != < <= > >= and ~ (contains), and joins comparisons with and, or, not and
parentheses. `FIELD is missing` is one, too; several values with commas between them mean any of them. Fields are those
of every run (state, name, worker, algo, env, seed, tag, note, experiment, return, steps, episodes, progress, age …),
settings (learning_rate or extras.algo_params.learning_rate) and metrics (charts/SPS)."""


def add_verbs(verbs: "Verbs") -> None:
    parser = add_verb(
        verbs,
        "runs",
        list_runs,
        "list runs, newest first",
        RUNS_EXAMPLES,
        WHERE_HELP,
    )
    parser.add_argument("--all", action="store_true", help=f"list all runs, not only the newest {NEWEST}")
    parser.add_argument("--parts", action="store_true", help="list parts of runs (mosaic run --part), too")
    parser.add_argument("--limit", type=count, default=NEWEST, metavar="N", help="list the newest N runs")
    parser.add_argument(
        "--state",
        type=parse_states,
        default=(),
        help="list runs in these states, e.g. FAULTED or EXECUTING,READY; live and over are groups of states",
    )
    parser.add_argument("--where", metavar="CONDITION", default="", help="list runs that meet this condition")
    parser.add_argument("--experiment", metavar="EXPERIMENT", default="", help="list the runs of this experiment")
    parser.add_argument("--sort", metavar="[-]FIELD", default="", help="order by this field; - reverses the order")
    parser.add_argument(
        "--columns",
        metavar="FIELD,FIELD",
        type=parse_columns,
        default=(),
        help="show these fields, settings and metrics instead of the usual columns",
    )
    parser.split = join_sort  # type: ignore[attr-defined]
    output = parser.add_mutually_exclusive_group()
    output.add_argument("--json", action="store_true", help="print JSON")
    output.add_argument("--csv", action="store_true", help="print comma-separated values")


def join_sort(_: argparse.ArgumentParser, words: "Sequence[str]") -> tuple[list[str], list[str]]:
    """`--sort -return` as `--sort=-return`: argparse would take the value for an option."""
    joined: list[str] = []
    for word in words:
        is_value = joined[-1:] == ["--sort"] and word.startswith("-") and not word.startswith("--")
        joined[-1 if is_value else len(joined) :] = [f"--sort={word}" if is_value else word]
    return joined, []


def parse_states(text: str) -> tuple[RunState, ...]:
    groups = {"LIVE": LIVE_STATES, "OVER": tuple(state for state in RunState if state.is_over)}
    states: list[RunState] = []
    for name in text.upper().split(","):
        if name not in groups and name not in RunState.__members__:
            raise argparse.ArgumentTypeError(
                f"'{name}' is not a state. Choose from {', '.join(RunState.__members__)}, live and over"
            )
        states += groups.get(name) or (RunState(name),)
    return tuple(states)


def list_runs(args: argparse.Namespace) -> int:
    columns = args.columns or (CSV_COLUMNS if args.csv else ())
    found = ask_runs(args, columns)
    if args.json or args.csv:
        print(_data(args, found.runs, columns), end="" if args.csv else "\n")
        if args.csv or columns or args.where:
            tell_left_out(found.total, len(found.runs))
        if not found.runs:
            tell_hidden_settings(args)
        return 0
    if not found.runs:
        print(_nothing(args))
        tell_hidden_settings(args)
    elif columns:
        print(columns_table(found.runs, columns, [short_id(run.run_id) for run in found.runs]))
    else:
        print(runs_table(found.runs))
    if found.total > len(found.runs):
        print(paint(f"… and {found.total - len(found.runs)} more: mosaic runs --all", "dim"))
    tell_rebuild(args)
    return 0


def ask_runs(args: argparse.Namespace, columns: "Sequence[str]") -> "RunList":
    """The runs that the options select. What the daemon finds wrong with a condition is invalid usage, too."""
    try:
        if args.where:
            from mosaic.model.where import parse_where

            parse_where(args.where)  # the place in an error is the one in the user's own text
        with connected(args) as client:
            ask = partial(
                client.list_runs,
                args.state,
                experiment=args.experiment,
                where=args.where,
                sort=args.sort,
                columns=columns,
            )
            found = ask(limit=0 if args.all else args.limit)
            are_shown = args.parts or args.json or args.csv or args.where
            if are_shown or not any(run.relation == PART for run in found.runs):
                return found
            return without_parts(ask(limit=0), 0 if args.all else args.limit)
    except BadQuery as error:
        raise BadUsage(str(error)) from None


def without_parts(found: "RunList", limit: int) -> "RunList":
    """The runs that are not parts of others, at most `limit`; `mosaic show` lists the parts of a run."""
    runs = tuple(run for run in found.runs if run.relation != PART)
    return replace(found, runs=runs[: limit or None], total=len(runs))


def _data(args: argparse.Namespace, runs: "Sequence[Run]", columns: "Sequence[str]") -> str:
    if args.csv:
        return columns_csv(runs, columns)
    return columns_json(runs, columns) if columns else json.dumps([run.to_dict() for run in runs], indent=1)


def tell_hidden_settings(args: argparse.Namespace) -> None:
    """Why nothing matched, perhaps: the user meant a setting whose name a field has, such as the toy worker's rate."""
    if not args.where:
        return
    from mosaic.model.where import names_in, parse_where

    fields = dict.fromkeys(filter(field_of, names_in(parse_where(args.where))))
    names = [name for name in fields if field_of(name) not in SAME_AS_SETTINGS]
    if not names:
        return
    with connected(args) as client:
        for name in names:
            if client.list_runs(limit=1, where=f'"{SETTING}{name}" is not missing').total:
                print(f"mosaic: {name} is a field here; the setting is {SETTING}{name}", file=sys.stderr)


def _nothing(args: argparse.Namespace) -> str:
    if args.where or args.experiment or args.state:
        return "No run matches."
    return "No runs. Start one with: mosaic run toy steps=500 rate=50"


def runs_table(runs: "tuple[Run, ...]") -> str:
    headings = ("RUN", "NAME", "WORKER", "STATE", "DONE", "STEPS/S", "RETURN (EPISODES)", "TIME", "AGO", "NOTE")
    return render_table(headings, [_row(run) for run in runs], right=frozenset({4, 5, 6, 7, 8}))


def _row(run: "Run") -> tuple[str, ...]:
    return (
        short_id(run.run_id),
        clip(printable(run.name), 24),
        clip(run.worker_name, 16),
        paint(str(run.state), STATE_STYLE[run.state]),
        "-" if run.progress is None else f"{run.progress:.0%}",
        number(run.summary.steps_per_s) if is_rate_known(run) else "-",
        return_cell(run),
        format_duration(run.duration_s),
        format_duration(time.time() - run.created_at),
        clip(note(run), 40),
    )


def short_id(run_id: str) -> str:
    """The first characters of an id on a terminal, the whole id in a pipe."""
    return run_id[:SHORT_ID] if sys.stdout.isatty() else run_id
