"""`mosaic show`: everything about one run, as text."""

import argparse
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from mosaic.cli.connection import connected, host_of
from mosaic.cli.show_operators import operator_lines
from mosaic.cli.show_settings import settings_section
from mosaic.cli.terminal_text import STATE_STYLE, paint
from mosaic.cli.verb import RUN_HELP, add_json, add_verb
from mosaic.model.errors import UnknownRun
from mosaic.present import run_facts
from mosaic.present.best_checkpoint import Best, read_best
from mosaic.present.durations import format_duration
from mosaic.present.observed import observed_lines
from mosaic.present.scores import count, has_no_mean, is_evaluation, step_word, trace
from mosaic.present.states import explain
from mosaic.present.text import bar, number, printable

if TYPE_CHECKING:
    from mosaic.cli.verb import Verbs
    from mosaic.client import Run, TrainerClient

MOST_VALUES = 40
MOST_CHILDREN = 12
MOST_PARTS = 100  # runs that are looked at to find the newest ones
NONE: "Mapping[str, Run]" = {}


def add_verbs(verbs: "Verbs") -> None:
    parser = add_verb(
        verbs, "show", show_run, "show everything about one run", "mosaic show 01JCQ\nmosaic show 01JCQ --json"
    )
    parser.add_argument("run", metavar="RUN", help=RUN_HELP)
    add_json(parser)


def show_run(args: argparse.Namespace) -> int:
    with connected(args) as client:
        run = client.get_run(args.run)
        if args.json:
            print(json.dumps(run.to_dict(), indent=1))
            return 0
        relatives, parts = find_relatives(client, run), find_parts(client, run)
        results = eval_results(client, run, is_remote=bool(host_of(args)))
    # The folder of a run on another machine cannot be read.
    best = None if host_of(args) else read_best(run.run_dir)
    print(describe(run, relatives, best, results, parts))
    return 0


def eval_results(client: "TrainerClient", run: "Run", is_remote: bool) -> str:
    """The table of an evaluation of several operators; empty for other runs, whose summary says it all."""
    if not has_no_mean(run):
        return ""
    from mosaic.cli.eval_results import results_of
    from mosaic.cli.eval_table import render

    return f"{paint('results', 'bold')}\n{render(results_of(client, run, is_remote))}"


def find_relatives(client: "TrainerClient", run: "Run") -> "dict[str, Run]":
    """The parent of a run and its first children; deleted runs are left out."""
    found: dict[str, Run] = {}
    for run_id in (run.parent_run_id, *run.children[:MOST_CHILDREN]):
        try:
            if run_id:
                found[run_id] = client.get_run(run_id)
        except UnknownRun:
            continue
    return found


def find_parts(client: "TrainerClient", run: "Run") -> "list[Run]":
    """The newest run of each part of this run, in the order of their names and indices."""
    found: dict[tuple[str, int], Run] = {}
    wanted = run_facts.wanted_parts(run)
    for run_id in reversed(run.children[-MOST_PARTS:] if wanted else ()):
        try:
            child = client.get_run(run_id)
        except UnknownRun:
            continue
        if slot := run_facts.slot(child):
            found.setdefault(slot, child)
        if len(found) == wanted:
            break
    return [found[slot] for slot in sorted(found)]


def describe(
    run: "Run",
    relatives: "Mapping[str, Run]" = NONE,
    best: Best | None = None,
    results: str = "",
    parts: "Sequence[Run]" = (),
) -> str:
    sections = [
        _headline(run),
        _facts(run, relatives, best, parts),
        results,
        _observed(run),
        _history(run),
        _metrics(run),
    ]
    sections += [settings_section(run), _config(run)]
    return "\n\n".join(section for section in sections if section)


def _headline(run: "Run") -> str:
    name = f"{paint(printable(run.name or run.worker_name), 'bold')}  {run.run_id}"
    state, _, explanation = explain(run).partition(": ")
    # The explanation contains only the first line of the reason; the rest may be the end of a traceback.
    more = [printable(line) for line in run.reason.strip().split("\n")[1:]] if run.state.is_over else []
    return "\n".join([name, f"{paint(state, STATE_STYLE[run.state])}: {explanation}", *more])


def _facts(run: "Run", relatives: "Mapping[str, Run]", best: Best | None, parts: "Sequence[Run]") -> str:
    facts = {
        "worker": run.worker_name,
        "origin": printable(run.origin),
        "python": run_facts.python(run),
        "progress": _progress(run),
        f"{step_word(run)}s": run_facts.env_steps(run),
        "returns": _with_trace(run, run_facts.returns(run)),
        "evaluation": _with_trace(run, run_facts.evaluation(run)) if is_evaluation(run) else run_facts.evaluation(run),
        "best": run_facts.best(best),
        "stored": run_facts.stored(run),
        "rejected": _rejected(run),
        "parent": _relative(run.parent_run_id, run.relation, relatives),
        "parts": ("\n" + " " * 13).join(map(run_facts.part, parts)),
        "children": _children(run, relatives),
        "operators": ("\n" + " " * 13).join(operator_lines(run)),
        "requests": run_facts.requests(run),
        "GPUs": run_facts.gpus(run),
        "settings": run_facts.unchecked(run),
        "ran on" if run.state.is_over else "runs on": run_facts.place(run),
        "held by": run.held_by,
        "time limit": format_duration(run.time_limit_s) if run.time_limit_s else "",
        **dict([run_facts.duration(run)]),
        "tags": printable(" ".join(run.tags)),
        "note": ("\n" + " " * 13).join(map(printable, run.note.split("\n"))),
        "experiment": run_facts.experiment(run),
        "attempt": str(run.attempt) if run.attempt > 1 else "",
        "folder": run.run_dir,
    }
    return "\n".join(f"{paint(f'{name:<12}', 'dim')} {value}" for name, value in facts.items() if value)


def _progress(run: "Run") -> str:
    if run.progress is None:
        return ""
    eta = f", {format_duration(run.eta_s)} left" if run.eta_s is not None else ""
    return f"{bar(run.progress, 24)} {run.progress:.0%}{eta}"


def _with_trace(run: "Run", text: str) -> str:
    return f"{trace(run, 40)}  {text}" if text and not has_no_mean(run) else text


def _rejected(run: "Run") -> str:
    rejects = run.summary.rejects
    return f"{count(rejects, 'line')}; see why: mosaic logs {run.run_id} --rejects" if rejects else ""


def _relative(run_id: str, relation: str, relatives: "Mapping[str, Run]") -> str:
    if not run_id:
        return ""
    known = relatives.get(run_id)
    how = run_facts.how_derived(relation)
    name = printable(known.name) if known else "deleted"
    return f"{run_id}  {name}{f'  ({how})' if how else ''}"


def _children(run: "Run", relatives: "Mapping[str, Run]") -> str:
    known = [relatives[child] for child in run.children if child in relatives]
    shown = [child for child in known if not run_facts.slot(child)]
    lines = [f"{child.run_id}  {printable(child.name)}  ({child.relation or 'started from it'})" for child in shown]
    if (left := len(run.children) - len(known)) and not run_facts.wanted_parts(run):
        lines.append(f"… and {left} more")
    return ("\n" + " " * 13).join(lines)


def _history(run: "Run") -> str:
    lines = [
        f"{run_facts.clock(move.at)}  {move.new!s:<10}  {_first_line(move.reason)}".rstrip() for move in run.history
    ]
    return "\n".join([paint("history", "bold"), *lines]) if lines else ""


def _observed(run: "Run") -> str:
    lines = observed_lines(run)
    return "\n".join([paint("observed", "bold"), *lines]) if lines else ""


def _first_line(text: str) -> str:
    return printable(text.splitlines()[0]) if text else ""


def _metrics(run: "Run") -> str:
    # Short paths first: episode/score is more interesting than actor/rpc/replay/sent_rate.
    values = sorted(run.summary.last_values.items(), key=lambda item: (item[0].count("/"), item[0]))
    shown, left = values[:MOST_VALUES], len(values[MOST_VALUES:]) + run.summary.values_left_out
    width = max((len(printable(name)) for name, _ in shown), default=0)
    lines = [f"{printable(name):<{width}}  {number(value)}" for name, value in shown]
    if left:
        lines.append(paint(f"… and {left} more: mosaic show {run.run_id} --json", "dim"))
    return "\n".join([paint("last values", "bold"), *lines]) if lines else ""


def _config(run: "Run") -> str:
    # Of an imported run it says only what is above.
    shown = run.config if not run.origin else None
    return f"{paint('config', 'bold')}\n{json.dumps(shown, indent=1)}" if shown else ""
