"""The settings of a cluster: clusters/NAME.toml in the state root, written by the user.

engine = "slurm"              the scheduler: slurm or ray. For Slurm:
partition = "gpu"             the default of `--on NAME`; `--on NAME:PARTITION` chooses another
account = qos = constraint = gpu_type = ""
time = "24h"                  of a run without a time limit of its own; empty: the partition's default
sbatch = ["--exclude=node7"]  more options for sbatch
prolog = ["module load cuda"] shell lines before the run's holder starts, on the node
conf = ""                     the path of slurm.conf, if the commands do not find it by themselves

For Ray; `--on NAME:RESOURCE` asks for a node that has this custom resource:
address = "http://head:8265"  of its dashboard
token_file = ""               a file of this user with the token that the dashboard asks for
headers = ["X-Lab: me"]       more headers of every request
python = ""                   a Python on the nodes with grpcio and protobuf; empty: the same path as here
root = "~/.mosaic-node"       a folder on the nodes, where the folders of the runs are
environments = "same"         of workers: on the same path as here; "node": in envs/ below `root`

For both:
listen = "10.0.0.5:0"         where this daemon listens for the nodes; empty: the address of this machine
reach = ""                    what the nodes connect to, if that differs: the end of an ssh tunnel
most_jobs = 500               how many jobs may be queued or running at the same time
stop_after_lost_contact_s = 0 a node that gets no answer of the daemon for so long ends its run; 0: never
"""

import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

from mosaic.model.durable import read_bytes
from mosaic.model.durations import parse_duration
from mosaic.model.errors import BadConfig
from mosaic.model.names import VALID, is_worker_name
from mosaic.model.rundir import StateRoot

SLURM = "slurm"
RAY = "ray"
SAME, NODE = "same", "node"  # where the nodes of Ray have the environments of workers
LOCAL = "local"  # in `--on`: this machine
LARGEST_FILE = 64 << 10
_DEFAULTS: dict[str, dict[str, Any]] = {
    SLURM: {},
    RAY: {"engine": RAY, "address": "http://127.0.0.1:8265"},
}  # clusters that need no file
_PARTITION = re.compile(r"[A-Za-z0-9][\w.+-]*(,[A-Za-z0-9][\w.+-]*)*", re.ASCII)


@dataclass(frozen=True)
class Cluster:
    name: str
    engine: str = SLURM
    partition: str = ""
    account: str = ""
    qos: str = ""
    constraint: str = ""
    gpu_type: str = ""
    time: str = ""
    sbatch: tuple[str, ...] = ()
    prolog: tuple[str, ...] = ()
    listen: str = ""
    reach: str = ""
    conf: str = ""
    most_jobs: int = 500
    stop_after_lost_contact_s: int = 0
    address: str = ""
    token_file: str = ""
    headers: tuple[str, ...] = ()
    python: str = ""
    root: str = "~/.mosaic-node"
    environments: str = SAME


def split_place(on: str) -> tuple[str, str]:
    """The cluster and the partition in the text of `--on`; BadConfig for anything that cannot be one."""
    name, colon, partition = on.partition(":")
    if not is_worker_name(name) or (colon and not _PARTITION.fullmatch(partition)):
        raise BadConfig("payload.on", f"'{on}' is not valid. Write CLUSTER or CLUSTER:PARTITION, such as slurm:gpu.")
    return name, partition


def load_cluster(root: StateRoot, name: str) -> Cluster:
    """The settings of a cluster. `slurm` and `ray` need no file: then everything has its default."""
    if not is_worker_name(name):
        raise BadConfig("payload.on", f"'{name}' is not a valid name of a cluster. {VALID}")
    path = root.clusters / f"{name}.toml"
    try:
        text = read_bytes(path, LARGEST_FILE).decode()
        found = tomllib.loads(text)
    except FileNotFoundError:
        if name in _DEFAULTS:
            return Cluster(name, **_DEFAULTS[name])
        known = ", ".join(cluster_names(root))
        raise BadConfig(
            "payload.on",
            f"there is no cluster '{name}'. Known: {known}. Describe it in {path} (docs/howto/slurm.md, "
            "docs/howto/ray-cluster.md).",
        ) from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadConfig(str(path), f"cannot be used: {error}.") from None
    return Cluster(name, **{**_DEFAULTS.get(name, {}), **_checked(str(path), text, found)})


def cluster_names(root: StateRoot) -> list[str]:
    return sorted({*_DEFAULTS, *(path.stem for path in root.clusters.glob("*.toml"))})


def _checked(path: str, text: str, found: dict[str, Any]) -> dict[str, Any]:
    kinds = {field.name: type(field.default) for field in fields(Cluster) if field.name != "name"}
    for key, value in found.items():
        if key not in kinds:
            why = f"there is no setting '{key}'. Known: {', '.join(kinds)}."
        elif words := _KINDS[kinds[key]](value):
            why = f"'{key}' has the wrong type: {value!r}. Write {words}."
        else:
            why = _CHECKS[key](value) if key in _CHECKS else ""
        if why:
            raise BadConfig(f"{path}{_line_of(key, text)}", why)
    return {key: tuple(value) if isinstance(value, list) else value for key, value in found.items()}


def _line_of(key: str, text: str) -> str:
    """Where a setting stands; empty if it is not written as `key = …`."""
    lines = (number for number, line in enumerate(text.splitlines(), 1) if line.split("=")[0].strip(" \t\"'") == key)
    return "".join(f", line {number}" for number in list(lines)[:1])


def _is_line(value: object) -> bool:
    return isinstance(value, str) and "\n" not in value and "\0" not in value


# By the type of a setting: what to write instead of a value; empty if it is one of that type.
_KINDS: dict[type, Callable[[object], str]] = {
    str: lambda value: "" if _is_line(value) else "a text without line breaks, in quotes",
    int: lambda value: "" if type(value) is int and value >= 0 else "a whole number",
    tuple: lambda value: "" if isinstance(value, list) and all(map(_is_line, value)) else 'a list of texts: ["…", "…"]',
}


def _one_of(*names: str) -> Callable[[Any], str]:
    return lambda value: "" if value in names else f"'{value}' is not known. Write {' or '.join(names)}."


def _why_no_duration(value: str) -> str:
    try:
        parse_duration(value or "0")
    except ValueError as error:
        return f"'time': {error}"
    return ""


def _why_no_address(value: str) -> str:
    host, _, port = value.rpartition(":")
    return "" if not value or (host and port.isdigit()) else f"'{value}' is not an address. Write HOST:PORT."


def _why_not_ours(options: list[str]) -> str:
    """A run is found by the name of its job, and is one job that starts once."""
    names = [option.split("=")[0] for option in options]
    taken = [name for name in names if name in _OURS or (name[:2] in _OURS and not name.startswith("--"))]
    return f"MOSAIC itself decides {taken[0]} of its jobs. Leave it out of 'sbatch'." if taken else ""


_OURS = frozenset(
    {"-J", "--job-name", "-a", "--array", "-o", "--output", "-H", "--hold", "-W", "--wait", "-D", "--chdir"}
)
_OURS |= {"--requeue", "--export", "--wrap", "--test-only", "--open-mode", "--parsable"}
# What else a setting must fulfil; each returns why it does not.
_CHECKS: dict[str, Callable[[Any], str]] = {
    "engine": _one_of(SLURM, RAY),
    "environments": _one_of(SAME, NODE),
    "time": _why_no_duration,
    "most_jobs": lambda count: "" if count else "with no job at all no run would ever start.",
    "reach": _why_no_address,
    "sbatch": _why_not_ours,
    "prolog": lambda lines: "write options of #SBATCH lines into 'sbatch'." if "#SBATCH" in " ".join(lines) else "",
    "headers": lambda lines: "" if all(":" in line for line in lines) else "write each header as 'NAME: VALUE'.",
    "address": lambda url: (
        "" if not url or url.startswith(("http://", "https://")) else f"'{url}' does not begin with http://."
    ),
    "root": lambda path: (
        "" if path.startswith(("/", "~/")) else f"'{path}': write an absolute path on the nodes, or ~/…."
    ),
}
