"""An env process: plays one env with the actor's actions until the run ends."""

from __future__ import annotations

import faulthandler
import logging
from collections.abc import Callable
from concurrent.futures import TimeoutError as Late
from typing import Any

from dreamer_worker.config import DreamerConfig
from dreamer_worker.envs import Env, Obs
from dreamer_worker.fastlane import Screen
from dreamer_worker.life import Life
from dreamer_worker.rpc import Client, Disconnected
from dreamer_worker.timers import Clock, Rate, Timers, usage

log = logging.getLogger(__name__)


def run_env(life: Life, make_env: Callable[[int], Env], index: int, config: DreamerConfig) -> None:
    """The work of an env process. When the actor is gone, wait for the next one and begin a new episode."""
    watchdog = Watchdog(config.env_timeout_s)
    watchdog.note()
    env = make_env(index)
    screen = Screen(index, env.render)
    actor = Client(config.actor_addr, config.secret, max_inflight=1, resend=False)
    logger = Client(config.logger_addr, config.secret, max_inflight=2) if index == 0 else None
    reporter = Reporter(logger, config.log_every_s) if logger else None
    life.ready()
    player = Player(life, env, index, actor, screen, reporter, watchdog)
    try:
        while not life.is_over:
            watchdog.note()
            # A timeout only to check whether the run is over.
            if actor.wait_connected(1.0):
                play(player)
    finally:
        screen.close()
        env.close()


def play(player: Player) -> None:
    """Play until the actor is gone or the run is over."""
    try:
        player.play()
    except Disconnected as error:
        log.info("env %d lost its actor (%s); it begins a new episode with the next one", player.index, error)


class Player:
    """Plays episodes until the actor is gone or the run is over."""

    def __init__(
        self,
        life: Life,
        env: Env,
        index: int,
        actor: Client,
        screen: Screen,
        reporter: Reporter | None,
        watchdog: Watchdog,
    ) -> None:
        self.life, self.env, self.index = life, env, index
        self.actor, self.screen, self.reporter = actor, screen, reporter
        self.watchdog = watchdog
        self.timers = Timers()

    def play(self) -> None:
        obs = self._begin()
        while not self.life.is_over:
            with self.timers.section("act"):
                action = self._ask(obs)
            if action is None:
                return
            with self.timers.section("step"):
                obs = self._begin() if obs["is_last"] else self._step(action)
            if self.reporter:
                self.reporter.note(self.timers)

    def _ask(self, obs: Obs) -> dict[str, Any] | None:
        """The actor's action, or None if the run ended meanwhile."""
        future = self.actor.call("act", self.index, obs)
        while not self.life.is_over:
            self.watchdog.note()
            try:
                chosen: dict[str, Any] = future.result(1.0)
                return chosen
            except Late:
                continue  # the limiter may hold the actor for minutes: only check for the end of the run
        return None

    def _begin(self) -> Obs:
        obs = self.env.reset()
        self.screen.note(obs)
        return obs

    def _step(self, action: dict[str, Any]) -> Obs:
        obs = self.env.step(action)
        self.screen.note(obs)
        return obs


class Watchdog:
    """Ends this process with a traceback when nothing was noted for `limit_s`, so that an env that hangs in a step is
    restarted. It also works while a library blocks the interpreter, and costs next to nothing."""

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._again = Clock(limit_s / 10, due=True)

    def note(self) -> None:
        if self._again.is_due():
            faulthandler.dump_traceback_later(self._limit_s, exit=True)


class Reporter:
    """Sends the metrics of the first env process to the logger."""

    def __init__(self, logger: Client, every_s: float) -> None:
        self.logger = logger
        self._rate = Rate()
        self._clock = Clock(every_s)

    def note(self, timers: Timers) -> None:
        self._rate.add()
        if self._clock.is_due() and self.logger.wait_connected(0):
            stats = {"fps": self._rate.per_second(), **timers.stats(), **usage()}
            self.logger.call("metrics", "env0", stats)
