"""The agent's process: actor and learner as threads around one agent, and the checkpoint of the whole run."""

from __future__ import annotations

import logging
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import TimeoutError as Late
from concurrent.futures import wait
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

from dreamer_worker import settings
from dreamer_worker.actor import ActorService
from dreamer_worker.checkpoint import Claim, Counters, Epochs, read_arrays, write_arrays
from dreamer_worker.config import DreamerConfig
from dreamer_worker.learner import Learner
from dreamer_worker.life import Life
from dreamer_worker.rpc import LEAVING_S, Caller, Client, Disconnected, RpcError, Server
from dreamer_worker.schedule import Schedule

log = logging.getLogger(__name__)

PART = "agent.npz"
SAVE_S = 120.0
LAST_SAVE_S = 5.0  # of a run that is stopped, within its grace period
LAST_TRIES = 3  # of a run that is done
PATIENCE_S = 1.0


class Saver:
    """Saves checkpoints: actor and learner pause while each part takes its snapshot; the files are written afterwards.

    An epoch is committed when all parts are on disk. If anything fails before that, the previous one stays in force.
    """

    def __init__(
        self, agent: Any, actor: ActorService, learner: Learner, config: DreamerConfig, counters: Counters
    ) -> None:
        self.epochs = Epochs(config.checkpoint_dir)
        self._agent, self._actor, self._learner = agent, actor, learner
        self._counters = counters
        self._settings = settings.kept(config)
        self._parts = [Client(address, config.secret) for address in (config.replay_addr, config.logger_addr)]
        self._lock = threading.Lock()
        self._epoch = 0  # the last one tried: a late part never writes into a newer one

    def begin(self) -> None:
        """Wait for a replay that is at the same epoch as this launch of the run."""
        self._parts[0].ask("begin", self._counters["launches"])

    def save(self, limit_s: float = SAVE_S) -> int | None:
        """Save the whole run; returns the epoch, or None if it could not be saved in time."""
        until = time.monotonic() + limit_s
        with self._lock:
            self._epoch = max(self._epoch + 1, self.epochs.next_number())
            try:
                self._save(self._epoch, until)
                return self._epoch
            except (Late, RpcError, Disconnected, OSError) as error:
                log.warning("this checkpoint was skipped: %s: %s", type(error).__name__, error)
                self._release()
                self.epochs.abandon(self._epoch)
                return None

    def close(self) -> None:
        for part in self._parts:
            part.close()

    def _release(self) -> None:
        """The checkpoint was given up: put the limiter back in force."""
        try:
            self._parts[0].call("release")
        except Disconnected:
            pass  # closing

    def _save(self, epoch: int, until: float) -> None:
        replay, logger = self._parts
        with ExitStack() as pause:
            for turn in (self._actor.turn, self._learner.turn):
                self._await(partial(turn.acquire, timeout=PATIENCE_S), until)
                pause.callback(turn.release)
            self._await(lambda: self._actor.drain(PATIENCE_S), until)
            folder = self.epochs.begin(epoch)
            for part in (replay, logger):
                part.ask("snapshot", epoch, timeout_s=_left(until))
            learned, counters = self._agent.freeze(), self._counters.to_dict()
        writing = [part.call("write", epoch) for part in (replay, logger)]
        try:
            write_arrays(folder / PART, learned())
        finally:
            wait(writing, _left(until))  # also after an error: the epoch is removed then, and no part may still write
        for written in writing:
            written.result(0)
        self.epochs.commit(epoch, counters, self._settings)
        logger.call("saved", str(folder), {"epoch": epoch, "step": counters["env_steps"]})

    @contextmanager
    def standstill(self, limit_s: float = SAVE_S) -> Iterator[None]:
        """Inside, nothing is played and nothing is learned."""
        until = time.monotonic() + limit_s
        with self._lock, ExitStack() as pause:
            try:
                for turn in (self._actor.turn, self._learner.turn):
                    self._await(partial(turn.acquire, timeout=PATIENCE_S), until)
                    pause.callback(turn.release)
            finally:
                self._release()
            yield

    def _await(self, comes_to_rest: Callable[[], bool], until: float) -> None:
        """Wait while the limiter admits pending inserts. Asked again each time, in case the replay was restarted."""
        self._parts[0].ask("prepare", timeout_s=_left(until))
        while not comes_to_rest():
            if not _left(until):
                raise Late("an update or a policy call takes longer than the time limit")
            self._parts[0].ask("prepare", timeout_s=_left(until))


class Judge:
    """Evaluates the agent when due, while actor and learner pause."""

    def __init__(self, agent: Any, config: DreamerConfig, counters: Counters, saver: Saver, logger: Caller) -> None:
        from dreamer_worker.best import Evaluator

        self._saver = saver
        self._evaluator = Evaluator(agent, config, counters, logger)

    def look(self) -> None:
        if not self._evaluator.is_due():
            return
        try:
            with self._saver.standstill():
                self._evaluator.evaluate()
        except (Late, RpcError, Disconnected) as error:
            log.warning("this evaluation was skipped: %s", error)


def restore(agent: Any, epochs: Epochs) -> int | None:
    """Load the agent of the newest complete epoch; returns the epoch, if any."""
    epoch = epochs.newest()
    if epoch is not None:
        agent.load(read_arrays(epochs.path(epoch) / PART))
    return epoch


def run_agent(life: Life, make_agent: Callable[[], Any], config: DreamerConfig) -> None:
    """The work of an agent process; returns when the run has its steps or is stopped."""
    claim = Claim(config.checkpoint_dir).take()
    counters = Counters(f"{config.logdir}/counters.bin")
    server = Server(config.actor_addr, config.secret, "actor", LEAVING_S)
    agent = make_agent()
    agent.never_waits = True
    actor = ActorService(agent, config, counters, server)
    learner = Learner.connect(agent, config, counters)
    saver = Saver(agent, actor, learner, config, counters)
    judge = Judge(agent, config, counters, saver, learner.logger)
    schedule = Schedule(config, partial(log_metrics, learner, actor), learner.report, judge.look, saver.save)
    over = threading.Event()
    actor.on_done = over.set
    crew = Crew(over)
    # Nothing is played or saved before the agent is restored.
    restored = threading.Event()

    def learn() -> None:
        restore(agent, saver.epochs)
        saver.begin()
        restored.set()
        learner.run(between=partial(while_connected, schedule.run_due))

    def act() -> None:
        restored.wait()
        life.ready()
        actor.run()

    def end_with_life() -> None:
        life.wait()
        over.set()

    crew.start("learner", learn)
    crew.start("actor", act)
    threading.Thread(target=end_with_life, name="lifeline", daemon=True).start()
    over.wait()
    # Steps after the last checkpoint would be counted but not saved.
    actor.stop()
    learner.stop()
    if crew.error is None and restored.is_set():
        if not life.is_over:
            judge.look()  # the last evaluation of a run that has its steps
        save_last(saver, learner, life)
    actor.close()
    learner.close()
    saver.close()
    server.close()
    claim.release()
    if crew.error is not None:
        raise crew.error


def log_metrics(learner: Learner, actor: ActorService) -> None:
    """What both threads measured goes to the logger, unless it is restarting."""
    stats = learner.stats()
    if not learner.logger.wait_connected(0):
        return
    learner.log_update()
    learner.logger.call("metrics", "learner", stats)
    learner.logger.call("metrics", "actor", actor.stats())


def while_connected(work: Callable[[], None]) -> None:
    try:
        work()
    except Disconnected:
        pass  # the agent is closing


def save_last(saver: Saver, learner: Learner, life: Life) -> None:
    """Save the last checkpoint. A run that is stopped has little time for it. A finished run waits for an update that
    is still compiling, and for a replay or logger that was just restarted."""
    for _ in range(LAST_TRIES):
        while not life.is_over and not learner.rests(1.0):
            pass  # it compiles: only check whether the run is stopped
        if saver.save(LAST_SAVE_S if life.is_over else SAVE_S) is not None:
            return
        if life.is_over:
            break
    log.error("the run ends without a last checkpoint: progress since the previous one is lost")


class Crew:
    """Threads that end together: one that fails ends all."""

    def __init__(self, over: threading.Event) -> None:
        self.error: Exception | None = None
        self._over = over

    def start(self, name: str, work: Callable[[], Any]) -> None:
        threading.Thread(target=self._run, args=(work,), name=name, daemon=True).start()

    def _run(self, work: Callable[[], Any]) -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001  the edge of the thread: the process ends with this error
            if self._over.is_set():
                return  # it was being closed
            traceback.print_exc()
            self.error = self.error or error
            self._over.set()


def _left(until: float) -> float:
    return max(0.0, until - time.monotonic())
