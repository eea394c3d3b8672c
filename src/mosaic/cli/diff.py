"""`mosaic diff`: in what two runs differ."""

import argparse
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mosaic.cli.connection import connected, host_of
from mosaic.cli.runs import short_id
from mosaic.cli.table import clip, render_table
from mosaic.cli.terminal_text import paint
from mosaic.cli.verb import RUN_HELP, BadUsage, add_json, add_verb
from mosaic.present.run_diff import Group, RunDiff, compare_runs
from mosaic.present.settings_diff import SettingRow
from mosaic.present.text import printable

if TYPE_CHECKING:
    from mosaic.cli.verb import Verbs
    from mosaic.client import Run

WIDEST = 60
EXAMPLES = """
mosaic diff 01JCQ 01JCR
mosaic diff last~1 last --all                          what is equal, too
mosaic diff 01JCQ 01JCR --json
"""
DETAILS = """\
Compared are settings, seeds, operators, code (versions and git commits), packages, environment variables and the
machine."""


def add_verbs(verbs: "Verbs") -> None:
    parser = add_verb(verbs, "diff", diff_runs, "show in what two runs differ", EXAMPLES, DETAILS)
    parser.add_argument("runs", metavar="RUN", nargs="+", help=RUN_HELP)
    parser.add_argument("--all", action="store_true", help="show what is equal, too")
    add_json(parser)


def diff_runs(args: argparse.Namespace) -> int:
    if len(args.runs) != 2:
        raise BadUsage(f"name two runs to compare, not {len(args.runs)}. See: mosaic diff --help")
    with connected(args) as client:
        runs = [client.get_run(reference) for reference in args.runs]
    host = host_of(args)
    why = f"is on {host}, where its files cannot be read" if host else "has no provenance.json in its folder"
    diff = compare_runs(runs, [None if host else _provenance(run) for run in runs], why)
    print(_as_json(runs, diff, args.all) if args.json else _as_text(runs, diff, args.all))
    return 0


def _provenance(run: "Run") -> "dict[str, object] | None":
    from mosaic.model.rundir import RunDir
    from mosaic.present.provenance_rows import MOST_BYTES
    from mosaic.present.run_files import read_run_json

    return read_run_json(RunDir(run.run_dir).provenance, MOST_BYTES) if run.run_dir else None


def _as_json(runs: "Sequence[Run]", diff: RunDiff, is_all: bool) -> str:
    groups = {
        group.title: [{"key": row.key, "values": row.values, "differs": row.differs} for row in _rows(group, is_all)]
        for group in diff.groups
    }
    found = {
        "runs": [{"run_id": run.run_id, "name": run.name} for run in runs],
        "differ": not diff.is_empty,
        "groups": {title: rows for title, rows in groups.items() if rows},
        "problems": diff.problems,
    }
    return json.dumps(found, indent=1)


def _as_text(runs: "Sequence[Run]", diff: RunDiff, is_all: bool) -> str:
    sections = [_section(group, runs, _rows(group, is_all)) for group in diff.groups if _rows(group, is_all)]
    if diff.is_empty:
        sections.append(_equal(runs, diff))
    sections += [paint(problem, "yellow") for problem in diff.problems]
    return "\n\n".join(sections)


def _rows(group: Group, is_all: bool) -> Sequence[SettingRow]:
    return group.rows if is_all else group.differing


def _section(group: Group, runs: "Sequence[Run]", rows: Sequence[SettingRow]) -> str:
    names = [f"{clip(printable(run.name), 24)} {short_id(run.run_id)}" for run in runs]
    marks = {True: "≠ ", False: "  "} if len(rows) > len(group.differing) else {True: "", False: ""}
    cells = [(marks[row.differs] + row.key, *(clip(value, WIDEST) for value in row.values)) for row in rows]
    return render_table((group.title.upper(), *names), cells)


def _equal(runs: "Sequence[Run]", diff: RunDiff) -> str:
    if runs[0].run_id == runs[1].run_id:
        return f"Both are run {runs[0].run_id}."
    counts = ", ".join(f"{group.title} ({len(group.rows)})" for group in diff.groups)
    return f"Nothing differs. Compared: {counts}." if counts else "There was nothing to compare."
