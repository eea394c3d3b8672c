"""The program that installs a worker's environment on a node of a cluster: a job, started in the folder that it needs.

    python -m mosaic.catalog.on_node

It prints its progress in lines that begin with MARK. The last one is JSON: what is installed, or why nothing is.
"""

import json
import os
import signal
import socket
import sys
from dataclasses import asdict, replace
from pathlib import Path

from mosaic.catalog.for_nodes import REQUEST
from mosaic.catalog.install import InstallRequest, install
from mosaic.catalog.progress import Progress
from mosaic.catalog.uv import find_uv
from mosaic.model.errors import MosaicError
from mosaic.model.rundir import StateRoot

MARK = "mosaic: "  # what else a job prints is not ours


class _Told(Progress):
    def phase(self, words: str) -> None:
        print(f"{MARK}{words} …", flush=True)

    def detail(self, words: str) -> None:
        print(f"{MARK}  {words}", flush=True)

    def note(self, words: str) -> None:
        print(f"{MARK}  {words}", flush=True)


def main() -> int:
    # A job that is stopped deletes what it has begun; a killed one leaves that to the next install.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    os.umask(0o077)
    wanted = json.loads(Path(REQUEST).read_text())
    root = StateRoot(os.path.abspath(os.path.expanduser(wanted["root"])))
    asked = InstallRequest(**wanted["install"])
    asked = replace(asked, packages=tuple(asked.packages), files=tuple(asked.files))
    try:
        find_uv()
    except MosaicError:
        why = f"uv is not installed on this node. Install it with: {sys.executable} -m pip install uv"
        return _answer({"problem": why}, 1)
    try:
        made, is_new = install(root, asked, _Told(), prepare=StateRoot.make)
    except (MosaicError, OSError) as error:
        return _answer({"problem": str(error)}, 1)
    return _answer({**asdict(made), "name": made.name, "is_new": is_new, "folder": str(root.envs / made.name)}, 0)


def _answer(result: "dict[str, object]", code: int) -> int:
    print(f"{MARK}{json.dumps({'host': socket.gethostname(), **result})}", flush=True)
    return code


if __name__ == "__main__":
    sys.exit(main())
