"""The checks of `mosaic doctor` for clusters that have a file in `clusters/`. They only look; nothing is submitted."""

import shutil
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

from mosaic.cli.doctor_checks import Finding, Installation
from mosaic.engines.cluster import RAY, Cluster, cluster_names, load_cluster
from mosaic.engines.ray import OLDEST, Ray
from mosaic.engines.slurm import Slurm
from mosaic.model.durable import read_json
from mosaic.model.errors import MosaicError
from mosaic.model.rundir import StateRoot
from mosaic.wire.names import NODES_HOST

COMMANDS = ("sbatch", "squeue", "scontrol", "scancel", "sinfo")
GUIDE = "See docs/howto/slurm.md."
RAY_GUIDE = "See docs/howto/ray-cluster.md."
CONNECTS_WITHIN_S = 5.0


def check_clusters(installation: Installation) -> Iterator[Finding]:
    root = installation.root
    for name in cluster_names(root):
        if not (root.clusters / f"{name}.toml").exists():
            continue
        try:
            cluster = load_cluster(root, name)
        except MosaicError as error:
            yield Finding(f"The settings of the cluster '{name}' cannot be used.", str(error), GUIDE)
            continue
        check = _check_ray if cluster.engine == RAY else _check_slurm
        yield from check(cluster, _listens_at(root) or cluster.listen)
    yield from _check_listener(root, installation)


def _check_slurm(cluster: Cluster, listens_at: str) -> Iterator[Finding]:
    missing = [command for command in COMMANDS if not shutil.which(command)]
    if missing:
        yield Finding(
            f"Slurm's {', '.join(missing)} is not installed.",
            f"Runs for '{cluster.name}' cannot be submitted from this machine.",
            "Install Slurm's client (Debian: slurm-client), of the cluster's version.",
        )
        return
    if cluster.conf and not Path(cluster.conf).is_file():
        yield Finding(f"{cluster.conf} does not exist.", f"It is `conf` of the cluster '{cluster.name}'.", GUIDE)
        return
    slurm = Slurm(cluster)
    try:
        slurm.jobs()
        nodes = slurm.nodes()
    except MosaicError as error:
        yield Finding(f"The cluster '{cluster.name}' does not answer.", str(error), _remedy(str(error)))
        return
    if not any(state.startswith(("idle", "mixed", "alloc")) for _, _, state, *_ in nodes):
        yield Finding(f"No node of the cluster '{cluster.name}' is up.", "Its runs wait.", "Look at: sinfo -R")
    yield from _check_reach(cluster, listens_at, {node[0]: node[-1] for node in nodes}, GUIDE)


def _check_ray(cluster: Cluster, listens_at: str) -> Iterator[Finding]:
    ray = Ray(cluster)
    try:
        version = ray.version()
        ray.jobs()
        nodes = ray.nodes()
    except MosaicError as error:
        yield Finding(f"The cluster '{cluster.name}' does not answer.", str(error), _ray_remedy(cluster, str(error)))
        return
    if _is_older(version):
        yield Finding(
            f"Ray {version} of the cluster '{cluster.name}' is too old.",
            "Its Jobs API lacks what runs request.",
            f"Use {'.'.join(map(str, OLDEST))} or newer; 2.60 is tested.",
        )
    if not any(node.state == "alive" for node in nodes):
        yield Finding(f"No node of the cluster '{cluster.name}' is up.", "Its runs wait.", "Look at: ray status")
    yield from _check_reach(cluster, listens_at, {node.name: node.address for node in nodes}, RAY_GUIDE)


def _check_reach(cluster: Cluster, listens_at: str, nodes: dict[str, str], guide: str) -> Iterator[Finding]:
    """A daemon that listens on loopback is reached by the nodes of this machine only. `nodes`: name → address."""
    own = ("localhost", socket.gethostname())
    others = [name for name, address in nodes.items() if not (_is_loopback(address) or {name, address} & set(own))]
    if others and _is_loopback(listens_at.rpartition(":")[0] or listens_at) and not cluster.reach:
        yield Finding(
            f"Node {others[0]} of the cluster '{cluster.name}' cannot reach the daemon.",
            f"The daemon listens at {listens_at} for nodes, which only this machine sees.",
            f"Set `listen` to an address of this machine in the nodes' network, or `reach` to a tunnel. {guide}",
        )


def _is_loopback(host: str) -> bool:
    return host.startswith("127.") or host in ("localhost", "::1", "[::1]")


def _is_older(version: str) -> bool:
    numbers = [int(part) for part in version.split(".")[:2] if part.isdigit()]
    return len(numbers) == 2 and tuple(numbers) < OLDEST


def _ray_remedy(cluster: Cluster, message: str) -> str:
    if "token" in message:
        return f"The dashboard asks for a token: write it to a file and set `token_file`. {RAY_GUIDE}"
    return (
        f"Is `address` ({cluster.address}) that of its dashboard, and does this machine reach it? If not, tunnel it, "
        f"such as: ssh -L 8265:localhost:8265 HEAD. {RAY_GUIDE}"
    )


def _remedy(message: str) -> str:
    text = message.lower()
    if "rewound" in text or "expired" in text:
        return "The clock of this machine or of the controller is wrong by some minutes. Have both synchronized (NTP)."
    if "munge" in text or "authentication" in text:
        return "munge does not run on this machine, or its key is not the cluster's. Ask whoever runs the cluster."
    if "protocol" in text or "incompatible" in text or "version" in text:
        return "The client's version does not fit the cluster's; install the same one."
    return "Is its controller (slurmctld) running, and does this machine reach it? Runs that are live continue."


def _listens_at(root: StateRoot) -> str:
    """Where the daemon listens for nodes, if it ever did."""
    address = (read_json(root.settings) or {}).get("nodes")
    return address if isinstance(address, str) else ""


def _check_listener(root: StateRoot, installation: Installation) -> Iterator[Finding]:
    address = _listens_at(root)
    if not address or installation.health is None:
        return
    problem = why_unreachable(root, address)
    if problem:
        yield Finding(
            f"Nodes cannot reach the daemon at {address}.",
            f"{problem}. Runs on other machines continue, but send no telemetry until it is reached.",
            "Another program may have taken the port, or a firewall closes it: set `listen` or `reach`. " + GUIDE,
        )


def why_unreachable(root: StateRoot, address: str) -> str:
    """Empty if the daemon answers there with its own certificate."""
    host, _, port = address.rpartition(":")
    try:
        context = ssl.create_default_context(cafile=str(root.nodes_certificate))
        context.set_alpn_protocols(["h2"])
        with (
            socket.create_connection((host.strip("[]"), int(port)), CONNECTS_WITHIN_S) as plain,
            context.wrap_socket(plain, server_hostname=NODES_HOST),
        ):
            return ""
    except (OSError, ValueError) as error:
        return str(error)
