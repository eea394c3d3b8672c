"""`mosaic import`: runs that other programs have recorded."""

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mosaic.cli.connection import connected, refuse_host
from mosaic.cli.install_progress import progress
from mosaic.cli.table import render_table
from mosaic.cli.verb import BadUsage, add_json, add_verb
from mosaic.model.names import VALID, is_worker_name
from mosaic.model.task import Task
from mosaic.present.scores import count
from mosaic.present.text import printable

if TYPE_CHECKING:
    from mosaic.cli.install_progress import LineProgress
    from mosaic.cli.verb import Verbs
    from mosaic.client import TrainerClient
    from mosaic.client.importing import Imported
    from mosaic.imports.scan import Scan
    from mosaic.imports.source import Found, Source

EXAMPLES = """
mosaic import runs/                                   TensorBoard: CleanRL, SB3, anything with a SummaryWriter
mosaic import wandb/ ray_results/ mlruns/ --dry-run   list what would be imported
mosaic import runs/ --experiment cartpole --tag old   into an experiment, with a tag
mosaic import runs/my-run --name baseline --json
"""
DETAILS = """Known formats: TensorBoard event files, offline runs of W&B (.wandb), Ray and RLlib (result.json,
progress.csv), Stable-Baselines3 (monitor.csv, evaluations.npz, progress.csv), DreamerV3 (metrics.jsonl,
scores.jsonl) and MLflow (mlruns/). Curves, settings and times are stored; checkpoints and other files stay
where they are. Importing the same folder again adds only what is new."""
LONGEST_NAME = 120


def add_verbs(verbs: "Verbs") -> None:
    parser = add_verb(verbs, "import", import_runs, "import runs that other programs have recorded", EXAMPLES, DETAILS)
    parser.add_argument("paths", metavar="PATH", nargs="+", help="a folder, which is searched, or a file")
    parser.add_argument("--dry-run", action="store_true", help="list what was found and import nothing")
    parser.add_argument("--name", default="", help="name of the run, if there is only one (default: its folder's)")
    parser.add_argument("--tag", action="append", default=[], metavar="TAG", help="label of the new runs; repeatable")
    parser.add_argument("--experiment", default="", metavar="NAME", help="the experiment that the new runs belong to")
    add_json(parser)


def import_runs(args: argparse.Namespace) -> int:
    refuse_host(args, "import")
    if args.experiment and not is_worker_name(args.experiment):
        raise BadUsage(f"--experiment: '{printable(args.experiment)}' is not a valid name. {VALID}")
    scan = _scan(args.paths)
    if args.name and len(scan.found) > 1:
        raise BadUsage(f"--name: {len(scan.found)} runs were found. Give the path of one of them")
    if args.dry_run:
        return _print_found(scan, args.json)
    return _import_all(scan, args)


def _scan(paths: list[str]) -> "Scan":
    from mosaic.imports.scan import Scan

    scan = Scan()
    for path in paths:
        try:
            scan.add(Path(path))
        except OSError as error:
            raise BadUsage(f"{printable(path)}: {error.strerror}") from None
    return scan


# ---- --dry-run


def _print_found(scan: "Scan", as_json: bool) -> int:
    if as_json:
        runs = [{"format": found.format, "path": str(found.path), "name": found.name} for found in scan.found]
        print(json.dumps({"runs": runs, "problems": scan.problems}, indent=1))
        return 0
    if scan.found:
        rows = [(printable(found.name), found.format, printable(str(found.path))) for found in scan.found]
        print(render_table(("NAME", "FORMAT", "PATH"), rows))
    _print_problems(scan.problems)
    print(f"{count(len(scan.found), 'run')} found. Nothing was imported; leave out --dry-run to import.")
    return 0


def _print_problems(problems: "list[str] | tuple[str, ...]") -> None:
    import sys

    for problem in problems:
        print(f"mosaic: {printable(problem)}", file=sys.stderr)


# ---- importing


def _import_all(scan: "Scan", args: argparse.Namespace) -> int:
    problems, done, failed = list(scan.problems), list[dict[str, Any]](), 0
    if scan.found:
        with connected(args) as client, progress() as shown:
            for number, found in enumerate(scan.found, 1):
                shown.phase(f"Importing {number} of {len(scan.found)}: {found.name}")
                one, more = _import_one(client, found, args, shown)
                done.append(one)
                problems += more
                failed += one["result"] == "failed"
    if args.json:
        print(json.dumps({"runs": done, "problems": problems}, indent=1))
    else:
        _print_done(done)
        _print_problems(problems)
    return 1 if failed or not scan.found else 0


def _import_one(
    client: "TrainerClient", found: "Found", args: argparse.Namespace, shown: "LineProgress"
) -> tuple[dict[str, Any], list[str]]:
    """What `--json` prints of one run, and the problems. A run that cannot be imported does not stop the others."""
    from mosaic.imports.scan import open_source
    from mosaic.model.errors import MosaicError, NoDaemon

    def describe(source: "Source") -> dict[str, Any]:
        return document_of(source, args)

    about = {"name": found.name, "format": found.format, "path": str(found.path)}
    try:
        result = client.import_run(
            found.format,
            found.path,
            lambda cursor: open_source(found, cursor),
            describe,
            lambda events: shown.detail(count(events, "event")) if events % 100_000 < 40_000 else None,
        )
    except NoDaemon:
        raise
    except MosaicError as error:
        return {**about, "run_id": "", "result": "failed", "events": 0}, [f"{found.path}: {error}"]
    word = _word(result)
    name = result.run.name if result.run else found.name
    return {**about, "name": name, "run_id": result.run_id, "result": word, "events": result.events}, [*result.problems]


def _word(result: "Imported") -> str:
    if not result.run_id:
        return "empty"
    return "imported" if result.is_new else "continued" if result.events else "unchanged"


def document_of(source: "Source", args: argparse.Namespace) -> dict[str, Any]:
    """What the daemon stores as the config of the run: see submit/imported.py."""
    about, found = source.about, source.found
    task = Task.of(about.settings)
    # Runs of a group differ in their seed alone, so what they have in common is an axis, too.
    axes = {"algo": task.algo, "env_id": task.env_id, "seed": task.seed} if args.experiment else {}
    experiment = {
        "name": args.experiment,
        "axes": {key: value for key, value in axes.items() if value not in ("", None)},
    }
    return {
        "metadata": {
            "run_name": _name(args.name or about.name or found.name),
            "tags": _tags([*args.tag, *about.tags]),
            **({"experiment": experiment} if args.experiment else {}),
        },
        "imported": {
            "format": found.format,
            "path": str(found.path),
            "state": about.state,
            "reason": about.reason,
            "created_at": about.began,
            "updated_at": about.ended,
            "total_steps": about.total_steps,
            "settings": about.settings,
            "notes": about.notes,
        },
    }


def _name(text: str) -> str:
    shown = "".join(letter if letter.isprintable() else "?" for letter in text).strip()
    return shown[-LONGEST_NAME:].strip() or "imported"


def _tags(tags: list[str]) -> list[str]:
    shown = ["".join(letter for letter in tag if letter.isprintable())[:64].strip() for tag in tags]
    return list(dict.fromkeys(tag for tag in shown if tag))[:32]


def _print_done(done: list[dict[str, Any]]) -> None:
    rows = [
        (one["run_id"] or "-", printable(one["name"]), one["format"], one["result"], f"{one['events']:,}")
        for one in done
        if one["result"] != "unchanged"
    ]
    if rows:
        print(render_table(("RUN", "NAME", "FORMAT", "RESULT", "EVENTS"), rows, right=frozenset({4})))
    words = [one["result"] for one in done]
    kinds = [f"{words.count(word)} {word}" for word in dict.fromkeys(words)]
    print(f"{count(len(done), 'run')}: {', '.join(kinds)}." if done else "Nothing was imported.")
