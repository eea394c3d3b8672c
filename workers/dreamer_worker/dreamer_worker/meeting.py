"""The parts of a run (ADR 54): where they join it, and what a part does.

    part ── join(name, index, count) ──▶ meeting, in the launcher of the run
         ◀── the config of the run, with its addresses
    replay ── serves(address) ─────────▶ the agent is started, or started again, with that address

Only a part that knows the run's secret is heard. A part keeps its connection to the meeting: without it for a while it
ends, because its run is gone.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import TimeoutError as Late
from typing import TYPE_CHECKING, Any

from mosaic_sdk.cli import WorkFailed, conduct
from mosaic_sdk.config import ConfigError
from mosaic_sdk.heartbeat import Heartbeat
from mosaic_sdk.names import WorkerEnv
from mosaic_sdk.parts import Part, Wanted, host_towards

from dreamer_worker.config import DreamerConfig
from dreamer_worker.rpc import Client, RpcError, Server, free_address
from dreamer_worker.rpc.address import split_address
from dreamer_worker.telemetry import Telemetry

if TYPE_CHECKING:
    from dreamer_worker.far_vault import Keeper

ENV, REPLAY = "env", "replay"
HEARTBEAT_S = 15.0
PATIENCE_S = 60.0  # of a part without its run
LOOK_S = 2.0
_OWN = ("run_id", "secret", "logdir", "checkpoint")  # each run has its own


def with_parts(config: DreamerConfig, wanted: Wanted) -> DreamerConfig:
    """The config of a run whose parts are runs of their own: they reach its actor and its logger."""
    if config.script != "parallel":
        raise ConfigError(f"script: {config.script} is one process, so it has no parts. Use script=parallel.")
    envs = config.envs + config.eval_envs
    if wanted.counts.get(ENV, 0) > envs:
        raise ConfigError(f"envs: there are {envs} envs for {wanted.counts[ENV]} runs of the part env. Start fewer.")
    if wanted.counts.get(REPLAY, 0) > 1:
        raise ConfigError(f"A run has one replay. Start one run of the part replay, not {wanted.counts[REPLAY]}.")
    if REPLAY in wanted.counts and not config.agent_process:
        raise ConfigError("agent_process: must be true if the replay is a part: the agent is restarted with it.")
    host = host_towards(wanted.towards)
    taken = {name: free_address(host) for name in ("actor_addr", "logger_addr") if getattr(config, name) == "auto"}
    remote = {f"remote_{kind}": part in wanted.counts for kind, part in (("envs", ENV), ("replay", REPLAY))}
    changes: dict[str, Any] = {"secret": wanted.secret, **remote, **taken}
    return config.replace(**changes)


class Meeting:
    """Where the parts of a run join it."""

    def __init__(self, config: DreamerConfig, wanted: Wanted, keeper: Keeper) -> None:
        shared = {name: value for name, value in config.to_dict().items() if name not in _OWN}
        self._config = json.dumps(shared)  # as text: the format of calls is for arrays
        self._counts = wanted.counts
        self._server = Server(f"{host_towards(wanted.towards)}:0", wanted.secret, "meeting")
        self._server.bind("join", self._join)
        self._server.bind("serves", self._serves)
        keeper.serve_at(self._server)
        self._keeper = keeper
        self._lock = threading.Lock()
        self._replay = ""  # its address
        self._replay_is_known = threading.Event()
        self._on_replay: Callable[[str], None] = lambda _: None

    @property
    def has_replay(self) -> bool:
        """Whether the replay is a part."""
        return REPLAY in self._counts

    @property
    def address(self) -> str:
        return self._server.address

    def start(self) -> Meeting:
        self._server.start()
        return self

    def close(self) -> None:
        self._server.close()

    def wait_for_replay(self) -> str:
        """The address of the replay, once it has joined."""
        while not self._replay_is_known.wait(LOOK_S):
            pass  # in steps: a signal ends the wait
        return self._replay

    def follow_replay(self, known: str, moved: Callable[[str], None]) -> None:
        """Call `moved` with the address of each later replay. `known`: the one that the caller uses."""
        with self._lock:
            self._on_replay = moved
            if self._replay != known:
                moved(self._replay)

    def _serves(self, address: str) -> None:
        split_address(address)
        with self._lock:
            self._replay = address
            # Before the answer: the replay fetches the newest checkpoint then, and no older agent may save another.
            self._on_replay(address)
            self._keeper.take_from(address)
            self._replay_is_known.set()

    def _join(self, name: str, index: int, count: int) -> str:
        if self._counts.get(name) != count:
            raise ValueError(f"this run has no part {name} of {count} runs")
        print(f"{name}-{index} has joined the run.", file=sys.stderr, flush=True)
        return self._config


def run_part(part: Part, run_id: str) -> int:
    """The work of a part until it is stopped, or until its run is gone; returns the exit code."""
    telemetry = Telemetry(run_id=run_id)
    return conduct(lambda: _take_part(part, run_id, telemetry), telemetry)


def _take_part(part: Part, run_id: str, telemetry: Telemetry) -> dict[str, Any]:
    from dreamer_worker import parallel
    from dreamer_worker.supervisor import RoleFailed

    client = Client(part.address, part.secret)
    config = _join(client, part, run_id)
    if part.name == REPLAY:
        config = _serve_replay(client, part, config)
    names = names_of(part, config)
    print(f"{part.name}-{part.index}: {', '.join(names)}", file=sys.stderr, flush=True)
    with Heartbeat(HEARTBEAT_S, emitter=telemetry):
        supervisor = parallel.supervise_role(config, names, part.address)
        watch = Watch(client, supervisor.finish)
        try:
            supervisor.run()
        except RoleFailed as error:
            raise WorkFailed(str(error)) from None
        finally:
            watch.stop()
            client.close()
    raise WorkFailed(f"The run at {part.address} has not answered for {PATIENCE_S:.0f} s.")


def _join(client: Client, part: Part, run_id: str) -> DreamerConfig:
    """The config of the run, for this part of it."""
    try:
        answer = client.ask("join", part.name, part.index, part.count, timeout_s=PATIENCE_S)
    except Late:
        raise WorkFailed(f"No answer from the run at {part.address} within {PATIENCE_S:.0f} s.") from None
    except RpcError as error:
        raise WorkFailed(f"The run at {part.address} refused this part: {error}") from None
    own = {"run_id": run_id, "logdir": os.environ.get(WorkerEnv.RUN_DIR, ""), "secret": part.secret}
    return DreamerConfig.from_dict({**json.loads(answer), **own})


def _serve_replay(client: Client, part: Part, config: DreamerConfig) -> DreamerConfig:
    """Choose the replay's address, where the run reaches it, and say it to the run."""
    host, _ = split_address(part.address)
    config = config.replace(replay_addr=free_address(host_towards(host)))
    client.ask("serves", config.replay_addr)
    return config


def names_of(part: Part, config: DreamerConfig) -> list[str]:
    """The processes of a part."""
    if part.name != ENV:
        return [part.name]
    return [f"env{number}" for number in part.share(config.envs + config.eval_envs)]


class Watch:
    """Calls `lost` once, if there was no connection to the run for PATIENCE_S."""

    def __init__(self, client: Client, lost: Any, patience_s: float = PATIENCE_S) -> None:
        self._client = client
        self._lost = lost
        self._patience_s = patience_s
        self._stop = threading.Event()
        threading.Thread(target=self._run, name="watch-run", daemon=True).start()

    def stop(self) -> None:
        self._stop.set()

    def _run(self) -> None:
        seen = time.monotonic()
        while not self._stop.wait(LOOK_S):
            if self._client.wait_connected(0):
                seen = time.monotonic()
            elif time.monotonic() - seen > self._patience_s:
                self._lost()
                return
