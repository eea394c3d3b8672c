"""A real Ray of two nodes on this machine, in a folder of its own. It is started and ended by pid: never `ray stop`."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

from lab import alive, all_pids, cmdline, environ
from slurm_cluster import _die_with_parent, free_ports

from mosaic.engines.cluster import Cluster
from mosaic.engines.ray import Ray
from mosaic.model.errors import MosaicError
from mosaic.model.procfs import descendants

ENVIRONMENT = Path(__file__).parents[1] / ".venv-ray-cluster"
PYTHON = ENVIRONMENT / "bin" / "python"
NODES = ("head", "nodeB")
STARTS = 4  # on a loaded machine parts of Ray give up waiting for each other
STARTS_WITHIN_S = 90.0
# As small as it gets: no idle processes, no log monitor, no memory for objects.
SMALL = ("--num-cpus=2", "--num-gpus=2", "--object-store-memory=80000000", "--disable-usage-stats")
SMALL += ("--include-log-monitor=False",)
VARIABLES = {"RAY_enable_worker_prestart": "0", "RAY_DISABLE_IMPORT_WARNING": "1", "RAY_USAGE_STATS_ENABLED": "0"}
# Otherwise half of Ray asks for a token that another Ray has left in the user's home.
VARIABLES |= {"RAY_AUTH_MODE": "disabled"}
VARIABLES |= {"RAY_num_prestart_python_workers": "0", "RAY_prestart_worker_first_driver": "0"}


class RayCluster:
    """A head and one more node. `close` leaves no process and no file."""

    def __init__(self, folder: Path, token: str = "") -> None:
        """With a token, everything in it asks for it; `token_file` has it."""
        self.folder = folder
        self.token_file = str(folder / "token") if token else ""
        self.ray = Ray(Cluster("ray", engine="ray"))
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("RAY_", "PYTHON"))}
        # Of processes that call themselves `ray::IDLE` only the environment shows whose they are.
        tools = f"{ENVIRONMENT.parent}/.tools/bin"  # uv, for installs on nodes
        self.environment = {**kept, **VARIABLES, "MOSAIC_TEST_RAY": str(folder)}
        if token:
            (folder / "token").write_text(token)
            self.environment |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": self.token_file}
        self.environment["PATH"] = f"{tools}:{kept.get('PATH', os.defpath)}"
        self._nodes: dict[str, subprocess.Popen[bytes]] = {}
        self._gcs_port = 0

    @property
    def address(self) -> str:
        return self.ray.cluster.address

    def start(self) -> None:
        for _ in range(STARTS):
            with contextlib.suppress(TimeoutError):
                self._start_head()
                self.start_node("nodeB")  # while the head's dashboard starts
                return
            self._end()
        raise AssertionError(f"Ray did not start in {STARTS} tries: {self._outputs()}")

    def start_node(self, name: str) -> None:
        """`nodeB`, again: with a custom resource of that name."""
        [port] = free_ports(1)
        more = [f"--address=127.0.0.1:{self._gcs_port}", f"--dashboard-agent-listen-port={port}"]
        # Jobs are sent to a node by its address, so it needs one of its own.
        self._spawn(name, *more, f'--resources={{"{name}": 1}}', "--node-ip-address=127.0.0.2")
        self._wait(lambda: sum(node.state == "alive" for node in self.ray.nodes()) == 2)

    def _start_head(self) -> None:
        ports = free_ports(4)
        self._gcs_port = ports[0]
        self.ray.cluster = Cluster(
            "ray", engine="ray", address=f"http://127.0.0.1:{ports[1]}", token_file=self.token_file
        )
        more = [f"--port={ports[0]}", f"--dashboard-port={ports[1]}", f"--dashboard-agent-listen-port={ports[2]}"]
        more += [
            f"--ray-client-server-port={ports[3]}",
            "--dashboard-host=127.0.0.1",
            f"--temp-dir={self.folder}/ray",
            '--resources={"head": 1}',
        ]
        self._spawn("head", "--head", *more)
        self._wait(lambda: _accepts(self._gcs_port))

    def _spawn(self, name: str, *options: str) -> None:
        with open(self.folder / f"{name}.out", "ab") as out:
            self._nodes[name] = subprocess.Popen(
                [PYTHON, ENVIRONMENT / "bin" / "ray", "start", "--block", *SMALL, *options],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                env=self.environment,
                cwd="/",
                preexec_fn=_die_with_parent,
            )

    def _wait(self, done) -> None:
        deadline = time.monotonic() + STARTS_WITHIN_S
        while True:
            with contextlib.suppress(MosaicError):
                if done():
                    return
            if time.monotonic() > deadline or any(node.poll() is not None for node in self._nodes.values()):
                raise TimeoutError
            time.sleep(0.2)

    def raylet(self, name: str) -> int:
        """The pid of the raylet of a node."""
        pids = [pid for pid in descendants(self._nodes[name].pid) if b"raylet/raylet\0" in cmdline(pid)]
        assert pids, self._outputs()
        return pids[0]

    def kill_node(self, name: str) -> None:
        """kill -9 of its raylet and of what started it."""
        pid = self.raylet(name)
        self._nodes[name].kill()
        os.kill(pid, signal.SIGKILL)
        self._nodes.pop(name).wait()

    def close(self) -> None:
        self._end()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _end(self) -> None:
        while pids := self.processes():
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            for node in self._nodes.values():
                node.poll()
            time.sleep(0.05)
        self._nodes.clear()

    def processes(self) -> list[int]:
        mark, own = str(self.folder).encode(), {node.pid for node in self._nodes.values()}
        below = {pid for parent in own for pid in descendants(parent)} | own
        pids = [pid for pid in all_pids() if pid in below or mark in cmdline(pid) or mark in environ(pid)]
        return [pid for pid in pids if pid != os.getpid() and alive(pid)]

    def _outputs(self) -> str:
        return "".join(path.read_text(errors="replace")[-2000:] for path in self.folder.glob("*.out"))


def _accepts(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True
