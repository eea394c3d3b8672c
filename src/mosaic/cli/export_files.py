"""`mosaic export --to …` and `--format parquet`: files and folders for other programs."""

import argparse
import json
import os
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mosaic.cli.export import csv_columns
from mosaic.cli.install_progress import LineProgress, progress
from mosaic.exports.stored import rows_of, stored_events
from mosaic.exports.target import new_file, new_folder
from mosaic.model.visible import visible_line
from mosaic.present.scores import count as count_of

if TYPE_CHECKING:
    from mosaic.client import Run, TrainerClient
    from mosaic.client.events import Event

Write = Callable[["Run", "Iterator[Event]"], int]  # returns the number of values


def export_files(client: "TrainerClient", runs: "list[Run]", args: argparse.Namespace) -> int:
    with progress() as shown, _writer(args, runs) as write:
        counts = [
            write(run, _told_events(client, run, number, len(runs), args.type, shown))
            for number, run in enumerate(runs, 1)
        ]
    target = args.to[1] if args.to else args.output
    if args.json:
        print(json.dumps(report(target, runs, counts), indent=1))
    else:
        print(describe(args, target, runs, counts))
    return 0


@contextmanager
def _writer(args: argparse.Namespace, runs: "list[Run]") -> Iterator[Write]:
    """What writes one run after the other; its target is in place when the block ends without an error."""
    if not args.to:
        from mosaic.exports.parquet import ParquetFile, require_pyarrow

        require_pyarrow()  # before the target is touched
        with new_file(args.output, args.force) as path, ParquetFile(path, csv_columns(args.type)) as file:
            yield file.write
        return
    with new_folder(args.to[1], args.force) as folder:
        yield _to_wandb(folder) if args.to[0] == "wandb" else _to_tensorboard(folder, runs)


def _to_tensorboard(folder: Path, runs: "list[Run]") -> Write:
    from mosaic.client.tensorboard import labelled
    from mosaic.exports.tensorboard import write_run

    labels = {run.run_id: label for label, run in labelled(runs).items()}
    return lambda run, events: write_run(folder / labels[run.run_id], run, rows_of(events))


def _to_wandb(folder: Path) -> Write:
    from mosaic.exports.wandb import write_run

    return lambda run, events: write_run(folder, run, rows_of(events))


def _told_events(
    client: "TrainerClient", run: "Run", number: int, total: int, type_: str | None, shown: LineProgress
) -> "Iterator[Event]":
    shown.phase(f"{run.name or run.run_id} ({number} of {total})")
    is_live_line = type(shown) is not LineProgress  # in a pipe a line per thousand events would be noise

    def tell(events: int) -> None:
        if events and is_live_line:
            shown.detail(f"{events:,} of {run.summary.events:,} events")

    return stored_events(client, run, type_, tell)


def report(target: str, runs: "list[Run]", counts: list[int]) -> dict[str, Any]:
    exported = [
        {"run_id": run.run_id, "name": run.name, "state": str(run.state), "values": count}
        for run, count in zip(runs, counts, strict=True)
    ]
    return {"path": os.path.abspath(os.path.expanduser(target)), "runs": exported}


def describe(args: argparse.Namespace, target: str, runs: "list[Run]", counts: list[int]) -> str:
    noun = "values" if args.to else "rows"
    lines = [f"Wrote {sum(counts):,} {noun} of {count_of(len(runs), 'run')} to {target}."]
    empty = [run for run, count in zip(runs, counts, strict=True) if not count]
    if empty:
        lines.append(f"Without {noun}: {_named(empty)}.")
    odd = [run for run in runs if str(run.state) in ("FAULTED", "CANCELLED")]
    if odd:
        lines.append(f"Included, although not finished: {_named(odd)}.")
    if live := [run for run in runs if not run.state.is_over]:
        lines.append(f"Still running, exported as far as stored now: {_named(live)}.")
    return "\n".join([*lines, *_next_step(args, target)])


def _named(runs: "list[Run]") -> str:
    return ", ".join(f"{visible_line(run.name or run.run_id)} ({run.state})" for run in runs)


def _next_step(args: argparse.Namespace, target: str) -> list[str]:
    quoted = shlex.quote(target)
    if not args.to:
        return []
    if args.to[0] == "wandb":
        return [f"Upload it with: wandb sync {quoted}/offline-run-*"]
    return [f"Open it with: tensorboard --logdir {quoted}"]
