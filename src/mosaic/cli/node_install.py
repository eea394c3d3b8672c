"""`mosaic worker install --on`: the environment of a worker on the nodes of a cluster, each with its own disk."""

import shlex
import sys
from typing import TYPE_CHECKING, Any

from mosaic.engines.cluster import NODE, RAY, load_cluster, split_place
from mosaic.model.errors import BadConfig, MosaicError
from mosaic.model.rundir import StateRoot
from mosaic.present.text import size

if TYPE_CHECKING:
    from mosaic.catalog.install import InstallRequest
    from mosaic.cli.install_progress import LineProgress
    from mosaic.engines.cluster import Cluster
    from mosaic.engines.node_install import Install


def install_on_nodes(root: StateRoot, on: str, request: "InstallRequest", shown: "LineProgress") -> "list[Install]":
    """Install on all nodes of a cluster, or on those with a resource."""
    from mosaic.catalog.for_nodes import CODE, files_for_nodes
    from mosaic.engines.node_code import package, platform_files
    from mosaic.engines.node_install import install_on, nodes_for
    from mosaic.engines.ray import Ray

    name, resource = split_place(on)
    cluster = load_cluster(root, name)
    _refuse_same(root, cluster)
    ray = Ray(cluster)
    nodes = nodes_for(ray, resource)
    files = files_for_nodes(root, request, cluster.root, shown)
    shown.phase(f"Installing on {len(nodes)} node{'' if len(nodes) == 1 else 's'} of {name}")
    command = f"exec {shlex.quote(cluster.python or sys.executable)} -m mosaic.catalog.on_node"
    whole = package(platform_files(CODE) | files)
    return install_on(ray, nodes, whole, command, lambda node, line: shown.note(f"{node}: {line}"))


def _refuse_same(root: StateRoot, cluster: "Cluster") -> None:
    if cluster.engine != RAY:
        raise BadConfig("--on", f"nodes of '{cluster.name}' use the environments of this machine: omit --on.")
    if cluster.environments != NODE:
        file = root.clusters / f"{cluster.name}.toml"
        raise BadConfig(
            "--on",
            f"runs on '{cluster.name}' use environments under the same paths as here, so this one would not be used. "
            f'Write environments = "{NODE}" into {file} first (docs/howto/ray-cluster.md).',
        )


def as_json(install: "Install") -> dict[str, Any]:
    return {"node": install.node, "problem": install.problem, **install.result}


def print_installs(installs: "list[Install]") -> None:
    """One line for each node; for one that failed with the last lines of its job, on stderr."""
    for install in installs:
        made = install.result
        if install.problem:
            for line in install.lines:
                print(f"  {install.node}: {line}", file=sys.stderr)
            print(f"{install.node}: {install.problem}", file=sys.stderr)
            continue
        done = "is installed" if made["is_new"] else "is already installed, nothing has changed"
        print(f"{install.node}: {made['name']} {made['version']}, Python {made['python']}, {done}: {_where(made)}.")


def _where(made: dict[str, Any]) -> str:
    return f"{made['folder']}, {size(made['size_bytes'])}"


def refuse_failed(installs: "list[Install]", what: str, on: str) -> None:
    failed = [install.node for install in installs if install.problem]
    if failed:
        raise MosaicError(
            f"{what} was not installed on {', '.join(failed)}. When the reason is gone, repeat: "
            f"mosaic worker install {what} --on {on}"
        )
