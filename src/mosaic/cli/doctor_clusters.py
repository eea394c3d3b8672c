"""The checks of `mosaic doctor` for clusters that have a file in `clusters/`. They only look; nothing is submitted."""

import shutil
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

from mosaic.cli.doctor_checks import Finding, Installation
from mosaic.engines.cluster import RAY, Cluster, cluster_names, load_cluster
from mosaic.engines.ray import OLDEST, Ray, RayNode
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
        yield from _check_ray(cluster) if cluster.engine == RAY else _check_slurm(cluster)
    yield from _check_listener(root, installation)


def _check_slurm(cluster: Cluster) -> Iterator[Finding]:
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
        is_up = any(state.startswith(("idle", "mixed", "alloc")) for _, _, state, *_ in slurm.nodes())
    except MosaicError as error:
        yield Finding(f"The cluster '{cluster.name}' does not answer.", str(error), _remedy(str(error)))
        return
    if not is_up:
        yield Finding(f"No node of the cluster '{cluster.name}' is up.", "Its runs wait.", "Look at: sinfo -R")


def _check_ray(cluster: Cluster) -> Iterator[Finding]:
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
    yield from _check_reach(cluster, nodes)


def _check_reach(cluster: Cluster, nodes: "list[RayNode]") -> Iterator[Finding]:
    """A daemon that listens on loopback is reached by the nodes of this machine only."""
    host = (cluster.reach or cluster.listen).rpartition(":")[0] or (cluster.reach or cluster.listen)
    others = [node.name for node in nodes if node.name != socket.gethostname()]
    if host in ("127.0.0.1", "localhost", "[::1]") and others and not cluster.reach:
        yield Finding(
            f"Node {others[0]} of the cluster '{cluster.name}' cannot reach the daemon.",
            f"`listen` is {cluster.listen}, which only this machine sees.",
            "Set `listen` to an address of this machine in the nodes' network, or `reach` to a tunnel. " + RAY_GUIDE,
        )


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
    if "munge" in text or "authentication" in text:
        return "munge does not run on this machine, or its key is not the cluster's. Ask whoever runs the cluster."
    if "protocol" in text or "incompatible" in text or "version" in text:
        return "The client's version does not fit the cluster's; install the same one."
    return "Is its controller (slurmctld) running, and does this machine reach it? Runs that are live continue."


def _check_listener(root: StateRoot, installation: Installation) -> Iterator[Finding]:
    address = (read_json(root.settings) or {}).get("nodes")
    if not isinstance(address, str) or not address or installation.health is None:
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
