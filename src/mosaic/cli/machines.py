"""`mosaic machines`: where runs can go: this machine and the nodes of clusters, what is free there, and who uses it."""

import argparse
import json
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

from mosaic.cli.connection import connected, host_of
from mosaic.cli.table import render_table
from mosaic.cli.verb import add_json, add_verb
from mosaic.engines.cluster import RAY, SLURM, cluster_names, load_cluster
from mosaic.engines.ray import Ray, RayNode
from mosaic.engines.slurm import Slurm
from mosaic.model.errors import MosaicError
from mosaic.model.machine import format_memory
from mosaic.model.rundir import StateRoot
from mosaic.model.states import RunState

if TYPE_CHECKING:
    from mosaic.cli.verb import Verbs
    from mosaic.client import Run
    from mosaic.wire import mosaic_pb2 as pb

EXAMPLES = """
mosaic machines
mosaic machines --json
"""
HEADINGS = ("PLACE", "NODE", "STATE", "CPUS FREE", "GPUS FREE", "OURS", "OTHERS'", "MEMORY", "OUR RUNS", "WAITING")


@dataclass(frozen=True)
class Row:
    """One machine. CPUs in use count all users, not only us."""

    place: str
    node: str
    state: str
    cpus: float
    cpus_free: float
    gpus: int
    gpus_free: int
    gpus_ours: int
    our_runs: int
    waiting: int  # runs of ours that wait for this place; of a cluster in its first row
    queued: int  # the same with the jobs of all others
    memory_mb: int

    @property
    def gpus_others(self) -> int:
        return max(0, self.gpus - self.gpus_free - self.gpus_ours)


def add_verbs(verbs: "Verbs") -> None:
    parser = add_verb(verbs, "machines", show_machines, "list the machines that runs can go to", EXAMPLES)
    add_json(parser)


def show_machines(args: argparse.Namespace) -> int:
    with connected(args) as client:
        health, live = client.health(), [run for run in client.list_runs().runs if not run.state.is_over]
    rows = [_here(health, live)]
    problems: list[str] = []
    if not host_of(args):  # the clusters of another machine are asked from there
        found, problems = _clusters(StateRoot.from_environment(), live)
        rows += found
    if args.json:
        print(json.dumps([{**asdict(row), "gpus_others": row.gpus_others} for row in rows], indent=1))
    else:
        print(render_table(HEADINGS, [_cells(row) for row in rows], frozenset(range(3, len(HEADINGS)))))
        for problem in problems:
            print(problem)
    return 0


def _here(health: "pb.Health", live: "Iterable[Run]") -> Row:
    own = [run for run in live if not run.on]
    free = sum(not gpu.owner and not gpu.blocked for gpu in health.gpus)
    waiting = sum(run.state is RunState.INIT for run in own)
    return Row(
        place="local",
        node="",
        state="up" if health.healthy else "problem",
        cpus=health.cpus,
        cpus_free=max(0.0, health.cpus - health.cpus_requested),
        gpus=len(health.gpus),
        gpus_free=free,
        gpus_ours=sum(bool(gpu.owner) for gpu in health.gpus),
        our_runs=sum(run.state is not RunState.INIT for run in own),
        waiting=waiting,
        queued=waiting,
        memory_mb=health.memory_mb,
    )


def _clusters(root: StateRoot, live: "list[Run]") -> tuple[list[Row], list[str]]:
    rows: list[Row] = []
    problems: list[str] = []
    for name in cluster_names(root):
        try:
            cluster = load_cluster(root, name)
            rows += (
                _of_ray(name, Ray(cluster), live) if cluster.engine == RAY else _of_slurm(name, Slurm(cluster), live)
            )
        except MosaicError as error:
            # `slurm` and `ray` need no file: where there is none at all, that is nothing to report.
            if name not in (SLURM, RAY) or (root.clusters / f"{name}.toml").exists():
                problems.append(f"{name}: {error}")
    return rows, problems


def _of_ray(name: str, ray: Ray, live: "list[Run]") -> list[Row]:
    own = [run for run in live if run.on.partition(":")[0] == name]
    found = [_of_node(name, node, own) for node in sorted(ray.nodes(), key=lambda node: node.name)]
    return _with_waiting(found, own, sum(job.status == "PENDING" for job in ray.jobs()))


def _of_node(name: str, node: RayNode, own: "list[Run]") -> Row:
    there = _running_on(node.name, own)
    return Row(
        place=name,
        node=node.name,
        state=node.state,
        cpus=node.cpus,
        cpus_free=max(0.0, node.cpus - node.cpus_used),
        gpus=node.gpus,
        gpus_free=max(0, int(node.gpus - node.gpus_used)),
        gpus_ours=sum(run.gpus_requested for run in there),
        our_runs=len(there),
        waiting=0,
        queued=0,
        memory_mb=node.memory_mb,
    )


def _of_slurm(name: str, slurm: Slurm, live: "list[Run]") -> list[Row]:
    own = [run for run in live if run.on.partition(":")[0] == name]
    rows: dict[str, Row] = {}
    for node, partition, state, cpus, gres, used, memory, _ in sorted(slurm.nodes()):
        place = f"{name}:{partition}"
        if node in rows:
            rows[node] = replace(rows[node], place=f"{rows[node].place},{partition}")
            continue
        counts = [int(part) if part.isdigit() else 0 for part in (cpus.split("/") + ["0"] * 4)[:4]]
        gpus, there = _gpus(gres), _running_on(node, own)
        rows[node] = Row(
            place=place,
            node=node,
            state=state,
            cpus=counts[3],
            cpus_free=counts[1],
            gpus=gpus,
            gpus_free=max(0, gpus - _gpus(used)),
            gpus_ours=sum(run.gpus_requested for run in there),
            our_runs=len(there),
            waiting=0,
            queued=0,
            memory_mb=int(memory) if memory.isdigit() else 0,
        )
    return _with_waiting(list(rows.values()), own, slurm.waiting())


def _running_on(node: str, own: "list[Run]") -> "list[Run]":
    return [run for run in own if run.node == node and run.state is not RunState.INIT]


def _with_waiting(found: list[Row], own: "list[Run]", queued: int) -> list[Row]:
    """Runs that wait belong to no node: they are counted in the first row."""
    waiting = sum(run.state is RunState.INIT for run in own)
    # A run that its cluster has not been given yet is not in its queue.
    return [replace(found[0], waiting=waiting, queued=max(waiting, queued)), *found[1:]] if found else []


def _gpus(gres: str) -> int:
    """The number in gpu:2, gpu:a100:4 or gpu:1(IDX:0), with several of them added up."""
    return sum(int(number) for number in re.findall(r"gpu(?::[^:,()]+)?:(\d+)", gres))


def _cells(row: Row) -> list[str]:
    gpus = [f"{row.gpus_free} of {row.gpus}", f"{row.gpus_ours}", f"{row.gpus_others}"] if row.gpus else ["-"] * 3
    memory = format_memory(row.memory_mb) if row.memory_mb else "-"
    free = f"{row.cpus_free:g} of {row.cpus:g}"
    waiting = f"{row.waiting} of {row.queued}" if row.queued else "-"
    return [row.place, row.node or "-", row.state, free, *gpus, memory, str(row.our_runs), waiting]
