"""`mosaic search`: search hyper-parameters with Optuna; every trial is a run."""

import argparse
import json
import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mosaic.cli.connection import connected, refuse_host
from mosaic.cli.run import add_run_options, print_submitted, run_options
from mosaic.cli.settings import parse_settings
from mosaic.cli.verb import BadUsage, add_json, add_verb, count
from mosaic.model.errors import BadConfig, MosaicError
from mosaic.model.nearest import did_you_mean
from mosaic.model.rundir import StateRoot
from mosaic.present.text import printable

if TYPE_CHECKING:
    from mosaic.catalog.search import Search
    from mosaic.cli.verb import Verbs
    from mosaic.client import Run, TrainerClient

SAMPLERS, PRUNERS = ("tpe", "cmaes", "random"), ("none", "median", "asha", "hyperband")
EXAMPLES = """
mosaic search toy steps=500 --space episode_length=int:10:100 --trials 8 --name lengths
mosaic search cleanrl algo=ppo env=CartPole-v1 --space learning_rate=log:1e-5:1e-2 --space ent_coef=float:0:0.1
mosaic search cleanrl algo=ppo env=CartPole-v1 --space num_steps=choice:64,128,256 --pruner median --max-parallel 2
mosaic search lr.yaml                          a search in a file
mosaic search show lengths                     the best trial, and a table of all
mosaic search resume lengths --trials 40       continue a search that was killed, or add trials
mosaic search cancel lengths                   cancel it with its trials
"""
DETAILS = """\
A range is log:LOW:HIGH, float:LOW:HIGH[:STEP], int:LOW:HIGH[:STEP], logint:LOW:HIGH or choice:A,B,C.
The search itself is a run, its driver. Trials are runs of the experiment --name. See docs/howto/search.md."""
DRIVER = "search"
MOST_ROWS = 20


def add_verbs(verbs: "Verbs") -> None:
    parser = add_verb(verbs, "search", start_search, "search hyper-parameters with Optuna", EXAMPLES, DETAILS)
    parser.add_argument(
        "worker", metavar="WORKER|FILE", nargs="?", help="the worker of the trials, NAME or NAME@VARIANT; or a file"
    )
    parser.add_argument("settings", metavar="key=value", nargs="*", help="settings that all trials have")
    _add_options(parser)
    add_run_options(parser)
    for action in parser._actions:
        if action.dest == "name":
            action.help = "name the search and its experiment (default: the worker's name and a number)"
    _add_actions(parser)


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--space", action="append", default=[], metavar="KEY=RANGE", help="a setting to search; repeat for more"
    )
    parser.add_argument("--trials", type=count, default=20, metavar="N", help="complete N trials (default 20)")
    parser.add_argument(
        "--metric", default="return", help="the curve to optimise: return (default), length, eval, or a metric's name"
    )
    direction = parser.add_mutually_exclusive_group()
    for what, which in (("maximize", "larger values are better (default)"), ("minimize", "smaller values are better")):
        direction.add_argument(
            f"--{what}", dest="direction", action="store_const", const=what, default="maximize", help=which
        )
    parser.add_argument("--sampler", choices=SAMPLERS, default="tpe", help="how settings are chosen (default tpe)")
    parser.add_argument("--pruner", choices=PRUNERS, default="none", help="end hopeless trials early (default none)")
    for what in ("sampler", "pruner"):
        parser.add_argument(
            f"--{what}-option", action="append", default=[], metavar="key=value", help=f"an option of Optuna's {what}"
        )
    parser.add_argument(
        "--report-every", type=count, default=0, metavar="STEPS", help="compare trials every STEPS (default: 20 times)"
    )
    parser.add_argument(
        "--max-parallel", type=count, default=1, metavar="N", help="N runs at the same time (default 1)"
    )
    parser.add_argument("--seeds", default="", help="run each trial with these seeds, 0-2 or 1,5,9; the mean counts")
    parser.add_argument("--sampler-seed", type=count, metavar="S", help="make the choice of settings repeatable")
    parser.add_argument(
        "--max-failures", type=count, default=5, metavar="N", help="give up after N failed trials in a row (default 5)"
    )


def _add_actions(parser: Any) -> None:
    """The actions share a word with WORKER."""
    shown = add_verb(parser, "show", show_search, "show the results of a search", "mosaic search show lengths")
    shown.add_argument("name", metavar="NAME", help="the name of the search")
    shown.add_argument("--all", action="store_true", help=f"list all trials, not only the best {MOST_ROWS}")
    add_json(shown)
    examples = "mosaic search resume lengths\nmosaic search resume lengths --trials 40 --detach"
    resumed = add_verb(parser, "resume", resume_search, "continue a search, or add trials to it", examples)
    resumed.add_argument("name", metavar="NAME", help="the name of the search")
    resumed.add_argument("--trials", type=count, metavar="N", help="complete N trials in all (default: as before)")
    resumed.add_argument("--max-parallel", type=count, metavar="N", help="N runs at the same time (default: as before)")
    resumed.add_argument("--detach", action="store_true", help="return once the run is submitted")
    add_json(resumed)
    ended = add_verb(
        parser, "cancel", cancel_search, "cancel a search and its live trials", "mosaic search cancel lengths"
    )
    ended.add_argument("name", metavar="NAME", help="the name of the search")


def start_search(args: argparse.Namespace) -> int:
    from mosaic.catalog.search import search_config
    from mosaic.cli.search_file import is_file

    refuse_host(args, "search")
    if not args.worker or (not is_file(args.worker) and "=" in args.worker):
        raise BadUsage("name the worker of the trials (list them with: mosaic worker list), or show, resume or cancel")
    if args.idempotency_key:
        raise BadUsage("a search is known by its --name; leave --idempotency-key out")
    described = _file_search(args) if is_file(args.worker) else None
    if not args.space and not described:
        _refuse_unknown_worker(args.worker)
        raise BadUsage("nothing to search. Add a range, such as --space learning_rate=log:1e-5:1e-2")
    with connected(args) as client:
        search = described or _search(args, args.name or _free_name(client, args.worker.partition("@")[0]))
        name = search.name
        config = search_config(search, StateRoot.from_environment())
        if runs := runs_of(client, name):
            verb = "resume" if any(run.worker_name == DRIVER for run in runs) else "show"
            raise MosaicError(
                f"There is an experiment '{name}' already. Choose another --name, or: mosaic search {verb} {name}"
            )
        run = client.submit_run(config, f"experiment/{name}/driver")
        return _follow(client, run, name, args)


def _refuse_unknown_worker(worker: str) -> None:
    """UnknownWorker for what is no worker: a mistyped action, for one."""
    from mosaic.catalog.workers import Catalog

    name, _, variant = worker.partition("@")
    Catalog(StateRoot.from_environment()).find(name, variant)


def _file_search(args: argparse.Namespace) -> "Search":
    """The search in a file, which describes all of it: an option that it may contradict is refused."""
    from mosaic.cli.search_file import read_search

    kept = ("worker", "name", "detach", "json", "verbose", "host")
    default_of = args.parser.get_default
    given = [
        name for name, value in vars(args).items() if name not in kept and (value or None) != (default_of(name) or None)
    ]
    if given:
        option = "key=value" if given[0] == "settings" else f"--{given[0].replace('_', '-')}"
        raise BadUsage(f"write {option} into {args.worker}: with a file only --name, --detach and --json are options")
    return read_search(Path(args.worker), args.name)


def _search(args: argparse.Namespace, name: str) -> "Search":
    from mosaic.catalog.search import Search, spaces_of

    fixed, space = parse_settings(args.settings), spaces_of(args.space)
    return Search(name, args.worker, fixed, space, _options(args), run_options(args))


def _options(args: argparse.Namespace) -> dict[str, Any]:
    from mosaic.catalog.search import read_seeds

    for option in ("trials", "max_parallel", "max_failures"):
        if getattr(args, option) == 0:
            raise BadUsage(f"--{option.replace('_', '-')} must be at least 1")
    names = ("trials", "metric", "direction", "sampler", "pruner", "report_every", "max_parallel", "max_failures")
    return {
        **{name: getattr(args, name) for name in names},
        "sampler_options": parse_settings(args.sampler_option),
        "pruner_options": parse_settings(args.pruner_option),
        **({"seeds": read_seeds(args.seeds)} if args.seeds else {}),
        **({"seed": args.sampler_seed} if args.sampler_seed is not None else {}),
    }


def _free_name(client: "TrainerClient", worker: str) -> str:
    taken = {run.experiment for run in client.list_runs().runs}
    number = 1
    while f"{worker}-search-{number}" in taken:
        number += 1
    return f"{worker}-search-{number}"


def _follow(client: "TrainerClient", run: "Run", name: str, args: argparse.Namespace) -> int:
    from mosaic.cli.follow import exit_code, follow, updates

    if args.detach:
        print_submitted(run, args)
        return 0
    if args.json:
        for latest in updates(client, run.run_id):
            run = latest
        print(json.dumps(results(client, name), indent=1))
        return exit_code(run)
    print(f"Search {name}: its trials are runs of the experiment '{name}'. See: mosaic search show {name}")
    return follow(client, run, lambda _: text_of(results(client, name)))


def show_search(args: argparse.Namespace) -> int:
    with connected(args) as client:
        found = results(client, args.name)
    print(json.dumps(found, indent=1) if args.json else text_of(found, 0 if args.all else MOST_ROWS))
    return 0


def resume_search(args: argparse.Namespace) -> int:
    from mosaic.catalog.derived import RESUME, derived_config
    from mosaic.catalog.request import RunOptions

    with connected(args) as client:
        drivers = drivers_of(client, args.name)
        if not drivers[0].state.is_over:
            raise MosaicError(
                f"The search '{args.name}' is still running. Watch it with: mosaic watch {drivers[0].run_id}"
            )
        # A driver that was killed before it had a study has changed nothing.
        began = next((run for run in drivers if run.summary.checkpoints), drivers[0])
        asked = {"trials": args.trials, "max_parallel": args.max_parallel}
        settings = {name: value for name, value in asked.items() if value is not None}
        config = derived_config(began.run_id, RESUME, settings, RunOptions())
        return _follow(client, client.submit_run(config), args.name, args)


def cancel_search(args: argparse.Namespace) -> int:
    from mosaic.cli.cancel import wait_until_over

    with connected(args) as client:
        newest, *_ = all_drivers = drivers_of(client, args.name)
        drivers = [run for run in all_drivers if not run.state.is_over]
        for run in drivers:
            client.cancel_run(run.run_id)
        # First the driver: it would replace the trials.
        for run in drivers:
            wait_until_over(client, run.run_id)
        trials = [run for run in runs_of(client, args.name) if not run.state.is_over]
        if trials:
            client.cancel_runs([run.run_id for run in trials], "the search was cancelled")
    if not drivers and not trials:
        print(f"Nothing to cancel: the search '{args.name}' is {newest.state}.")
        return 0
    what = f"and {len(trials)} of its trials are" if trials else "is"
    print(f"The search '{args.name}' {what} cancelled. Continue it with: mosaic search resume {args.name}")
    return 0


def runs_of(client: "TrainerClient", name: str) -> "list[Run]":
    """The runs of an experiment, newest first."""
    return [run for run in client.list_runs().runs if run.experiment == name]


def drivers_of(client: "TrainerClient", name: str) -> "list[Run]":
    """The drivers of a search, newest first; at least one."""
    runs = client.list_runs().runs
    drivers = [run for run in runs if run.experiment and run.worker_name == DRIVER]
    found = [run for run in drivers if run.experiment == name]
    if not found:
        hint = did_you_mean(name, sorted({run.experiment for run in drivers}), 1) or "Start one: mosaic search --help"
        raise BadConfig("", f"There is no search '{name}'. {hint}")
    return found


def results(client: "TrainerClient", name: str) -> dict[str, Any]:
    """The document that --json prints."""
    from mosaic.present.search_results import results_of

    drivers = drivers_of(client, name)
    # One that was resumed a moment ago has no trials yet; those of its parent are shown with its own state.
    newest = drivers[0]
    driver = client.get_run(next((run for run in drivers if run.summary.checkpoints), newest).run_id)
    settings = (driver.config or {}).get("metadata", {}).get("worker", {}).get("config", {})
    about = {"name": name, "driver": newest.run_id, "state": str(newest.state), "reason": newest.reason}
    return {**about, **results_of(_lifecycle(client, driver), settings)}


def _lifecycle(client: "TrainerClient", driver: "Run") -> Iterable[dict[str, Any]]:
    if not driver.summary.events:
        return
    for event in client.stream_events(driver.run_id, until_seq=driver.summary.events):
        found = event.to_dict()
        if found["type"] == "lifecycle":
            yield found


def text_of(found: dict[str, Any], most: int = MOST_ROWS) -> str:
    from mosaic.cli.table import render_table
    from mosaic.present.search_results import rows_of

    counts = ", ".join(f"{number} {word}" for word, number in found["counts"].items()) or "none is over"
    lines = [f"Search {found['name']} is {found['state']}: {_asked(found['asked'])}; {counts}."]
    if found["state"] in ("FAULTED", "CANCELLED"):
        lines += filter(None, [_cause(found["reason"])])
        lines.append(f"Continue it with: mosaic search resume {shlex.quote(found['name'])}")
    headings, rows = rows_of(found, most)
    if rows:
        lines += ["", render_table(headings, rows, frozenset({0, 1}))]
    if len(found["trials"]) > len(rows):
        lines.append(
            f"… and {len(found['trials']) - len(rows)} more: mosaic search show {shlex.quote(found['name'])} --all"
        )
    if found["importances"]:
        shares = ", ".join(f"{name} {share:.0%}" for name, share in found["importances"].items())
        lines += ["", f"Importance: {shares}"]
    if found["best"]:
        lines += ["", f"Best: trial {found['best']['number']}. Run it with:", f"  {found['best']['command']}"]
    return "\n".join(lines)


def _asked(trials: object) -> str:
    return "1 trial asked" if trials == 1 else f"{trials} trials asked"


def _cause(reason: str) -> str:
    """`exit code 2: sampler_options: TPESampler does not accept them`: with the last line that the driver printed."""
    first, *output = reason.strip().split("\n")
    return printable(f"{first}: {output[-1].strip()}" if output else first)
