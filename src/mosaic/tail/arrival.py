"""The first process of a run on a node without a shared file system: takes the launch, and becomes the holder.

    MOSAIC_NODE={…} python -m mosaic.tail.arrival

The variable has the daemon's address and certificate and a ticket that is good for one start. Everything else, secrets
included, comes over that connection, because a cluster shows the variables of its jobs to all of its users.
"""

import json
import os
import socket
import sys

from mosaic.model import node_paths
from mosaic.model.rundir import RunDir, StateRoot

NO_LAUNCH = 4  # exit code: nothing was started
LEAST_ROOM = 1 << 20  # bytes on the disk of the node


def main() -> int:
    text = os.environ.pop(node_paths.TICKET, "")
    os.environ.pop("RAY_JOB_CONFIG_JSON_ENV_VAR", None)  # has the ticket, too
    if not text:
        print(f"{node_paths.TICKET} is not set: only the daemon starts this program, as a job of a cluster.")
        return 2
    ticket = json.loads(text)
    node = socket.gethostname()
    os.umask(0o077)
    root = StateRoot(os.path.abspath(os.path.expanduser(ticket["root"])))
    code = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    run = root.run(ticket["area"], ticket["run_id"])
    if lacking := _missing_environment(ticket, root):
        print(f"Nothing was started on {node}: {lacking}", file=sys.stderr)
        return NO_LAUNCH
    try:
        # All that is needed later must be there before anything is started.
        import mosaic.tail.tailer  # noqa: F401
        from mosaic.tail.taking import NoLaunch, take_launch, write_launch
    except Exception as error:  # noqa: BLE001  # gRPC's and protobuf's generated code raise errors of their own
        print(
            f"Nothing was started on {node}: {sys.executable} cannot run the tailer ({error}). It needs grpcio, "
            "protobuf and msgspec, in the versions that MOSAIC has; set `python` of the cluster.",
            file=sys.stderr,
        )
        return NO_LAUNCH
    try:
        # First, because nothing can be started again once the launch is taken.
        root.make()
        run.make()
        _check_room(run)
        write_launch(take_launch(ticket, node), root, run, code)
    except (NoLaunch, OSError) as why:
        print(f"Nothing was started on {node}: {why}", file=sys.stderr)
        return NO_LAUNCH
    words = [sys.executable, "-I", "-S", f"{code}/mosaic/hold/__main__.py", "--run-dir", str(run.path)]
    words += ["--attempt", str(ticket["attempt"]), "--node", node, "--job", ticket["job"]]
    os.chdir("/")
    os.execv(words[0], words)
    return 0  # never reached


def _check_room(run: RunDir) -> None:
    """OSError on a full disk."""
    probe = run.control / "room"
    try:
        probe.write_bytes(bytes(LEAST_ROOM))
    finally:
        probe.unlink(missing_ok=True)


def _missing_environment(ticket: "dict[str, str]", root: StateRoot) -> str:
    """Of a cluster whose nodes have environments of their own: what to do if this node lacks that of the worker."""
    folder = root.envs / ticket.get("worker", "")
    if "worker" not in ticket or (folder / "bin" / "python").exists():
        return ""
    return f"worker {ticket['worker']} is not installed here ({folder}). Install it with: {ticket['install']}"


if __name__ == "__main__":
    sys.exit(main())
