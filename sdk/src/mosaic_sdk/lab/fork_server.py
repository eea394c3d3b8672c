"""A process that imports libraries once; each trial is a fork of it. Started by path, in the worker's own Python.

It reads requests from the socket with the number argv[1]: a line of JSON, with stdout and stderr as descriptors. It
answers with the pid, and when that process has ended with its wait status. argv[2:] are the modules to import.
"""

import importlib
import json
import os
import select
import signal
import socket
import sys
from typing import Any, Dict, Optional

# Nothing of this folder is to be found by the worker's imports; `python -m` has the working directory here.
sys.path[0] = ""


def serve(channel: socket.socket) -> Optional[Dict[str, Any]]:
    """Returns the request in each child, None in the server when the lab has closed the socket."""
    while True:
        message, fds, _, _ = socket.recv_fds(channel, 1 << 20, 2)
        if not message:
            return None
        pid = os.fork()
        if pid == 0:
            channel.close()
            os.dup2(fds[0], 1)
            os.dup2(fds[1], 2)
        for fd in fds:
            os.close(fd)
        if pid == 0:
            found: Dict[str, Any] = json.loads(message)
            return found
        answer(channel, pid)
        answer(channel, wait_for(pid, channel))


def wait_for(pid: int, channel: socket.socket) -> int:
    """The wait status. If the lab is gone first, the process is killed."""
    pidfd = os.pidfd_open(pid)
    ready, _, _ = select.select([pidfd, channel.fileno()], [], [])
    if pidfd not in ready:
        os.kill(pid, signal.SIGKILL)
    os.close(pidfd)
    return os.waitpid(pid, 0)[1]


def answer(channel: socket.socket, number: int) -> None:
    try:
        channel.sendall(b"%d\n" % number)
    except BrokenPipeError:
        sys.exit()


def become(request: Dict[str, Any]) -> None:
    """What exec would have given a new process: its session, folder, environment and arguments."""
    os.setsid()
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    sys.path[0] = request["cwd"]
    if "tempfile" in sys.modules:
        sys.modules["tempfile"].__dict__["tempdir"] = None  # else the server's TMPDIR
    sys.argv = ["-m", *request["arguments"]]


if __name__ == "__main__":
    for name in sys.argv[2:]:
        importlib.import_module(name)
    request = serve(socket.socket(fileno=int(sys.argv[1])))
    if request:
        import runpy

        become(request)
        # Not inside serve(): an exception or an exit of the worker takes Python's own way out.
        runpy.run_module(request["module"], run_name="__main__", alter_sys=True)
