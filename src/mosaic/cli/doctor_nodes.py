"""The checks of `mosaic doctor` for what the nodes of clusters share with this machine: disk, locks, clocks."""

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from mosaic.cli.doctor_checks import Finding, Installation
from mosaic.engines.cluster import SLURM, cluster_names, load_cluster
from mosaic.model.durable import read_json
from mosaic.model.errors import MosaicError
from mosaic.model.root import NETWORK_FILESYSTEMS, mount_of
from mosaic.model.rundir import AREAS, RunDir, StateRoot

MOUNTS = Path("/proc/self/mounts")
# With these a lock is seen by one machine only, or by none.
LOCAL_LOCKS = frozenset({"nolock", "local_lock=all", "local_lock=flock", "localflock", "noflock"})
SKEW_S = 30.0
MOST_RUNS = 100  # whose clocks are looked at
EVERYWHERE = ("/usr", "/bin", "/lib")  # each machine has its own, of one system


def check_nodes(installation: Installation) -> Iterator[Finding]:
    root = installation.root
    if any(_is_slurm(root, name) for name in cluster_names(root) if (root.clusters / f"{name}.toml").exists()):
        yield from check_locks(root)
        yield from check_shared(root)
    yield from check_clocks(installation)


def _is_slurm(root: StateRoot, name: str) -> bool:
    try:
        return load_cluster(root, name).engine == SLURM
    except MosaicError:
        return False  # check_clusters says why


def check_locks(root: StateRoot, mounts: Path = MOUNTS) -> Iterator[Finding]:
    """A holder on a node is known to be alive by its lock."""
    kind, options = mount_of(root.path, mounts)
    if missing := LOCAL_LOCKS & set(options.split(",")) if kind in NETWORK_FILESYSTEMS else frozenset():
        yield Finding(
            f"{root.path} is mounted with {', '.join(sorted(missing))}.",
            "This machine does not see the locks of the nodes, so only Slurm tells whether a run is alive.",
            "Have it mounted with locks on this machine and on the nodes, or set MOSAIC_HOME to another shared disk.",
        )


def check_shared(root: StateRoot, mounts: Path = MOUNTS) -> Iterator[Finding]:
    """Of a state folder on a shared disk: what the nodes start must be on one as well."""
    if mount_of(root.path, mounts)[0] not in NETWORK_FILESYSTEMS:
        return  # nobody knows here what the nodes see
    needed = {Path(sys.prefix): "the Python of MOSAIC", Path(__file__).parents[1]: "MOSAIC itself"}
    needed |= {folder: f"the worker environment {folder.name}" for folder in sorted(root.envs.glob("*"))}
    for path, what in needed.items():
        for place in dict.fromkeys((path, path / "bin" / "python")):
            real = Path(os.path.realpath(place))
            is_everywhere = real.exists() is False or any(real.is_relative_to(folder) for folder in EVERYWHERE)
            if not is_everywhere and mount_of(real, mounts)[0] not in NETWORK_FILESYSTEMS:
                yield Finding(
                    f"{what[0].upper()}{what[1:]} is on a disk of this machine: {real}",
                    "The nodes start it under the same path. Without it there no run starts.",
                    "Install it on the shared disk, or under the same path on every node.",
                )
                break


def check_clocks(installation: Installation) -> Iterator[Finding]:
    """A large difference fails TLS and munge, and makes the times of runs hard to compare."""
    worst: dict[str, float] = {}
    live = [run_id for run_id, state in installation.states.items() if not state.is_over]
    for run_id in live[-MOST_RUNS:]:
        for node, ahead_s in _skews(installation.root, run_id):
            if abs(ahead_s) > abs(worst.get(node, SKEW_S)):
                worst[node] = ahead_s
    for node, ahead_s in sorted(worst.items()):
        yield Finding(
            f"The clock of {node} is {abs(ahead_s):.0f} s {'ahead' if ahead_s > 0 else 'behind'}.",
            "It was compared with this machine's, or with that of the shared disk. Beyond some minutes munge and "
            "the daemon's TLS refuse it.",
            "Have both synchronized (NTP).",
        )


def _skews(root: StateRoot, run_id: str) -> Iterator[tuple[str, float]]:
    for run in (root.run(area, run_id) for area in AREAS):
        started = read_json(run.started) or {}
        node, at = started.get("node"), started.get("started_at")
        if isinstance(node, str) and isinstance(at, int | float):
            yield node[:100], at - _written_at(run, started.get("taken_at"))


def _written_at(run: RunDir, taken_at: object) -> float:
    """When its holder started, by another clock: the daemon's, or that of the shared disk."""
    if isinstance(taken_at, int | float):
        return taken_at
    try:
        return run.started.stat().st_mtime
    except OSError:
        return time.time()
