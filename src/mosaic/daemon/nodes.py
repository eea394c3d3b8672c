"""Runs on other machines: the launcher of each cluster, and the listener that their tailers connect to."""

import asyncio
import logging
import math
import socket
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from mosaic.daemon.certificate import load_certificate
from mosaic.daemon.endpoints import Endpoints
from mosaic.daemon.settings import Settings
from mosaic.dispatch.launch_plan import Far
from mosaic.dispatch.local_launcher import LocalLauncher
from mosaic.dispatch.ray_launcher import RayLauncher
from mosaic.dispatch.slurm_launcher import SlurmLauncher
from mosaic.engines.cluster import RAY, Cluster, load_cluster, split_place
from mosaic.engines.ray import Ray
from mosaic.engines.slurm import Slurm, SlurmRefused
from mosaic.model.durations import parse_duration
from mosaic.model.errors import AddressTaken, BadConfig, MosaicError
from mosaic.model.run import RunConfig, RunRecord
from mosaic.model.rundir import StateRoot

log = logging.getLogger(__name__)
_ELSEWHERE = ("192.0.2.1", 9)  # an address that is nobody's: no packet is sent
KNOWN_S = 300.0
_OF_NODES = ("python", "root", "environments")  # settings that a launch without a shared file system needs
MARGIN_S = 2.0  # between the end of the grace period and Slurm's SIGKILL: the holder writes down how the run ended


class Nodes:
    def __init__(
        self,
        root: StateRoot,
        endpoints: Endpoints,
        local: LocalLauncher,
        settings: Settings,
        cpu_of: Callable[[str], float | None] = lambda _: None,
    ) -> None:
        """`cpu_of`: the CPU seconds of a run, as its node reports them."""
        self._cpu_of = cpu_of
        self._kill_wait: dict[str, tuple[float, float]] = {}  # by cluster: when it was asked, and its answer
        self._root = root
        self._endpoints = endpoints
        self._local = local
        self._settings = settings
        self._launchers: dict[str, tuple[Slurm, SlurmLauncher] | tuple[Ray, RayLauncher]] = {}
        self._opening = asyncio.Lock()

    def launcher(self, name: str) -> SlurmLauncher | RayLauncher:
        """The launcher of a cluster; BadConfig if there is no such cluster."""
        if name not in self._launchers:
            self._use(load_cluster(self._root, name))
        return self._launchers[name][1]

    async def _engine(self, name: str) -> Slurm | Ray:
        """The engine of a cluster with the settings that its file has now."""
        cluster = await asyncio.to_thread(load_cluster, self._root, name)
        self._use(cluster)
        return self._launchers[name][0]

    def _use(self, cluster: Cluster) -> None:
        known = self._launchers.get(cluster.name)
        if known and known[0].cluster.engine == cluster.engine:
            if known[0].cluster != cluster:
                known[0].cluster = cluster
                self._kill_wait.pop(cluster.name, None)
        elif cluster.engine == RAY:
            ray = Ray(cluster)
            self._launchers[cluster.name] = ray, RayLauncher(ray, self._local, cpu_of=self._cpu_of)
        else:
            slurm = Slurm(cluster)
            self._launchers[cluster.name] = slurm, SlurmLauncher(slurm, self._local, cpu_of=self._cpu_of)

    async def far(self, record: RunRecord) -> Far:
        """What the launch of a run on another machine needs."""
        name, partition = split_place(record.on)
        cluster = (await self._engine(name)).cluster
        address = await self.open(cluster)
        _, certificate = await asyncio.to_thread(load_certificate, self._root)
        wants = record.resources
        resources: dict[str, Any] = {
            "partition": partition,
            "cpus": wants.cpus,
            "memory_mb": wants.memory_mb,
            "gpus": record.gpus.requested,
            "default_time_s": _seconds(cluster) if cluster.time else None,
        }
        lost_s = cluster.stop_after_lost_contact_s
        node = {name: getattr(cluster, name) for name in _OF_NODES} if cluster.engine == RAY else None
        heartbeat_s = record.limits.heartbeat_s
        return Far(cluster.reach or address, certificate.decode(), resources, heartbeat_s, lost_s, node)

    async def towards(self, places: Iterable[str]) -> str:
        """A host that leads runs at these places to each other; loopback if all are on this machine."""
        far = next(filter(None, places), "")
        if not far:
            return "127.0.0.1"
        cluster = await asyncio.to_thread(load_cluster, self._root, split_place(far)[0])
        return (cluster.reach or await self.open(cluster)).rpartition(":")[0]

    async def open(self, cluster: Cluster | None = None) -> str:
        """Listen for nodes, where the last daemon did if there was one: live tailers know no other address."""
        async with self._opening:
            if self._endpoints.nodes:
                return self._endpoints.nodes
            key, certificate = await asyncio.to_thread(load_certificate, self._root)
            wanted = self._settings.nodes or (cluster.listen if cluster else "") or f"{_own_address()}:0"
            wanted = wanted if ":" in wanted else f"{wanted}:0"
            address = await self._endpoints.open_nodes(wanted, key, certificate)
            if address != self._settings.nodes:
                self._settings = replace(self._settings, nodes=address)
                replace(Settings.load(self._root), nodes=address).save(self._root)
            log.info("Tailers on other machines reach this daemon at %s.", address)
            return address

    async def open_stored(self) -> None:
        """At the start of a daemon whose predecessor had runs on other machines."""
        if not self._settings.nodes:
            return
        try:
            await self.open()
        except (AddressTaken, MosaicError, OSError) as error:
            # Not a reason not to serve this machine's runs.
            log.error("Tailers on other machines cannot reach this daemon at %s: %s", self._settings.nodes, error)

    async def note(self, config: RunConfig) -> str:
        """What a user should know about a run on a cluster before it starts; empty if there is nothing."""
        if not config.on:
            return ""
        name, _ = split_place(config.on)
        slurm = await self._engine(name)
        if isinstance(slurm, Ray):
            return ""  # it is told how long to wait
        try:
            kill_wait_s = await self._kill_wait_s(name, slurm)
        except SlurmRefused as error:
            # Not a controller that is away for a while: waiting would not help.
            file = self._root.clusters / f"{name}.toml"
            why = f"Slurm cannot be used from this machine: {error} If slurm.conf is elsewhere, set `conf` in {file}."
            raise BadConfig("payload.on", why) from None
        except MosaicError as error:
            return f"Slurm does not answer now: {error}"
        grace_s = config.limits.grace_s
        if grace_s <= kill_wait_s - MARGIN_S:
            return ""
        return (
            f"its grace period of {grace_s:g} s is cut short by Slurm, whose KillWait is {kill_wait_s:g} s, if Slurm "
            f"itself ends it (preemption, scancel, time limit of the partition); limits.grace_s up to "
            f"{max(kill_wait_s - MARGIN_S, 0):g} s is safe"
        )

    async def _kill_wait_s(self, name: str, slurm: Slurm) -> float:
        """Slurm's KillWait. Kept for some minutes: asking for it takes longer than all other checks of a submit."""
        at, known = self._kill_wait.get(name, (-math.inf, 0.0))
        if time.monotonic() - at > KNOWN_S:
            known = await asyncio.to_thread(slurm.kill_wait_s)
            self._kill_wait[name] = time.monotonic(), known
        return known


def _seconds(cluster: Cluster) -> float:
    try:
        return parse_duration(cluster.time)
    except ValueError as error:
        raise MosaicError(f"The setting time of the cluster '{cluster.name}': {error}") from None


def _own_address() -> str:
    """The address under which other machines see this one, as far as the routing table tells."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(_ELSEWHERE)
            return str(probe.getsockname()[0])
        except OSError:
            return "127.0.0.1"
