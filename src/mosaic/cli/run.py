"""`mosaic run` and `mosaic submit`."""

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mosaic.cli.connection import connected, host_of
from mosaic.cli.durations import parse_duration
from mosaic.cli.follow import follow, wait_quietly
from mosaic.cli.settings import parse_settings
from mosaic.cli.verb import add_json, add_verb, count
from mosaic.model.errors import MosaicError

if TYPE_CHECKING:
    from mosaic.cli.verb import Verbs
    from mosaic.client import Run

RUN_EXAMPLES = """
mosaic run toy steps=500 rate=50
mosaic run cleanrl algo=ppo env=CartPole-v1 seed=1 extras.learning_rate=3e-4
mosaic run cleanrl@jax algo=ppo env=Pong --gpus 1 --gpus-mandatory --time-limit 12h --detach
"""


def add_verbs(verbs: "Verbs") -> None:
    parser = add_verb(verbs, "run", run_worker, "start a worker and follow it", RUN_EXAMPLES)
    parser.add_argument("worker", metavar="WORKER[@VARIANT]", help="a name that `mosaic worker list` shows")
    parser.add_argument("settings", metavar="key=value", nargs="*", help="the worker's settings; dots nest")
    parser.add_argument("--name", default="", help="what listings call it")
    parser.add_argument("--tag", action="append", default=[], metavar="TAG", help="may be given several times")
    parser.add_argument("--gpus", type=count, default=0, metavar="N", help="ask for N GPUs")
    parser.add_argument("--gpus-mandatory", action="store_true", help="wait for them instead of running without")
    parser.add_argument("--time-limit", type=parse_duration, metavar="2h", help="end it after so long")
    parser.add_argument("--detach", action="store_true", help="return at once")
    _add_submit_options(parser)

    examples = "mosaic submit config.json\ngenerate-config | mosaic submit - --json"
    parser = add_verb(verbs, "submit", submit_config, "submit a trainer config and return at once", examples)
    parser.add_argument("config", metavar="CONFIG.json", help="a file, or - for stdin")
    _add_submit_options(parser)


def _add_submit_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--idempotency-key", default="", metavar="KEY", help="two submits with one key are one run")
    add_json(parser)


def run_worker(args: argparse.Namespace) -> int:
    config = build_config(args, module_of(args))
    with connected(args) as client:
        run = client.submit_run(config, args.idempotency_key)
        if args.detach:
            _print_submitted(run, args.json)
            return 0
        return wait_quietly(client, run) if args.json else follow(client, run)


def submit_config(args: argparse.Namespace) -> int:
    text = sys.stdin.read() if args.config == "-" else _read(Path(args.config))
    with connected(args) as client:
        _print_submitted(client.submit_run(text, args.idempotency_key), args.json)
    return 0


def module_of(args: argparse.Namespace) -> str:
    """The module behind WORKER. Another machine's catalog is not ours to read: there the guide's naming counts."""
    name, _, variant = args.worker.partition("@")
    if host_of(args):
        return f"{name.removesuffix('_worker')}_worker.cli"
    from mosaic.catalog.workers import Catalog
    from mosaic.model.rundir import StateRoot

    return Catalog(StateRoot.from_environment()).find(name, variant).module


def build_config(args: argparse.Namespace, module: str) -> dict[str, Any]:
    """The trainer config of one `mosaic run` line."""
    worker: dict[str, Any] = {"module": module, "config": parse_settings(args.settings)}
    if variant := args.worker.partition("@")[2]:
        worker["variant"] = variant
    metadata: dict[str, Any] = {"worker": worker}
    if args.name:
        metadata["run_name"] = args.name
    if args.tag:
        metadata["tags"] = args.tag
    payload: dict[str, Any] = {}
    if args.gpus or args.gpus_mandatory:
        payload["resources"] = {"gpus": {"requested": args.gpus, "mandatory": args.gpus_mandatory}}
    if args.time_limit is not None:
        payload["limits"] = {"time_s": args.time_limit}
    return {"metadata": metadata, "payload": payload}


def _print_submitted(run: "Run", as_json: bool) -> None:
    if as_json:
        print(json.dumps(run.to_dict(), indent=1))
    else:
        print(f"Run {run.run_id} ({run.name}) is {run.state}. Watch it with: mosaic watch {run.run_id}")


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise MosaicError(f"{path} cannot be read: {reason}") from None
