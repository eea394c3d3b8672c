"""The commands of one Slurm: submit, release, list, signal, cancel. Nothing is kept; the answers are Slurm's."""

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

from mosaic.engines.cluster import Cluster
from mosaic.engines.errors import EngineRefused, EngineSilent
from mosaic.model.errors import MosaicError

ANSWERS_WITHIN_S = 20.0  # while slurmctld is down its commands give up after about 9 s
_FIELDS = ("%i", "%T", "%r", "%N", "%j", "%S", "%P")
_SEPARATOR = "\x1f"  # names of nodes and reasons may contain anything else
_KEPT = ("PATH", "HOME", "USER", "LOGNAME")


class SlurmSilent(EngineSilent):
    """Slurm does not answer now."""


class SlurmRefused(EngineRefused):
    """Slurm has answered that it will not do it."""


@dataclass(frozen=True)
class Job:
    """One line of squeue."""

    id: str
    state: str  # PENDING, RUNNING, COMPLETING, TIMEOUT …
    reason: str  # what it waits for
    node: str
    name: str
    starts: str  # when Slurm expects it to start, or when it started: 2026-11-18T14:20:00; N/A
    partition: str


@dataclass(frozen=True)
class JobSpec:
    name: str
    comment: str
    script: str  # the lines after #!/bin/sh
    log: str
    partition: str = ""
    cpus: int = 1
    memory_mb: int = 0
    gpus: int = 0
    minutes: int = 0  # 0: the partition's default


class Slurm:
    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    def submit(self, spec: JobSpec) -> str:
        """Queue a job that is held, and return its id. A SlurmSilent says nothing about whether it is queued."""
        cluster = self.cluster
        # --no-requeue: a second start of the same attempt would find that it has had its worker.
        words = ["sbatch", "--parsable", "--hold", "--no-requeue", "--open-mode=append", self._export()]
        words += [f"--job-name={spec.name}", f"--comment={spec.comment}", f"--output={spec.log}", "--chdir=/"]
        words += ["--ntasks=1", "--nodes=1", f"--cpus-per-task={spec.cpus}"]
        words += [f"--mem={spec.memory_mb}M"] if spec.memory_mb else []
        words += [f"--time={spec.minutes}"] if spec.minutes else []
        words += [f"--gres=gpu:{cluster.gpu_type + ':' if cluster.gpu_type else ''}{spec.gpus}"] if spec.gpus else []
        chosen = {"partition": spec.partition or cluster.partition, "account": cluster.account}
        chosen |= {"qos": cluster.qos, "constraint": cluster.constraint}
        words += [f"--{option}={value}" for option, value in chosen.items() if value]
        lines = ["#!/bin/sh", *cluster.prolog, spec.script]
        answer = self._ask([*words, *cluster.sbatch], "\n".join(lines) + "\n")
        return answer.split(";")[0].strip()  # ID or ID;CLUSTER

    def _export(self) -> str:
        """Which variables the job gets: those of `_ask`, which are few.

        With NONE, and with any list of names, slurmd first runs the user's login shell on the node: 1.2 s more until
        the job starts. Only the lines of a prolog need what it sets (`module` is a function of the login shell).
        """
        return "--export=NONE" if self.cluster.prolog else "--export=ALL"

    def release(self, job_id: str) -> None:
        self._ask(["scontrol", "release", job_id])

    def jobs(self) -> list[Job]:
        """All jobs of this user that Slurm knows, those that have ended lately included."""
        form = _SEPARATOR.join(_FIELDS)
        lines = self._ask(["squeue", "--me", "-h", "-t", "all", "-o", form]).splitlines()
        return [Job(*parts) for line in lines if len(parts := line.split(_SEPARATOR)) == len(_FIELDS)]

    def waiting(self) -> int:
        """How many jobs of all users wait, as far as this user may see them."""
        return len(self._ask(["squeue", "-h", "-t", "PENDING", "-o", "%i"]).splitlines())

    def cancel_waiting(self, job_id: str) -> None:
        """Cancel it if it waits; one that runs is left alone."""
        self._ask(["scancel", "--state=PENDING", job_id])

    def signal(self, job_id: str, name: str) -> None:
        """Send a signal to the holder alone."""
        self._ask(["scancel", "--batch", f"--signal={name}", job_id])

    def cancel(self, job_id: str) -> None:
        """SIGTERM to all of its processes, and SIGKILL after Slurm's KillWait."""
        self._ask(["scancel", job_id])

    def setting(self, name: str) -> str:
        """A setting of slurm.conf; empty if there is none."""
        for line in self._ask(["scontrol", "show", "config"]).splitlines():
            key, _, value = line.partition("=")
            if key.strip() == name:
                return value.strip()
        return ""

    def kill_wait_s(self) -> float:
        """How long a job may take to end after the SIGTERM of a preemption or of Slurm's time limit."""
        number = self.setting("KillWait").split()
        return float(number[0]) if number and number[0].isdigit() else 30.0

    def nodes(self) -> list[list[str]]:
        """Name, partition, state, CPUs (allocated/idle/other/total), generic resources, used ones, memory, address."""
        form = "NodeList:|,PartitionName:|,StateLong:|,CPUsState:|,Gres:|,GresUsed:|,Memory:|,NodeAddr:|"
        lines = self._ask(["sinfo", "-h", "-N", "-O", form.replace(":|", ":128")]).splitlines()
        return [[line[n * 128 : (n + 1) * 128].strip() for n in range(8)] for line in lines]

    def _ask(self, words: Sequence[str], text: str = "") -> str:
        env = {name: os.environ[name] for name in _KEPT if name in os.environ} | {"LC_ALL": "C"}
        conf = self.cluster.conf or os.environ.get("SLURM_CONF", "")
        env |= {"SLURM_CONF": conf} if conf else {}
        try:
            done = subprocess.run(
                list(words),
                input=text,
                capture_output=True,
                text=True,
                timeout=ANSWERS_WITHIN_S,
                env=env,
                errors="replace",
            )
        except FileNotFoundError:
            raise SlurmRefused(f"The command {words[0]} is not installed. Runs on Slurm need its client.") from None
        except subprocess.TimeoutExpired:
            raise SlurmSilent(f"{words[0]} gave no answer within {ANSWERS_WITHIN_S:g} s.") from None
        if done.returncode:
            raise _failure(words[0], done.stderr.strip())
        return done.stdout


# Words in the messages of Slurm's commands that say that its controller was not reached.
_NOT_REACHED: tuple[str, ...] = (
    "unable to contact",
    "connection refused",
    "timed out",
    "socket",
    "communication",
    "try again",
    "munge",
)
_NOT_REACHED += ("unexpected message", "zero bytes", "protocol")  # of a controller that is just starting or ending


def _failure(command: str, message: str) -> MosaicError:
    # Every line begins with the command's name; what they say together is in few words.
    lines = [line.removeprefix(f"{command}: ").removeprefix("error: ") for line in message.splitlines()]
    words = "; ".join(lines)[-400:].removesuffix(".") + "." if message else "it gave no reason."
    if any(mark in message.lower() for mark in _NOT_REACHED):
        return SlurmSilent(f"{command}: {words}")
    return SlurmRefused(f"{command}: {words}")
