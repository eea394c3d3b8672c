"""A real llama.cpp server with a tiny random model, for tests.

    make .venv-llm-server/.ready
    .venv-llm-server/bin/python workers/llm_worker/tests/server/serve.py --port 0 --ready-file /tmp/llm.json

The ready file appears when the server answers: {"base_url": "http://127.0.0.1:41234/v1", "model": "tiny", "pid": 123}.
It ends with SIGTERM, or with the process that started it (--with-parent).
"""

import argparse
import ctypes
import json
import os
import signal
import sys
import tempfile
import threading
from pathlib import Path

import xllamacpp
from tiny_model import CONTEXT, write_model

PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG
SLOTS = 4


def main() -> int:
    args = _parse()
    if args.with_parent:
        _end_with_parent()
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    with tempfile.TemporaryDirectory(prefix="mosaic-llm-server-") as folder:
        model = Path(folder, "tiny.gguf")
        write_model(model, args.seed)
        server = start(model, args)
        ready = {"base_url": f"{server.listening_address}/v1", "model": args.model, "pid": os.getpid()}
        _write_whole(Path(args.ready_file), json.dumps(ready) + "\n")
        print(ready["base_url"], flush=True)
        while not stop.wait(3600):
            pass
    # The server's threads cannot be joined from Python.
    os._exit(0)


def start(model: Path, args: argparse.Namespace) -> xllamacpp.Server:
    params = xllamacpp.CommonParams()
    params.model.path = str(model)
    params.model_alias = {args.model}
    params.hostnames = ["127.0.0.1"]
    params.port = args.port
    params.n_ctx = CONTEXT * SLOTS
    params.n_parallel = SLOTS
    params.n_gpu_layers = 0
    params.warmup = False
    params.endpoint_props = True
    params.verbosity = -1
    params.cpuparams.n_threads = 1
    params.cpuparams_batch.n_threads = 1
    if args.api_key_file:
        params.api_keys = [Path(args.api_key_file).read_text().strip()]
    return xllamacpp.Server(params)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="A real llama.cpp server with a tiny random model, for tests.")
    parser.add_argument("--port", type=int, default=0, help="0: any free port")
    parser.add_argument("--ready-file", required=True, metavar="FILE", help="written when the server answers")
    parser.add_argument("--model", default="tiny", help="the name under which the model is served")
    parser.add_argument("--seed", type=int, default=0, help="of the random weights")
    parser.add_argument(
        "--api-key-file", default="", metavar="FILE", help="the key that clients must send; default none"
    )
    parser.add_argument("--with-parent", action="store_true", help="end when the process that started it ends")
    return parser.parse_args()


def _end_with_parent() -> None:
    parent = os.getppid()
    ctypes.CDLL(None, use_errno=True).prctl(PARENT_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit(1)  # it ended before that call


def _write_whole(path: Path, text: str) -> None:
    temp = path.with_name(f".{path.name}.tmp")
    temp.write_text(text)
    temp.replace(path)


if __name__ == "__main__":
    sys.exit(main())
