"""Which runs a command applies to: those it names, or those that match --state, --tag, --worker and --older-than."""

import argparse
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mosaic.cli.durations import parse_duration
from mosaic.cli.runs import parse_states
from mosaic.cli.verb import RUN_HELP, BadUsage
from mosaic.model.errors import MosaicError
from mosaic.model.nearest import did_you_mean
from mosaic.model.states import RunState
from mosaic.present.durations import format_duration
from mosaic.present.text import printable

if TYPE_CHECKING:
    from mosaic.client import Run, TrainerClient


def add_selection(parser: argparse.ArgumentParser, states: str) -> None:
    """Add RUN… and the options that select runs instead; a run must match all options."""
    parser.add_argument("runs", metavar="RUN", nargs="*", help=RUN_HELP)
    parser.add_argument("--state", type=parse_states, default=(), help=f"runs in these states, e.g. {states}")
    parser.add_argument(
        "--tag", action="append", default=[], metavar="TAG", help="runs with this tag; repeat to require several"
    )
    parser.add_argument("--worker", default="", metavar="WORKER", help="runs of this worker")
    parser.add_argument("--dry-run", action="store_true", help="only list the runs")
    parser.add_argument("--yes", action="store_true", help="do not ask for confirmation")


def add_age(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--older-than", type=parse_duration, metavar="7d", help="runs that ended at least this long ago"
    )


@dataclass(frozen=True)
class Filter:
    """The conditions that a run must meet; empty fields match every run."""

    states: tuple[RunState, ...] = ()
    tags: tuple[str, ...] = ()
    worker: str = ""
    older_than_s: float | None = None

    @classmethod
    def of(cls, args: argparse.Namespace) -> "Filter":
        return cls(args.state, tuple(args.tag), args.worker, getattr(args, "older_than", None))

    @property
    def is_empty(self) -> bool:
        return self == Filter()

    def matches(self, run: "Run", now: float) -> bool:
        return (
            (not self.states or run.state in self.states)
            and set(self.tags) <= set(run.tags)
            and self.worker in ("", run.worker_name)
            and (self.older_than_s is None or (run.state.is_over and now - run.updated_at >= self.older_than_s))
        )

    def refuse_unknown(self, runs: "Iterable[Run]") -> None:
        """Raise for a worker or a tag that no run has: it is a typing error, not an empty selection."""
        known = list(runs)
        if self.worker:
            _require(self.worker, {run.worker_name for run in known}, "No run used the worker")
        for tag in self.tags:
            _require(tag, {tag for run in known for tag in run.tags}, "No run has the tag")


def _require(name: str, known: set[str], problem: str) -> None:
    if name in known:
        return
    hint = did_you_mean(name, sorted(known)) or f"Known: {', '.join(sorted(known)[:20]) or 'none'}."
    raise MosaicError(f"{problem} '{name}'. {hint}")


def select(client: "TrainerClient", args: argparse.Namespace, states: Sequence[RunState], every: bool) -> "list[Run]":
    """The named runs, each once, or else those in `states` that match. `every`: without any condition, all of them."""
    wanted = Filter.of(args)
    if args.runs and (every or not wanted.is_empty):
        raise BadUsage("name runs or select them with options, not both")
    if not args.runs and not every and wanted.is_empty:
        raise BadUsage("name a run, or select runs with options (see --help)")
    if args.runs:
        named = [client.get_run(reference) for reference in args.runs]
        return list({run.run_id: run for run in named}.values())
    impossible = [state for state in wanted.states if state not in states]
    if impossible:
        raise BadUsage(f"--state {','.join(impossible)}: choose from {', '.join(states)}")
    runs = client.list_runs().runs
    wanted.refuse_unknown(runs)
    return [run for run in runs if run.state in states and wanted.matches(run, time.time())]


def line_of(run: "Run", more: str = "") -> str:
    """One line about a run that is about to be cancelled or deleted."""
    ago = f"{format_duration(time.time() - run.updated_at)} ago"
    since = f"since {format_duration(time.time() - run.updated_at)}" if not run.state.is_over else ago
    return f"{run.run_id}  {printable(run.name)}  {run.state} {since}{f'  {more}' if more else ''}"


def confirm(question: str) -> bool:
    return input(f"{question} [y/N] ").strip().lower() in ("y", "yes")


def is_answered() -> bool:
    """Whether a user can answer a question."""
    return sys.stdin.isatty()
