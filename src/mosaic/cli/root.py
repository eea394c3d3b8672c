"""`mosaic root adopt`: use a state folder that was copied, moved or restored."""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mosaic.cli.connection import refuse_host
from mosaic.cli.verb import add_json, add_verb
from mosaic.model import durable
from mosaic.model.errors import BadRoot
from mosaic.model.home import refuse_odd
from mosaic.model.place import is_unused
from mosaic.model.root import NETWORK_FILESYSTEMS, filesystem_of
from mosaic.model.rundir import StateRoot
from mosaic.present.scores import count as count_of

if TYPE_CHECKING:
    from mosaic.cli.verb import Verbs

EXAMPLES = """
mosaic root adopt                                   as moved or as a copy, whichever it is
MOSAIC_HOME=/data/copy mosaic root adopt --copy
MOSAIC_HOME=/data/new-place mosaic root adopt --moved --json
"""
SPLIT_EXAMPLES = "MOSAIC_HOME=/nfs/me/mosaic mosaic root split /var/lib/me/mosaic"
SPLIT_DETAILS = """For a state folder that the nodes of a cluster see, on NFS, Lustre or the like: registry, telemetry,
token and socket are kept in FOLDER on this machine's own disk; runs, checkpoints, logs and environments in the state
folder. If FOLDER is lost, the list of runs is rebuilt from the state folder, and the telemetry from the runs' logs."""
DETAILS = """A state folder knows where it was made. After cp, rsync, mv or a restore from a backup no daemon serves it
until it is adopted, because its runs and its daemon's address may be those of the original.

--moved  The same folder under a new path, and the old path is free. Live runs continue; for them, a link at the old
         path leads to the new one.
--copy   Anything else. Runs that were live or waiting when the copy was made become FAULTED; no process is
         signalled, and the original is not touched. Also for a folder from another machine or a backup."""


def add_verbs(verbs: "Verbs") -> None:
    parser = add_verb(verbs, "root", adopt, "adopt a copied or moved state folder", "mosaic root adopt --copy")
    actions = parser.add_subparsers(metavar="ACTION", title="actions", required=True)
    parser = add_verb(actions, "adopt", adopt, "use a copied, moved or restored state folder", EXAMPLES, DETAILS)
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--moved", action="store_true", help="only if the folder was moved; its live runs continue")
    how.add_argument("--copy", action="store_true", help="as a copy; its live runs become FAULTED")
    add_json(parser)
    summary = "keep the databases of a new state folder on a local disk"
    parser = add_verb(actions, "split", split, summary, SPLIT_EXAMPLES, SPLIT_DETAILS)
    parser.add_argument("folder", metavar="FOLDER", help="on a disk of this machine; it is created")


def split(args: argparse.Namespace) -> int:
    refuse_host(args, "root split")
    root = split_root(StateRoot.from_environment(), Path(args.folder))
    print(f"{root.path} keeps its databases in {root.own}.")
    return 0


def split_root(root: StateRoot, folder: Path) -> StateRoot:
    """Record where the databases are to be, before there are any."""
    if root.own or not is_unused(root):
        raise BadRoot(f"{root.path} has databases already. Set MOSAIC_HOME to a new folder to split it.")
    refuse_odd(folder)
    if not folder.is_absolute():
        raise BadRoot(f"'{folder}' is not an absolute path.")
    if (kind := filesystem_of(folder)) in NETWORK_FILESYSTEMS:
        raise BadRoot(f"{folder} is on a network file system ({kind}), where databases get damaged. Name another.")
    root.path.mkdir(mode=0o700, parents=True, exist_ok=True)
    durable.write_bytes(root.databases, f"{folder}\n".encode())
    return StateRoot(root.path)


def adopt(args: argparse.Namespace) -> int:
    refuse_host(args, "root adopt")
    root = StateRoot.from_environment()
    done = _adopt(root, "moved" if args.moved else "copy" if args.copy else "")
    print(json.dumps(done, indent=1) if args.json else describe(done))
    return 0


def _adopt(root: StateRoot, wanted: str) -> dict[str, Any]:
    # In a process of its own: only the daemon's side of the program writes the registry.
    command = [sys.executable, "-m", "mosaic.daemon.adoption", "--root", str(root.path)]
    ended = subprocess.run([*command, *(("--as", wanted) if wanted else ())], capture_output=True, text=True, cwd="/")
    if ended.returncode:
        raise BadRoot(ended.stderr.strip() or f"The state folder was not adopted (exit code {ended.returncode}).")
    found: dict[str, Any] = json.loads(ended.stdout)
    return found


def describe(done: dict[str, Any]) -> str:
    if not done["as"]:
        return f"{done['root']} is where it was made; there is nothing to adopt."
    lines = [f"{done['root']} is adopted as {'a copy of' if done['as'] == 'copy' else 'moved from'} {done['from']}."]
    if done["faulted"]:
        lines.append(f"FAULTED here, and not touched in the original: {count_of(len(done['faulted']), 'run')}.")
    if done["continue"]:
        lines.append(f"{count_of(len(done['continue']), 'live run')} will be found by the next daemon.")
    if done["link"]:
        lines.append(f"Keep the link {done['link']} until they are over: their processes know only that path.")
    return "\n".join(lines + ([done["warning"]] if done["warning"] else []))
