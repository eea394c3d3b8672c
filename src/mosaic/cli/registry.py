"""`mosaic registry rebuild`: restore the list of runs from backups and from the records of the runs."""

import argparse
import subprocess
import sys
from typing import TYPE_CHECKING

from mosaic.cli.connection import refuse_host
from mosaic.cli.verb import add_json, add_verb
from mosaic.model.rundir import StateRoot

if TYPE_CHECKING:
    from mosaic.cli.verb import Verbs

EXAMPLES = """
mosaic registry rebuild
mosaic registry rebuild --json
"""
DETAILS = """A daemon does this itself when it starts and finds the registry missing, damaged or too old.
Runs continue meanwhile, and the next daemon finds those that are live. Nothing is deleted: the old
file is kept as registry.db.damaged-TIME."""


def add_verbs(verbs: "Verbs") -> None:
    parser = add_verb(verbs, "registry", rebuild, "repair the list of runs", EXAMPLES, DETAILS)
    actions = parser.add_subparsers(metavar="ACTION", title="actions", required=True)
    summary = "rebuild registry.db from its newest backup and the records of the runs"
    parser = add_verb(actions, "rebuild", rebuild, summary, EXAMPLES, DETAILS)
    add_json(parser)


def rebuild(args: argparse.Namespace) -> int:
    refuse_host(args, "registry rebuild")
    root = StateRoot.from_environment()
    # A process of its own: only the daemon's part of MOSAIC opens the registry.
    command = [sys.executable, "-m", "mosaic.daemon.restore", "--root", str(root.path)]
    sys.stdout.flush()
    return 1 if subprocess.run([*command, *(["--json"] if args.json else [])]).returncode else 0
