"""`mosaic export` and `mosaic curve`: a run's telemetry for other programs."""

import argparse
import csv
import io
import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, TextIO

from mosaic.cli.connection import connected
from mosaic.cli.safe_output import raw
from mosaic.cli.table import render_table
from mosaic.cli.verb import RUN_HELP, add_json, add_verb, count
from mosaic.model.errors import MosaicError
from mosaic.model.nearest import did_you_mean
from mosaic.model.visible import visible_line
from mosaic.present.text import number

if TYPE_CHECKING:
    from mosaic.cli.verb import Verbs
    from mosaic.client import TrainerClient
    from mosaic.client.events import Event

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
    parser = add_verb(
        verbs,
        "export",
        export_run,
        "print a run's telemetry as JSON lines or CSV",
        "mosaic export 01JCQ > run.jsonl\nmosaic export 01JCQ --type metric --format csv -o metrics.csv",
        "NaN and infinite numbers are printed as NaN and Infinity,\nwhich strict JSON parsers do not accept.",
    )
    parser.add_argument("run", metavar="RUN", help=RUN_HELP)
    parser.add_argument("--format", choices=("jsonl", "csv"), default="jsonl", help="the format (default jsonl)")
    parser.add_argument("--type", choices=TYPES, help="only events of this type")
    parser.add_argument("--since", type=count, default=0, metavar="SEQ", help="only events after this sequence number")
    parser.add_argument("-f", "--follow", action="store_true", help="continue until the run is over")
    parser.add_argument("-o", "--output", metavar="FILE", help="write to this file instead of stdout")

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


def export_run(args: argparse.Namespace) -> int:
    with connected(args) as client, _output(args.output) as file:
        write = write_csv if args.format == "csv" else write_jsonl
        if args.follow and isinstance(file, io.TextIOWrapper):
            file.reconfigure(line_buffering=True)  # a reader that follows needs each line when it comes
        write(_events(client, args), file, args.type)
    return 0


def _events(client: "TrainerClient", args: argparse.Namespace) -> "Iterator[Event]":
    run = client.get_run(args.run)
    # The export of a live run ends with what is stored now; without `until` the stream would wait for more.
    until = None if args.follow or run.state.is_over else run.summary.events
    streams = {"step": client.stream_steps, "episode": client.stream_episodes}
    stream = streams.get(args.type, client.stream_events)
    if until is not None and until <= args.since:
        return
    for event in stream(run.run_id, since_seq=args.since, until_seq=until):
        if args.type in (None, event.type):
            yield event


def write_jsonl(events: "Iterable[Event]", file: TextIO, _: str | None = None) -> None:
    encode = json.JSONEncoder(separators=(",", ":")).encode
    for event in events:
        file.write(encode(event.to_dict()) + "\n")


def write_csv(events: "Iterable[Event]", file: TextIO, only: str | None = None) -> None:
    """One row per event, and one row per value of a metric event."""
    names = COLUMNS[only] if only else tuple(dict.fromkeys(name for type_ in TYPES for name in COLUMNS[type_]))
    writer = csv.DictWriter(file, ("seq", "ts_ns", "type", *names, "extra"), lineterminator="\n")
    writer.writeheader()
    for event in events:
        for row in csv_rows(event):
            writer.writerow(row)


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
def _output(path: str | None) -> Iterator[TextIO]:
    if not path:
        # A program that reads the pipe gets the values as they are; a terminal must not interpret them.
        yield sys.stdout if sys.stdout.isatty() else raw(sys.stdout)
        return
    try:
        file = open(path, "w", newline="")  # noqa: SIM115
    except OSError as error:
        raise MosaicError(f"Cannot write {path}: {error.strerror}.") from None
    with file:
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
