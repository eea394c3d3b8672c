"""`mosaic model`: trained models, for other people."""

import argparse
import json
from typing import TYPE_CHECKING

from mosaic.cli.connection import connected, refuse_host
from mosaic.cli.verb import RUN_HELP, add_json, add_verb
from mosaic.model.rundir import StateRoot

if TYPE_CHECKING:
    from mosaic.cli.verb import Verbs
    from mosaic.exports.model import Model

EXAMPLES = """
mosaic model export 01JCQ my-model
mosaic model export last my-model --checkpoint last --force
mosaic model export 01JCQ my-model --as-is --json
"""
DETAILS = """The folder has the weights (safetensors if the run's worker can write them, else the
checkpoint as it is), the settings, the evaluations, a video if there is one, and a model
card, README.md. Nothing is uploaded."""


def add_verbs(verbs: "Verbs") -> None:
    parser = add_verb(verbs, "model", export, "export trained models", "mosaic model export 01JCQ my-model")
    actions = parser.add_subparsers(metavar="ACTION", title="actions", required=True)
    parser = add_verb(
        actions,
        "export",
        export,
        "write a run's model as a folder for the Hugging Face Hub",
        EXAMPLES,
        DETAILS,
    )
    parser.add_argument("run", metavar="RUN", help=RUN_HELP)
    parser.add_argument("folder", metavar="FOLDER", help="the folder to write; it must not exist")
    parser.add_argument(
        "--checkpoint", metavar="NAME", default="", help="best, last, or the name of one (default: best, else last)"
    )
    parser.add_argument("--as-is", action="store_true", help="copy the checkpoint instead of converting it")
    parser.add_argument("--force", action="store_true", help="replace a folder that an earlier export wrote")
    add_json(parser)


def export(args: argparse.Namespace) -> int:
    from mosaic.cli.install_progress import progress
    from mosaic.exports.model import export_model

    refuse_host(args, "model export")
    root = StateRoot.from_environment()
    with connected(args) as client, progress() as shown:
        run = client.get_run(args.run)
        options = {"checkpoint": args.checkpoint, "as_is": args.as_is, "force": args.force}
        model = export_model(client, root, run, args.folder, **options, tell=shown.phase)
    print(json.dumps(model.to_dict(), indent=1) if args.json else describe(model, args.folder))
    return 0


def describe(model: "Model", folder: str) -> str:
    how = "weights converted by its worker" if model.is_converted else "checkpoint copied as it is"
    score = f"mean return {model.scores[0].text} ({model.scores[0].kind})" if model.scores else "no results"
    lines = [f"Wrote {folder}: {how}, {score}, {model.clip or 'no video'}.", f"Files: {', '.join(model.files)}"]
    return "\n".join([*lines, f"Publish it with: hf upload USER/MODEL {folder}"])
