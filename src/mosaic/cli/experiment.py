"""`mosaic experiment`: groups of runs that differ in settings and seeds."""

import argparse
import json
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mosaic.cli.connection import connected
from mosaic.cli.selection import confirm, is_answered
from mosaic.cli.table import clip, render_table
from mosaic.cli.terminal_text import paint
from mosaic.cli.verb import add_json, add_verb
from mosaic.model.errors import BadConfig, MosaicError, NoDaemon, UnknownExperiment
from mosaic.model.states import RunState
from mosaic.present import experiments as shown
from mosaic.present.scores import count
from mosaic.present.text import printable, size

if TYPE_CHECKING:
    from mosaic.cli.verb import Verbs
    from mosaic.client import Experiment, Run, TrainerClient

EXAMPLES = """
mosaic run toy steps=200 --sweep agents=1,2 --seeds 0-4 --name agents --detach
mosaic experiment list
mosaic experiment show agents
mosaic experiment run sweep.yaml --retry-faulted
"""
DETAILS = "An experiment is a named group of runs: one base config, settings that vary, and seeds."
ENDED_EARLY = (RunState.FAULTED, RunState.CANCELLED)


def add_verbs(verbs: "Verbs") -> None:
    parser = add_verb(verbs, "experiment", list_experiments, "run and inspect groups of runs", EXAMPLES, DETAILS)
    actions = parser.add_subparsers(metavar="ACTION", title="actions", required=True)
    _add_run(actions)
    parser = add_verb(
        actions, "list", list_experiments, "list experiments, newest first", "mosaic experiment list --json"
    )
    add_json(parser)
    examples = "mosaic experiment show agents\nmosaic experiment show agents --json"
    _add_named(actions, "show", show_experiment, "show groups, returns and failures of an experiment", examples)
    examples = "mosaic experiment cancel agents --yes"
    parser = _add_named(actions, "cancel", cancel_experiment, "cancel the live runs of an experiment", examples)
    parser.add_argument("--yes", action="store_true", help="do not ask for confirmation")
    _add_named(
        actions,
        "resume",
        resume_experiment,
        "continue the runs that failed or were cancelled",
        "mosaic experiment resume agents",
        "Each continues from its newest checkpoint. A run without one starts again.",
    )
    examples = "mosaic experiment rm agents\nmosaic experiment rm agents --yes"
    parser = _add_named(actions, "rm", remove_experiment, "delete an experiment with all its runs", examples)
    parser.add_argument("--yes", action="store_true", help="do not ask for confirmation")


def _add_run(actions: "Verbs") -> None:
    parser = add_verb(
        actions,
        "run",
        run_file,
        "run the experiment in a file, or what is missing of it",
        "mosaic experiment run sweep.yaml --dry-run\nmosaic experiment run sweep.yaml --retry-faulted --detach",
        "The file is YAML or JSON; docs/howto/experiments.md has its keys.",
    )
    parser.add_argument("file", metavar="FILE", help="the file with the experiment")
    parser.add_argument("--retry-faulted", action="store_true", help="start the runs again whose newest run is FAULTED")
    parser.add_argument("--dry-run", action="store_true", help="check everything and list what would be added")
    parser.add_argument("--detach", action="store_true", help="return once the runs are submitted")
    parser.add_argument("--yes", action="store_true", help="start more than 1,000 runs without asking")
    add_json(parser)


def _add_named(
    actions: "Verbs", name: str, action: Any, summary: str, examples: str, details: str = ""
) -> argparse.ArgumentParser:
    parser = add_verb(actions, name, action, summary, examples, details)
    parser.add_argument("name", metavar="NAME", help="the name of the experiment")
    add_json(parser)
    return parser


# ---- run


def run_file(args: argparse.Namespace) -> int:
    from mosaic.cli.experiment_file import as_in_file, read_file
    from mosaic.cli.sweep import start

    path = Path(args.file)
    name, document = read_file(path)
    try:
        return _dry_run(args, name, document) if args.dry_run else start(args, name, document, args.retry_faulted)
    except BadConfig as error:  # of the worker or of the daemon
        raise MosaicError(f"{path}: {as_in_file(error)}") from None


def _dry_run(args: argparse.Namespace, name: str, document: dict[str, Any]) -> int:
    from mosaic.model.experiment import label, run_count

    with connected(args) as client:
        plan = client.run_experiment(name, document, retry_faulted=args.retry_faulted, is_dry_run=True)
    if args.json:
        missing = [dict(point) for point in plan.missing]
        print(json.dumps({"experiment": name, "runs": run_count(document), "would_add": missing}, indent=1))
        return 0
    for point in plan.missing:
        print(f"would add  {printable(label(point))}")
    print(f"{len(plan.missing):,} of {run_count(document):,} runs. All settings are valid; nothing was submitted.")
    return 0


# ---- list and show


def list_experiments(args: argparse.Namespace) -> int:
    with connected(args) as client:
        found = client.experiments()
    if args.json:
        print(json.dumps([experiment.to_dict() for experiment in found], indent=1))
        return 0
    if not found:
        print("No experiments. Start one with: mosaic run toy steps=500 --seeds 0-4")
        return 0
    headings = ("EXPERIMENT", "WORKER", "VARIES", "SEEDS", "RUNS", "AGO", "NOTE")
    print(render_table(headings, [_row(experiment) for experiment in found], right=frozenset({3, 5})))
    return 0


def _row(experiment: "Experiment") -> tuple[str, ...]:
    document = experiment.document
    varies = ", ".join(f"{key} ({len(values)})" for key, values in document.get("axes", {}).items())
    note = experiment.note or _origin(experiment)[0]
    return (
        printable(experiment.name),
        clip(printable(document.get("worker", "")), 16),
        clip(printable(varies), 40) or "-",
        str(len(document.get("seeds", ()))) if document.get("seeds") else "-",
        shown.describe_tally(experiment.counts),
        shown.age(experiment.created_at),
        clip(printable(note), 40),
    )


def show_experiment(args: argparse.Namespace) -> int:
    with connected(args) as client:
        experiment = client.experiment(args.name)
        runs = client.list_runs(experiment=args.name).runs
    if args.json:
        print(json.dumps(as_json(experiment, list(runs)), indent=1))
    else:
        print(describe(experiment, list(runs)))
    return 0


def as_json(experiment: "Experiment", runs: "list[Run]") -> dict[str, Any]:
    return {**experiment.to_dict(), **shown.to_dict(shown.current(runs))}


def describe(experiment: "Experiment", runs: "list[Run]") -> str:
    from mosaic.cli.follow_group import fault_lines, headline

    current = shown.current(runs)
    lines = [headline(paint(printable(experiment.name), "bold"), current), _facts(experiment)]
    if replaced := len([run for run in runs if run.axes]) - len(current):
        why = "equal settings" if experiment.document.get("search") else "retried or resumed"
        lines.append(f"{count(replaced, 'earlier run')} not shown: {why}")
    if current:
        headings, rows, right = shown.table(current)
        lines += ["", render_table(headings, rows, right)]
    if failures := fault_lines(current):
        lines += ["", *failures, _after_failures(experiment)]
    return "\n".join(lines)


def _after_failures(experiment: "Experiment") -> str:
    if experiment.document.get("search"):
        return f"Its driver replaces trials that failed: mosaic search show {experiment.name}"
    return f"Continue them with: mosaic experiment resume {experiment.name}"


def _facts(experiment: "Experiment") -> str:
    from mosaic.model.experiment import label

    document = experiment.document
    variant = f"@{document['variant']}" if document.get("variant") else ""
    limit = document.get("max_parallel")
    facts = [
        f"worker {document.get('worker', '')}{variant}",
        label(document.get("base", {})),
        f"at most {limit} at a time" if limit else "",
        ": ".join(filter(None, _origin(experiment))),
        experiment.note,
    ]
    return printable(" · ".join(filter(None, facts)))


def _origin(experiment: "Experiment") -> tuple[str, str]:
    """What it is, if it has no record of its own, and what follows from that."""
    if experiment.document.get("search"):
        return "a search", f"mosaic search show {experiment.name}"
    return ("its record is lost", "this is what its runs show") if experiment.is_reconstructed else ("", "")


# ---- cancel, resume, rm


def cancel_experiment(args: argparse.Namespace) -> int:
    with connected(args) as client:
        live = _runs(client, args.name, lambda run: not run.state.is_over)
        if live and not args.yes and is_answered() and not confirm(f"Cancel {count(len(live), 'run')} of {args.name}?"):
            raise MosaicError("Nothing was cancelled.")
        # The newest first: a run that waits must not start because another one was cancelled.
        cancelled = client.cancel_runs([run.run_id for run in live])
    if args.json:
        print(json.dumps({"experiment": args.name, "cancelled": [run.run_id for run in cancelled]}, indent=1))
    else:
        print(f"Cancelling {count(len(cancelled), 'run')} of {args.name}." if live else "No live run.")
    return 0


def resume_experiment(args: argparse.Namespace) -> int:
    with connected(args) as client:
        runs = shown.current(client.list_runs(experiment=args.name).runs)
        ended = [run for run in runs if run.state in ENDED_EARLY]
        continued = client.resume_experiment(args.name, ended)
    if args.json:
        rows = [
            {"run_id": each.after.run_id, "continues": each.before.run_id, "is_resumed": each.is_resumed}
            for each in continued
        ]
        print(json.dumps({"experiment": args.name, "runs": rows}, indent=1))
        return 0
    for each in continued:
        how = "continues from its checkpoint" if each.is_resumed else "starts again"
        print(f"{each.after.run_id}  {printable(each.after.name)}  {how}")
    print(f"{count(len(continued), 'run')} continued." if ended else "No run failed or was cancelled.")
    return 0


def remove_experiment(args: argparse.Namespace) -> int:
    with connected(args) as client:
        runs = list(client.list_runs(experiment=args.name).runs)
        if live := [run for run in runs if not run.state.is_over]:
            are = "is" if len(live) == 1 else "are"
            how = f"Cancel first: mosaic experiment cancel {args.name}"
            raise MosaicError(f"{count(len(live), 'run')} of {args.name} {are} not over. {how}")
        if not args.yes:
            _ask(args.name, len(runs))
        freed, failed = _delete(client, runs)
        if not failed:
            # Without a record of its own it is gone with its last run.
            with suppress(UnknownExperiment):
                client.delete_experiment(args.name)
    if args.json:
        deleted = len(runs) - failed
        print(json.dumps({"experiment": args.name, "deleted_runs": deleted, "freed_bytes": freed}, indent=1))
    else:
        print(f"Deleted {args.name} with {count(len(runs) - failed, 'run')}: {size(freed)}.")
    return 1 if failed else 0


def _ask(name: str, runs: int) -> None:
    if not is_answered():
        raise MosaicError(f"Cannot ask for confirmation without a terminal. Add --yes to delete {count(runs, 'run')}.")
    if not confirm(f"Delete {name} and {count(runs, 'run')} with telemetry, logs and checkpoints?"):
        raise MosaicError("Nothing was deleted.")


def _delete(client: "TrainerClient", runs: "list[Run]") -> tuple[int, int]:
    """The number of bytes freed, and of runs that could not be deleted."""
    freed = failed = 0
    for run in runs:
        try:
            freed += client.delete_run(run.run_id)
        except NoDaemon:
            raise
        except MosaicError as error:
            failed += 1
            print(f"mosaic: {error}", file=sys.stderr)
    return freed, failed


def _runs(client: "TrainerClient", name: str, wanted: Any) -> "list[Run]":
    return [run for run in client.list_runs(experiment=name).runs if wanted(run)]
