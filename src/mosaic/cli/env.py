"""`mosaic env`: environments for your own scripts, as opposed to those of workers."""

import argparse
import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from mosaic.cli.connection import refuse_host
from mosaic.cli.table import render_table
from mosaic.cli.verb import add_json, add_verb
from mosaic.model.rundir import StateRoot
from mosaic.present.text import size

if TYPE_CHECKING:
    from mosaic.catalog.script_envs import ScriptEnvironment
    from mosaic.cli.verb import Verbs

EXAMPLES = """
mosaic env create sb3 --with stable-baselines3 --with "gymnasium[box2d]"
mosaic env create paper -r requirements.txt --python 3.10
mosaic env create project --from uv.lock
mosaic env list
mosaic run --env sb3 python train.py
"""
MOST_WORDS = 60  # characters of a table's last column


def add_verbs(verbs: "Verbs") -> None:
    parser = add_verb(verbs, "env", list_environments, "create environments for your own scripts", EXAMPLES)
    actions = parser.add_subparsers(metavar="ACTION", title="actions", required=True)
    _add_create(actions)
    add_json(add_verb(actions, "list", list_environments, "list the environments for scripts", "mosaic env list"))
    parser = add_verb(actions, "show", show_environment, "show the packages of an environment", "mosaic env show sb3")
    parser.add_argument("name", metavar="ENV", help="an environment that `mosaic env list` shows")
    add_json(parser)
    parser = add_verb(actions, "remove", remove_environment, "delete an environment", "mosaic env remove sb3")
    parser.add_argument("name", metavar="ENV", help="an environment that `mosaic env list` shows")


def _add_create(actions: "Verbs") -> None:
    parser = add_verb(actions, "create", create_environment, "create an environment for scripts", EXAMPLES)
    parser.add_argument("name", metavar="NEW", help="its name, for: mosaic run --env NEW python FILE")
    add_package_options(parser)
    parser.add_argument(
        "--from", dest="lock", default="", metavar="uv.lock", help="install what this lock file contains"
    )
    parser.add_argument(
        "--python",
        default="",
        metavar="3.X|PATH",
        help="use this Python, 3.9 or later (default: the one that runs MOSAIC)",
    )
    parser.add_argument("--torch", default="", metavar="cpu|cuda|cu128", help="install this build of torch")
    parser.add_argument("--replace", action="store_true", help="replace an environment of this name")
    add_json(parser)


def add_package_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--with",
        dest="packages",
        action="extend",
        nargs="+",
        default=[],
        metavar="PKG",
        help="install these packages: requirements such as torch==2.13.0, or folders",
    )
    parser.add_argument(
        "-r",
        "--requirements",
        dest="files",
        action="append",
        default=[],
        metavar="FILE",
        help="install what this requirements file lists; repeat for more",
    )


def create_environment(args: argparse.Namespace) -> int:
    from mosaic.catalog.script_envs import EnvRequest, create
    from mosaic.cli.install_progress import progress

    refuse_host(args, "env create")
    request = EnvRequest(
        args.name, tuple(args.packages), tuple(args.files), args.lock, args.python, args.torch, args.replace
    )
    with progress() as shown:
        made, is_new = create(StateRoot.from_environment(), request, shown)
    if args.json:
        print(json.dumps({**_plain(made), "is_new": is_new}, indent=1))
        return 0
    done = "is ready" if is_new else "exists already with these packages, nothing has changed"
    print(f"The environment {made.name} (Python {made.version}) {done}: {size(made.size_bytes)}.")
    print(f"Run a script in it with: mosaic run --env {made.name} python FILE")
    return 0


def list_environments(args: argparse.Namespace) -> int:
    from mosaic.catalog.script_envs import script_environments

    refuse_host(args, "env list")
    found = script_environments(StateRoot.from_environment())
    if args.json:
        print(json.dumps([_plain(env) for env in found], indent=1))
    elif not found:
        print("There is no environment for scripts yet. Create one with: mosaic env create NEW --with PKG")
    else:
        rows = [(env.name, env.version, size(env.size_bytes), _cut(env.made_from)) for env in found]
        print(render_table(("ENVIRONMENT", "PYTHON", "SIZE", "CREATED FROM"), rows))
    return 0


def show_environment(args: argparse.Namespace) -> int:
    from mosaic.catalog.provenance import freeze
    from mosaic.catalog.script_envs import find_environment

    refuse_host(args, "env show")
    found = find_environment(StateRoot.from_environment(), args.name)
    packages = freeze(found.environment)
    if args.json:
        print(json.dumps({**_plain(found), "installed": packages}, indent=1))
        return 0
    print(f"{found.name}: Python {found.version}, {found.python}")
    print(f"created from {found.made_from or 'nothing that was recorded'}\n")
    print("\n".join(packages))
    return 0


def remove_environment(args: argparse.Namespace) -> int:
    from mosaic.catalog.script_envs import remove
    from mosaic.cli.install_progress import progress

    refuse_host(args, "env remove")
    with progress() as shown:
        remove(StateRoot.from_environment(), args.name, shown)
    print(f"Removed the environment {args.name}. The runs that used it and their results are kept.")
    return 0


def _plain(env: "ScriptEnvironment") -> dict[str, Any]:
    return {**asdict(env), "python": str(env.python)}


def _cut(text: str) -> str:
    return text if len(text) <= MOST_WORDS else f"{text[: MOST_WORDS - 1]}…"
