"""A real Slurm of two nodes on this machine, in a folder of its own: the daemons are children of the test process."""

import contextlib
import ctypes
import getpass
import os
import random
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

from lab import alive, all_pids, cmdline, environ, wait_until

PROGRAMS = ("munged", "slurmctld", "slurmd", "squeue", "sbatch")
SBIN = "/usr/sbin:/sbin"  # not on the path of an ordinary user
NODES = ("nodeA", "nodeB")
STARTS = 3
PORTS = (20_000, 32_000)
_PR_SET_PDEATHSIG = 1

CONF = """\
ClusterName=toy
SlurmctldHost=localhost(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock
SlurmctldPort={ports[0]}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
GresTypes=gpu
SlurmdParameters=config_overrides
ReturnToService=2
SlurmdTimeout=5
KillWait=5
MinJobAge=300
SchedulerParameters=batch_sched_delay=0,sched_interval=1
PreemptType=preempt/partition_prio
PreemptMode=CANCEL
NodeName=nodeA NodeHostname=localhost NodeAddr=127.0.0.1 Port={ports[1]} CPUs=4 RealMemory=4000 Gres=gpu:2 State=UNKNOWN
NodeName=nodeB NodeHostname=localhost NodeAddr=127.0.0.1 Port={ports[2]} CPUs=4 RealMemory=4000 Gres=gpu:2 State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP PriorityTier=1
PartitionName=urgent Nodes=ALL MaxTime=INFINITE State=UP PriorityTier=10
"""
GRES = "NodeName=nodeA,nodeB Name=gpu File=/dev/null,/dev/zero\n"


class SlurmCluster:
    """munged, slurmctld and two slurmd. `close` leaves no process and no file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.conf = folder / "slurm.conf"
        path = f"{os.environ.get('PATH', '')}:{SBIN}"
        self.environment = {**os.environ, "SLURM_CONF": str(self.conf), "PATH": path}
        self._daemons: dict[str, subprocess.Popen[bytes]] = {}

    @classmethod
    def missing(cls) -> list[str]:
        path = f"{os.environ.get('PATH', '')}:{SBIN}"
        return [program for program in PROGRAMS if not shutil.which(program, path=path)]

    def start(self) -> None:
        for left in reversed(range(STARTS)):
            try:
                self._start()
                return
            except AssertionError:
                if not left:
                    raise
                self._end()  # somebody else has taken one of its ports meanwhile

    def _start(self) -> None:
        for name in ("state", *(f"spool-{node}" for node in NODES)):
            (self.folder / name).mkdir(mode=0o700, parents=True, exist_ok=True)
        self.conf.write_text(CONF.format(folder=self.folder, user=getpass.getuser(), ports=free_ports(3)))
        (self.folder / "gres.conf").write_text(GRES)
        key = self.folder / "munge.key"
        key.unlink(missing_ok=True)
        key.write_bytes(os.urandom(128))
        key.chmod(0o600)
        self.start_daemon("munged")
        wait_until((self.folder / "munge.sock").exists, words="munged")
        for name in ("slurmctld", *NODES):
            self.start_daemon(name, "-c")
        wait_until(self._is_up, 60, "two idle nodes")

    def wait_until_idle(self, timeout_s: float = 60) -> None:
        wait_until(self._is_idle, timeout_s, "two idle nodes")

    def _is_idle(self) -> bool:
        return self.ask("sinfo", "-h", "-t", "idle", "-o", "%D") == "2"

    def _is_up(self) -> bool:
        ended = [name for name, daemon in self._daemons.items() if daemon.poll() is not None]
        assert not ended, f"{ended} ended: {(self.folder / f'{ended[0]}.out').read_text()}"
        return self._is_idle()

    def start_daemon(self, name: str, *options: str) -> None:
        """`munged`, `slurmctld` or the name of a node."""
        with open(self.folder / f"{name}.out", "ab") as out:
            self._daemons[name] = subprocess.Popen(
                self._command(name, options),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                env=self.environment,
                cwd="/",
                preexec_fn=_die_with_parent,
            )

    def _command(self, name: str, options: tuple[str, ...]) -> list[str]:
        if name == "munged":
            files = [f"--{kind}-file={self.folder}/munge.{kind}" for kind in ("key", "pid", "log", "seed")]
            force = ["--force"] if os.geteuid() == 0 else []
            return ["munged", "-F", *force, f"--socket={self.folder}/munge.sock", *files]
        if name == "slurmctld":
            return ["slurmctld", "-D", "-f", str(self.conf), *options]
        return ["slurmd", "-D", "-N", name, "-f", str(self.conf)]

    def kill(self, name: str) -> None:
        """kill -9 of one of its daemons."""
        daemon = self._daemons.pop(name)
        daemon.kill()
        daemon.wait()

    def ask(self, *command: str) -> str:
        """What a command of Slurm prints; empty if it fails."""
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True)
        return done.stdout.strip() if done.returncode == 0 else ""

    def jobs(self) -> dict[str, str]:
        """The state of every job that Slurm knows, by job id."""
        return dict(line.split() for line in self.insist("squeue", "-h", "-t", "all", "-o", "%i %T"))  # type: ignore[misc]

    def waiting(self) -> str:
        """The names of the jobs that wait."""
        return "\n".join(self.insist("squeue", "-h", "-t", "PENDING", "-o", "%j"))

    def insist(self, *command: str) -> list[str]:
        """The lines that a command of Slurm prints. One that fails, on a busy machine, is repeated."""
        answers: list[str] = []

        def is_answered() -> bool:
            done = subprocess.run(command, env=self.environment, capture_output=True, text=True)
            answers[:] = done.stdout.splitlines()
            return done.returncode == 0

        wait_until(is_answered, 60, f"an answer to {command}")
        return answers

    def close(self) -> None:
        self._end()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _end(self) -> None:
        for daemon in self._daemons.values():
            daemon.terminate()
        for daemon in self._daemons.values():
            with contextlib.suppress(subprocess.TimeoutExpired):
                daemon.wait(10)
            daemon.kill()
            daemon.wait()
        while pids := self.processes():
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.05)
        self._daemons.clear()

    def processes(self) -> list[int]:
        """Its daemons, and the steps and jobs that outlive them."""
        mark = str(self.folder).encode()
        pids = [pid for pid in all_pids() if pid != os.getpid() and (mark in cmdline(pid) or mark in environ(pid))]
        return [pid for pid in pids if alive(pid)]


def free_ports(count: int) -> list[int]:
    """Ports that the kernel gives nobody by itself: another process could get them before they are used here."""
    found: list[int] = []
    while len(found) < count:
        port = random.SystemRandom().randrange(*PORTS)
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind(("", port))
            found += [port] if port not in found else []
    return found


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
