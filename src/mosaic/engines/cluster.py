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
stop_after_lost_contact_s = 0 a node that gets no answer of the daemon for so long ends its run; absent: never
"""

import re
import tomllib
from dataclasses import dataclass, fields
from typing import Any

from mosaic.model.durable import read_bytes
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
    return Cluster(name, **{**_DEFAULTS.get(name, {}), **_checked(str(path), found)})


def cluster_names(root: StateRoot) -> list[str]:
    return sorted({*_DEFAULTS, *(path.stem for path in root.clusters.glob("*.toml"))})


def _checked(path: str, found: dict[str, Any]) -> dict[str, Any]:
    kinds = {field.name: field.type for field in fields(Cluster) if field.name != "name"}
    for key, value in found.items():
        if key not in kinds:
            raise BadConfig(path, f"there is no setting '{key}'. Known: {', '.join(kinds)}.")
        if not _is_kind(value, str(kinds[key])):
            raise BadConfig(path, f"'{key}' has the wrong type: {value!r}.")
    if found.get("engine", SLURM) not in (SLURM, RAY):
        raise BadConfig(path, f"the engine '{found['engine']}' is not supported; {SLURM} and {RAY} are.")
    if found.get("environments", SAME) not in (SAME, NODE):
        raise BadConfig(path, f"'environments' is '{found['environments']}'; write {SAME} or {NODE}.")
    if not str(found.get("root", "~/")).startswith(("/", "~/")):
        raise BadConfig(path, f"'root' is '{found['root']}'; write an absolute path on the nodes, or ~/….")
    return {key: tuple(value) if isinstance(value, list) else value for key, value in found.items()}


def _is_kind(value: object, kind: str) -> bool:
    if "tuple" in kind:
        return isinstance(value, list) and all(_is_line(each) for each in value)
    if "int" in kind:
        return isinstance(value, int) and not isinstance(value, bool) and value > 0
    return _is_line(value)


def _is_line(value: object) -> bool:
    return isinstance(value, str) and "\n" not in value and "\0" not in value
