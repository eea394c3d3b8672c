"""`mosaic tensorboard`: start TensorBoard with runs under their names."""

import argparse
import os
import shlex
from typing import TYPE_CHECKING

from mosaic.cli.connection import connected, refuse_host
from mosaic.cli.runs import NEWEST
from mosaic.cli.verb import RUN_HELP, BadUsage, add_verb, count
from mosaic.model.errors import MosaicError
from mosaic.model.rundir import StateRoot
from mosaic.present.scores import count as count_of

if TYPE_CHECKING:
    from mosaic.cli.verb import Verbs
    from mosaic.client import Run, TrainerClient

FIRST_PORT = 6006  # client/tensorboard.py is imported only when it is needed


def add_verbs(verbs: "Verbs") -> None:
    parser = add_verb(
        verbs,
        "tensorboard",
        open_board,
        "show runs in TensorBoard",
        "mosaic tensorboard\nmosaic tensorboard 01JCQ 01JCR --port 7007\nmosaic tensorboard --all --print",
    )
    parser.add_argument("runs", metavar="RUN", nargs="*", help=f"{RUN_HELP} (default: the newest {NEWEST} runs)")
    parser.add_argument("--all", action="store_true", help="all runs that have TensorBoard files")
    parser.add_argument(
        "--port", type=count, metavar="N", help=f"the port (default: the first free one from {FIRST_PORT})"
    )
    parser.add_argument("--print", action="store_true", help="only print the command")


def open_board(args: argparse.Namespace) -> int:
    from mosaic.client.tensorboard import Board, may_have_curves

    refuse_host(args, "tensorboard")
    if args.runs and args.all:
        raise BadUsage("name runs or give --all, not both")
    with connected(args) as client:
        runs = [run for run in chosen(client, args) if run.run_dir and may_have_curves(run)]
    if not runs:
        raise MosaicError("None of these runs has TensorBoard files. List all runs with: mosaic runs --all")
    board = Board.of(
        StateRoot.from_environment(), runs, "all" if args.all else "" if args.runs else "newest", args.port
    )
    if not args.print:
        print(f"{count_of(len(runs), 'run')} at {board.url} (press Ctrl-C to stop)", flush=True)
        os.execve(board.command[0], board.command, board.environment())
    print(shlex.join(board.command))
    return 0


def chosen(client: "TrainerClient", args: argparse.Namespace) -> "list[Run]":
    if args.runs:
        return [client.get_run(reference) for reference in args.runs]
    return list(client.list_runs((), 0 if args.all else NEWEST).runs)
