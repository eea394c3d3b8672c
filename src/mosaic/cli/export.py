"""`mosaic export` and `mosaic curve`: a run's telemetry for other programs."""

import argparse
import csv
import io
import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, TextIO

from mosaic.cli.connection import connected
from mosaic.cli.safe_output import raw
from mosaic.cli.table import render_table
from mosaic.cli.verb import RUN_HELP, BadUsage, add_json, add_verb, count
from mosaic.model.errors import MosaicError
from mosaic.model.nearest import did_you_mean
from mosaic.model.visible import visible_line
from mosaic.present.text import number

if TYPE_CHECKING:
    from mosaic.cli.verb import Verbs
    from mosaic.client import Run, TrainerClient
    from mosaic.client.events import Event

FORMATS = ("jsonl", "csv", "parquet")
PROGRAMS = ("tensorboard", "wandb")
TYPES = ("step", "episode", "metric", "lifecycle")

# The CSV columns of each type; all other fields are JSON in the last column.
COLUMNS = {
    "step": ("step_index", "reward", "env_index", "agent_id", "episode_index", "terminated", "truncated"),
    "episode": (
        *("episode_index", "total_reward", "steps", "env_index", "agent_id", "terminated", "truncated"),
        "global_step",
    ),
    "metric": ("step", "name", "value"),
    "lifecycle": ("event", "payload"),
}

MOST_NAMES = 50  # of metrics in an error


def add_verbs(verbs: "Verbs") -> None:
    _add_export(verbs)
    parser = add_verb(
        verbs,
        "curve",
        show_curve,
        "print the curve of a metric, or list the metrics of a run",
        "mosaic curve 01JCQ\nmosaic curve 01JCQ episode/return --points 50\nmosaic curve 01JCQ toy/loss --joined",
    )
    parser.add_argument("run", metavar="RUN", help=RUN_HELP)
    parser.add_argument(
        "name", metavar="NAME", nargs="?", default="", help="the metric; without it, the metrics are listed"
    )
    parser.add_argument("--points", type=count, default=20, metavar="N", help="print at most N points (default 20)")
    parser.add_argument("--joined", action="store_true", help="include the runs that this run was resumed from")
    add_json(parser)


def _add_export(verbs: "Verbs") -> None:
    parser = add_verb(
        verbs,
        "export",
        export_run,
        "export the telemetry of runs: JSON lines, CSV, Parquet, TensorBoard, Weights & Biases",
        """
        mosaic export 01JCQ > run.jsonl
        mosaic export 01JCQ --type metric --format csv -o metrics.csv
        mosaic export 01JCQ 01JCR --format parquet -o runs.parquet
        mosaic export --experiment ppo-lr --type metric --format parquet -o ppo-lr.parquet
        mosaic export 01JCQ --to tensorboard boards
        mosaic export 01JCQ --to wandb wandb-runs
        """,
        "NaN and infinite numbers are printed as NaN and Infinity,\nwhich strict JSON parsers do not accept.",
    )
    parser.add_argument("runs", metavar="RUN", nargs="*", help=RUN_HELP)
    parser.add_argument("--experiment", metavar="NAME", help="all runs of this experiment")
    parser.add_argument("--format", choices=FORMATS, help="the format (default jsonl); parquet needs -o FILE")
    parser.add_argument(
        "--to", nargs=2, metavar=("PROGRAM", "FOLDER"), help="write a folder for tensorboard or wandb (wandb sync)"
    )
    parser.add_argument("--type", choices=TYPES, help="only events of this type")
    parser.add_argument("--since", type=count, default=0, metavar="SEQ", help="only events after this sequence number")
    parser.add_argument("-f", "--follow", action="store_true", help="continue until the run is over")
    parser.add_argument("-o", "--output", metavar="FILE", help="write to this file instead of stdout")
    parser.add_argument("--force", action="store_true", help="replace a Parquet file or a folder that exists")
    parser.add_argument("--json", action="store_true", help="print what was written as JSON (--to and parquet)")


def export_run(args: argparse.Namespace) -> int:
    check_options(args)
    with connected(args) as client:
        runs = chosen_runs(client, args)
        if args.to or args.format == "parquet":
            from mosaic.cli.export_files import export_files

            return export_files(client, runs, args)
        if len(runs) > 1 and (args.follow or args.since):
            raise BadUsage("--follow and --since need exactly one run")
        with _output(args.output, args.follow) as file:
            write = write_csv if args.format == "csv" else write_jsonl
            if args.follow and isinstance(file, io.TextIOWrapper):
                file.reconfigure(line_buffering=True)  # a reader that follows needs each line when it comes
            write(_labelled_events(client, runs, args), file, args.type)
    return 0


def check_options(args: argparse.Namespace) -> None:
    """BadUsage for options that do not go together."""
    if not args.runs and not args.experiment:
        raise BadUsage("name the runs to export, or an experiment with --experiment NAME")
    if args.runs and args.experiment:
        raise BadUsage("name runs or give --experiment, not both")
    writes_files = bool(args.to) or args.format == "parquet"
    if args.to:
        if args.to[0] not in PROGRAMS:
            raise BadUsage(
                f"--to {args.to[0]}: choose from {', '.join(PROGRAMS)}. {did_you_mean(args.to[0], PROGRAMS)}"
            )
        for name in ("format", "type", "output"):
            if getattr(args, name):
                raise BadUsage(f"--{name} cannot be used with --to")
    if args.format == "parquet" and not args.output:
        raise BadUsage("--format parquet needs -o FILE")
    if writes_files and (args.follow or args.since):
        raise BadUsage("--follow and --since cannot be used with --to or Parquet")
    for name in ("force", "json"):
        if getattr(args, name) and not writes_files:
            raise BadUsage(f"--{name} is for --to and Parquet only")


def chosen_runs(client: "TrainerClient", args: argparse.Namespace) -> "list[Run]":
    """The runs with their settings, each once; those of an experiment oldest first."""
    if not args.experiment:
        named = [client.get_run(reference) for reference in args.runs]
        return list({run.run_id: run for run in named}.values())
    known = client.list_runs().runs
    members = [run.run_id for run in reversed(known) if run.experiment == args.experiment]
    if not members:
        names = sorted({run.experiment for run in known if run.experiment})
        raise MosaicError(
            f"No run belongs to an experiment '{visible_line(args.experiment)}'. "
            f"{did_you_mean(args.experiment, names) or 'List the runs with: mosaic runs --all'}"
        )
    return [client.get_run(run_id) for run_id in members]


def _labelled_events(
    client: "TrainerClient", runs: "list[Run]", args: argparse.Namespace
) -> "Iterator[tuple[str, Event]]":
    """Each event with the id of its run; one run alone needs none."""
    for run in runs:
        label = run.run_id if len(runs) > 1 else ""
        for event in _events(client, run, args):
            yield label, event


def _events(client: "TrainerClient", run: "Run", args: argparse.Namespace) -> "Iterator[Event]":
    # The export of a live run ends with what is stored now; without `until` the stream would wait for more.
    until = None if args.follow or run.state.is_over else run.summary.events
    streams = {"step": client.stream_steps, "episode": client.stream_episodes}
    stream = streams.get(args.type, client.stream_events)
    if until is not None and until <= args.since:
        return
    for event in stream(run.run_id, since_seq=args.since, until_seq=until):
        if args.type in (None, event.type):
            yield event


def write_jsonl(events: "Iterable[tuple[str, Event]]", file: TextIO, _: str | None = None) -> None:
    """One line per event; with several runs every line names its run."""
    encode = json.JSONEncoder(separators=(",", ":")).encode
    for label, event in events:
        file.write(encode({**_run_id(label), **event.to_dict(), **_run_id(label)}) + "\n")


def write_csv(events: "Iterable[tuple[str, Event]]", file: TextIO, only: str | None = None) -> None:
    """One row per event, and one row per value of a metric event; with several runs the first column names the run."""
    rest = iter(events)
    first = next(rest, None)
    columns = ("seq", "ts_ns", "type", *csv_columns(only), "extra")
    has_label = first is not None and bool(first[0])
    writer = csv.DictWriter(file, (*(("run_id",) if has_label else ()), *columns), lineterminator="\n")
    writer.writeheader()
    for label, event in chain([first] if first else [], rest):
        for row in csv_rows(event):
            writer.writerow(row | _run_id(label))


def csv_columns(only: str | None) -> tuple[str, ...]:
    return COLUMNS[only] if only else tuple(dict.fromkeys(name for type_ in TYPES for name in COLUMNS[type_]))


def _run_id(label: str) -> dict[str, str]:
    return {"run_id": label} if label else {}


def csv_rows(event: "Event") -> "Iterator[dict[str, Any]]":
    plain = event.to_dict()
    extra = json.dumps(event.extra) if event.extra else ""
    shared = {"seq": event.seq, "ts_ns": event.ts_ns, "type": event.type, "extra": extra}
    if event.type == "metric":
        for name, value in plain["values"].items():
            yield {**shared, "step": plain["step"], "name": name, "value": value}
    else:
        yield {**shared, **{name: _cell(plain.get(name)) for name in COLUMNS[event.type]}}


def _cell(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, dict | bool) else value


@contextmanager
def _output(path: str | None, is_followed: bool) -> Iterator[TextIO]:
    if not path:
        # A program that reads the pipe gets the values as they are; a terminal must not interpret them.
        yield sys.stdout if sys.stdout.isatty() else raw(sys.stdout)
        return
    from mosaic.exports.target import overwritten_file

    # Somebody reads the file while the run goes on; without --follow it appears when it is complete.
    with overwritten_file(path, is_read_at_once=is_followed) as place, open(place, "w", newline="") as file:
        yield file


def no_such_curve(run_id: str, name: str, known: list[str]) -> MosaicError:
    hint = did_you_mean(name, known)
    more = f" and {len(known) - MOST_NAMES:,} more" if len(known) > MOST_NAMES else ""
    available = (
        f"Its metrics: {visible_line(', '.join(known[:MOST_NAMES]))}{more}" if known else "It has no metrics yet"
    )
    return MosaicError(f"Run {run_id} has no metric '{visible_line(name)}'. {hint + ' ' if hint else ''}{available}.")


def show_curve(args: argparse.Namespace) -> int:
    from mosaic.client.joined import joined_curve

    with connected(args) as client:
        if not args.name:
            names = client.curve_names(args.run)
            print(json.dumps(names, indent=1) if args.json else "\n".join(map(visible_line, names)))
            return 0
        run_id = client.get_run(args.run).run_id
        query = partial(joined_curve, client) if args.joined else client.query_curve
        curve = query(run_id, args.name, args.points)
        if not curve.step:
            raise no_such_curve(run_id, args.name, client.curve_names(run_id))
    points = list(zip(curve.step, curve.mean, curve.min, curve.max, curve.count, strict=True))
    if args.json:
        keys = ("step", "mean", "min", "max", "count")
        print(json.dumps([dict(zip(keys, point, strict=True), axis=curve.axis) for point in points], indent=1))
        return 0
    rows = [(str(step), number(mean), number(low), number(high), str(count)) for step, mean, low, high, count in points]
    axis = {"env steps": "ENV STEP", "episodes": "EPISODE"}.get(curve.axis, "STEP")
    print(render_table((axis, "MEAN", "MIN", "MAX", "COUNT"), rows, right=frozenset(range(5))))
    return 0
