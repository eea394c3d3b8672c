"""`mosaic eval compare`: evaluation runs side by side, on the seeds that they have in common."""

import argparse
import json
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from mosaic_sdk.results.summary import EvalResults

from mosaic.cli.connection import connected, host_of
from mosaic.cli.eval_results import read_played
from mosaic.cli.eval_table import render
from mosaic.cli.verb import RUN_HELP, add_json, add_verb
from mosaic.model.errors import MosaicError, UnknownRun
from mosaic.model.nearest import did_you_mean
from mosaic.present.eval_results import Played, seeds_of
from mosaic.present.text import printable

if TYPE_CHECKING:
    from mosaic.cli.verb import Verbs
    from mosaic.client import Run, TrainerClient

EXAMPLES = """
mosaic eval compare last                     the operators of one evaluation with each other
mosaic eval compare last last~1              two evaluations, on the seeds that both have played
mosaic eval compare monday:ppo tuesday:ppo   one operator of each
"""
DETAILS = "Episodes on equal seeds are paired. Only evaluations of the same environment can be compared."
SHORT_ID = 13


class Contestant(NamedTuple):
    """One operator of one run, and what it is called in the comparison."""

    label: str
    played: Played
    operator: str


def add_verbs(verbs: "Verbs") -> None:
    parser = add_verb(verbs, "compare", compare_runs, "compare evaluations on equal seeds", EXAMPLES, DETAILS)
    add_options(parser)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", metavar="RUN[:OPERATOR]", nargs="+", help=f"{RUN_HELP}; with the name of an operator")
    add_json(parser)


def compare_runs(args: argparse.Namespace) -> int:
    with connected(args) as client:
        found = comparison(client, args.runs, is_remote=bool(host_of(args)))
    print(json.dumps(found, indent=1) if args.json else _text(found))
    return 0


def comparison(client: "TrainerClient", references: list[str], is_remote: bool = False) -> dict[str, Any]:
    """The document that --json prints: the summary of an evaluation, of the chosen operators, and the runs."""
    chosen = [_find(client, reference) for reference in references]
    runs = {run.run_id: read_played(client, run, is_remote) for run, _ in chosen}
    contestants = _contestants([(runs[run.run_id], operator) for run, operator in chosen])
    _refuse_one(contestants)
    _refuse_other_envs(list(runs.values()))
    found = _results(contestants).summary()
    _refuse_unpaired(found)
    about = [{"run_id": it.run.run_id, "name": it.run.name, "env_id": it.env} for it in runs.values()]
    ledger = {it.label: it.played.ledger[it.operator] for it in contestants if it.operator in it.played.ledger}
    return {"runs": about, **found, "ledger": ledger}


def _find(client: "TrainerClient", reference: str) -> "tuple[Run, str]":
    """The run, and the operator after the colon; a name of a run may have a colon in it."""
    try:
        return client.get_run(reference), ""
    except UnknownRun:
        run, colon, operator = reference.rpartition(":")
        if not colon:
            raise
        return client.get_run(run), operator


def _contestants(chosen: list[tuple[Played, str]]) -> list[Contestant]:
    runs = {played.run.run_id: played for played, _ in chosen}
    shared = Counter(played.run.name for played in runs.values())
    found = {}
    for played, wanted in chosen:
        run = played.run
        title = run.name if run.name and shared[run.name] == 1 else run.run_id[:SHORT_ID]
        for operator in _wanted(played, wanted):
            if len(runs) == 1:
                label = operator or title
            else:
                label = f"{title}:{operator}" if operator and len(played.operators) > 1 else title
            found[run.run_id, operator] = Contestant(label, played, operator)
    return list(found.values())


def _wanted(played: Played, operator: str) -> list[str]:
    known = played.operators
    name = printable(played.run.name) or played.run.run_id
    if not known:
        raise MosaicError(f"Run {name} has no stored episode. Its state is {played.run.state}.")
    if operator and operator not in known:
        named = [each for each in known if each]
        choices = did_you_mean(operator, named) or (f"Choose from: {', '.join(named)}." if named else "")
        raise MosaicError(f"Run {name} has no operator '{operator}'. {choices}".rstrip())
    return [operator] if operator else known


def _results(contestants: list[Contestant]) -> EvalResults:
    labels = {(it.played.run.run_id, it.operator): it.label for it in contestants}
    runs = {it.played.run.run_id: it.played for it in contestants}
    found = EvalResults(
        run_id=next(iter(runs)),
        env_id=next((played.env for played in runs.values() if played.env), ""),
        mode="compare",
        seeds=seeds_of(row for played in runs.values() for row in played.rows),
        operators={it.label: it.played.about(it.operator) for it in contestants},
        worker="",
    )
    for run_id, played in runs.items():
        title = f"{played.run.name or run_id[:SHORT_ID]}: " if len(runs) > 1 else ""
        for row in played.rows:
            label = labels.get((run_id, row["operator"]))
            if label is not None:
                # The lanes of two runs may have the same name.
                lane = f"{title}{row['lane']}" if title else row["lane"]
                found.add({**row, "operator": label, "lane": lane})
        for text in played.warnings:
            found.warn(f"{title}{text}")
    return found


def _refuse_one(contestants: list[Contestant]) -> None:
    if len(contestants) == 1:
        it = contestants[0]
        raise MosaicError(
            f"There is only one operator in the comparison: {it.label}. Name another evaluation to compare it with: "
            f"mosaic eval compare {it.played.run.run_id} RUN"
        )


def _refuse_other_envs(runs: list[Played]) -> None:
    envs = {played.env: played.run.name or played.run.run_id for played in runs if played.env}
    if len(envs) > 1:
        each = ", ".join(f"{printable(env)} ({printable(name)})" for env, name in envs.items())
        raise MosaicError(f"These runs evaluate different environments, whose returns cannot be compared: {each}.")


def _refuse_unpaired(found: dict[str, Any]) -> None:
    pairs = found["comparisons"]
    if pairs and not any(pair["n"] for pair in pairs):
        raise MosaicError(
            f"{pairs[0]['a']} and {pairs[0]['b']} have no seed in common, so their returns cannot be paired. "
            "Evaluate both on the same seeds, for instance with: mosaic eval RUN --episodes 20 --seed 1000000"
        )


def _text(found: dict[str, Any]) -> str:
    heading = f"{printable(found['env_id'])}, " if found["env_id"] else ""
    return f"{heading}{len(found['seeds'])} seeds\n\n{render(found)}"
