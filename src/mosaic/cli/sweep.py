"""The options that make many runs of one `mosaic run`: --seeds, --sweep, --max-parallel."""

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from mosaic.catalog.request import SHORT, RunOptions
from mosaic.catalog.typed_settings import parse_value
from mosaic.cli.connection import connected, host_of, seen_from_here
from mosaic.cli.run_program import refuse_program_options
from mosaic.cli.settings import parse_settings
from mosaic.cli.verb import BadUsage, count
from mosaic.model.errors import ExperimentTaken, MosaicError
from mosaic.model.experiment import read_document, run_count
from mosaic.model.names import VALID, is_worker_name
from mosaic.model.states import RunState
from mosaic.present.scores import count as counted

if TYPE_CHECKING:
    from mosaic.client import ExperimentRuns, Run, TrainerClient

MANY = 1000  # runs that are started without --yes
_RANGE = re.compile(r"(\d{1,18})(?:-(\d{1,18}))?")


def add_sweep_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--seeds",
        default="",
        metavar="SEEDS",
        help="a run for each seed: 0-9, 0,1,5 or 0-4,10; --name then names the experiment",
    )
    parser.add_argument(
        "--sweep",
        action="append",
        default=[],
        metavar="key=V1,V2,…",
        help="a run for each of these values; repeat for every combination",
    )
    parser.add_argument("--max-parallel", type=count, default=0, metavar="N", help="at most N of the runs at a time")
    parser.add_argument("--yes", action="store_true", help=f"start more than {MANY:,} runs without asking")


def is_sweep(args: argparse.Namespace) -> bool:
    return bool(args.seeds or args.sweep)


def refuse_sweep_options(args: argparse.Namespace) -> None:
    """For a single run."""
    if args.max_parallel:
        raise BadUsage("--max-parallel needs several runs: add --seeds 0-4 or --sweep key=V1,V2")


def parse_seeds(text: str) -> list[int]:
    """`0-4,10` → `[0, 1, 2, 3, 4, 10]`."""
    seeds: list[int] = []
    for part in text.split(",") if text else []:
        found = _RANGE.fullmatch(part.strip())
        first, last = (int(found[1]), int(found[2] or found[1])) if found else (1, 0)
        if first > last or last - first >= 1_000_000:
            raise BadUsage(f"--seeds {text}: '{part}' is not a seed or a range of seeds, such as 0-9 or 0,1,5")
        seeds += range(first, last + 1)
    if len(set(seeds)) < len(seeds):
        raise BadUsage(f"--seeds {text}: a seed is given twice")
    return seeds


def parse_axes(arguments: Sequence[str]) -> dict[str, list[Any]]:
    """`["lr=1e-4,3e-4", "algo=ppo,dqn"]` → `{"lr": [0.0001, 0.0003], "algo": ["ppo", "dqn"]}`."""
    axes: dict[str, list[Any]] = {}
    for argument in arguments:
        key, equals, text = argument.partition("=")
        key = SHORT.get(key, key)
        if not equals or not text or not all(key.split(".")):
            raise BadUsage(f"--sweep {argument}: write the setting and its values: --sweep learning_rate=1e-4,3e-4")
        if key == "seed":
            raise BadUsage(f"--sweep {argument}: seeds have an option of their own: --seeds {text}")
        if key in axes:
            raise BadUsage(f"--sweep {key}: given twice; list all values in one: --sweep {key}=V1,V2")
        axes[key] = [parse_value(value) for value in split_values(text)]
        if "" in axes[key]:
            raise BadUsage(f"--sweep {argument}: a value is empty")
    return axes


def split_values(text: str) -> Iterator[str]:
    """The parts between commas that are not inside brackets or quotes: `[64,64],[32,32]` has two."""
    depth, start, quoted = 0, 0, False
    for at, sign in enumerate(text):
        quoted ^= sign == '"'
        depth += 0 if quoted else (sign in "[{") - (sign in "]}")
        if sign == "," and not depth and not quoted:
            yield text[start:at]
            start = at + 1
    yield text[start:]


def document_of(args: argparse.Namespace, options: RunOptions) -> dict[str, Any]:
    """The experiment of the arguments of `mosaic run`."""
    if args.program or args.script or not args.worker:
        raise BadUsage("--seeds and --sweep need a worker: mosaic run WORKER key=value --seeds 0-4")
    if args.idempotency_key:
        raise BadUsage("--idempotency-key is for one run; submitting an experiment again adds only what is missing")
    refuse_program_options(args)
    for option in ("env_of", "set", "no_observe"):
        if getattr(args, option):
            raise BadUsage(f"--{option.replace('_', '-')} cannot be combined with --seeds or --sweep")
    worker, _, variant = args.worker.partition("@")
    return read_document(
        {
            "worker": worker,
            "variant": variant,
            "base": parse_settings(args.settings),
            "axes": parse_axes(args.sweep),
            "seeds": parse_seeds(args.seeds),
            "max_parallel": args.max_parallel,
            "options": _given(options),
        }
    )


def _given(options: RunOptions) -> dict[str, Any]:
    """The options of each run that were given. `--cpus 0` is one; the name is the experiment's."""
    found = {option.name: getattr(options, option.name) for option in fields(options) if option.name != "name"}
    return {name: value for name, value in found.items() if value or (name == "cpus" and value is not None)}


def run_sweep(args: argparse.Namespace, options: RunOptions) -> int:
    """`mosaic run` with --seeds or --sweep. `options`: of each run."""
    document = document_of(args, options)
    if args.name and not is_worker_name(args.name):
        raise BadUsage(f"--name {args.name}: it names an experiment. {VALID}")
    return start(args, args.name, document)


def start(args: argparse.Namespace, name: str, document: dict[str, Any], retry_faulted: bool = False) -> int:
    """Submit what is missing, then return, wait or follow. An empty name: a new experiment."""
    refuse_many(run_count(document), args.yes)
    with connected(args) as client:
        if not args.json:
            print(f"{counted(run_count(document), 'run')}: {describe(document)}.", file=sys.stderr, flush=True)
        if name:
            begun = client.run_experiment(name, document, retry_faulted=retry_faulted)
        else:
            begun = _run_new(client, document)
        return report(client, begun, args)


def report(client: "TrainerClient", begun: "ExperimentRuns", args: argparse.Namespace) -> int:
    from mosaic.cli.follow_group import follow_group, wait_group

    if not args.json:
        print(seen_from_here(_begun(begun), host_of(args)), flush=True)
    if args.detach:
        if args.json:
            added = {"experiment": begun.name, "added": list(begun.added)}
            print(json.dumps({**added, "runs": [run.to_dict() for run in begun.runs]}, indent=1))
        return 0
    return wait_group(client, begun.name) if args.json else follow_group(client, begun.name)


def _begun(begun: "ExperimentRuns") -> str:
    added = set(begun.added)
    kept = [run for run in begun.runs if run.run_id not in added]
    what = f"{counted(len(added), 'run')} added" if added else "nothing to add"
    what += f", {len(kept):,} existed already" if kept else ""
    look = f"Look at it with: mosaic experiment show {begun.name}"
    return "\n".join([f"Experiment {begun.name}: {what}. {look}", *_kept_words(begun, kept)])


def _kept_words(begun: "ExperimentRuns", kept: "Sequence[Run]") -> Iterator[str]:
    """What a reader may not expect: runs that failed are not started again, and those that the file lacks stay."""
    states = Counter(run.state for run in kept)
    ended = [f"{states[state]:,} {state}" for state in (RunState.FAULTED, RunState.CANCELLED) if states[state]]
    if ended:
        yield f"Of these, {' and '.join(ended)}. To continue them: mosaic experiment resume {begun.name}"
    if others := begun.others:
        live = sum(not run.state.is_over for run in others)
        still = f", {live:,} of them live" if live else ""
        yield f"It also has {counted(len(others), 'run')} with values or seeds not listed here{still}; they stay."


def describe(document: dict[str, Any]) -> str:
    """`2 × algo, 5 seeds`."""
    parts = [f"{len(values)} × {key}" for key, values in document["axes"].items()]
    seeds = len(document["seeds"])
    return ", ".join([*parts, *([counted(seeds, "seed")] if seeds else [])]) or "nothing varies"


def refuse_many(runs: int, is_confirmed: bool) -> None:
    if runs > MANY and not is_confirmed:
        raise MosaicError(f"These are {runs:,} runs. Add --yes to start more than {MANY:,}.")


def _run_new(client: "TrainerClient", document: dict[str, Any]) -> "ExperimentRuns":
    """Run an experiment under a name that is not used yet."""
    known = {experiment.name for experiment in client.experiments()}
    stem = _stem(document)
    numbers = (n for n in range(1, 100_000) if f"{stem}-{n}" not in known)
    for n in numbers:
        try:
            return client.run_experiment(f"{stem}-{n}", document, is_new=True)
        except ExperimentTaken:
            continue  # by another command, a moment ago
    raise MosaicError("No name is left. Choose one with --name.")


def _stem(document: dict[str, Any]) -> str:
    words = [document["worker"], *(document["base"].get(key) for key in ("algo", "env_id"))]
    text = re.sub(r"[^\w.-]+", "-", "-".join(word for word in words if isinstance(word, str) and word))
    return text[:60].strip("-") or "experiment"
