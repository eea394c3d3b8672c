"""`mosaic doctor`: find problems of this machine's installation, explain them, and fix those that are safe to fix."""

import argparse
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from mosaic.cli.connection import refuse_host
from mosaic.cli.doctor_checks import Finding, Installation, run_checks
from mosaic.cli.doctor_clusters import check_clusters
from mosaic.cli.doctor_nodes import check_nodes
from mosaic.cli.terminal_text import paint
from mosaic.cli.verb import add_json, add_verb
from mosaic.model.errors import MosaicError, NoDaemon
from mosaic.model.rundir import StateRoot
from mosaic.model.states import RunState

if TYPE_CHECKING:
    from mosaic.cli.verb import Verbs
    from mosaic.client import TrainerClient


def add_verbs(verbs: "Verbs") -> None:
    parser = add_verb(
        verbs, "doctor", run_doctor, "find problems and explain how to fix them", "mosaic doctor\nmosaic doctor --fix"
    )
    parser.add_argument("--fix", action="store_true", help="fix the problems that can be fixed safely")
    add_json(parser)


def run_doctor(args: argparse.Namespace) -> int:
    refuse_host(args, "doctor")
    installation = inspect(StateRoot.from_environment())
    findings = [*run_checks(installation), *check_clusters(installation), *check_nodes(installation)]
    fixed = [apply_fix(finding) if args.fix else "" for finding in findings]
    if args.json:
        rows = [{**finding.to_dict(), "fixed": text == "done"} for finding, text in zip(findings, fixed, strict=True)]
        print(json.dumps(rows, indent=1))
    else:
        _print(findings, fixed)
    return 0 if all(text == "done" for text in fixed) else 1


def apply_fix(finding: Finding) -> str:
    """`done`, or why it failed; empty if the problem has no automatic fix."""
    if finding.fix is None:
        return ""
    try:
        finding.fix()
    except OSError as error:
        return f"failed: {error}"
    return "done"


def _print(findings: list[Finding], fixed: list[str]) -> None:
    for finding, text in zip(findings, fixed, strict=True):
        print(f"{paint('✗', 'red')} {paint(finding.what, 'bold')}\n  {finding.why}")
        if finding.remedy:
            automatic = f" ({text})" if text else " (fix it with: mosaic doctor --fix)" if finding.fix else ""
            print(f"  → {finding.remedy}{automatic}")
    if not findings:
        print(f"{paint('✓', 'green')} No problems found.")


def inspect(root: StateRoot) -> Installation:
    """The installation, with the daemon's own report if one answers. No daemon is started."""
    from mosaic.client import TrainerClient

    try:
        with TrainerClient.connect(root, start=False) as client:
            return Installation(root, client.health(), _states(client))
    except NoDaemon:
        return Installation(root)
    except MosaicError as error:
        return Installation(root, refusal=str(error))


def _states(client: "TrainerClient") -> Mapping[str, RunState]:
    return {run.run_id: run.state for run in client.list_runs().runs}
