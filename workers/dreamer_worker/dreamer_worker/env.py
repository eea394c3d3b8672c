"""An env process: plays one env with the actions that the actor gives, for as long as the run lasts."""

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
    """The whole life of an env process. An actor that is gone is waited for; then a new episode begins."""
    watchdog = Watchdog(config.env_timeout_s)
    watchdog.note()
    env = make_env(index)
    screen = Screen(index, env.render)
    actor = Client(config.actor_addr, config.secret, max_inflight=1, resend=False)
    logger = Client(config.logger_addr, config.secret, max_inflight=2) if index == 0 else None
    voice = Voice(logger, config.log_every_s) if logger else None
    life.ready()
    player = Player(life, env, index, actor, screen, voice, watchdog)
    try:
        while not life.is_over:
            watchdog.note()
            # A connection rarely takes so long; then it is looked whether the run is over.
            if actor.wait_connected(1.0):
                play(player)
    finally:
        screen.close()
        env.close()


def play(player: Player) -> None:
    """Until the actor or the run is gone."""
    try:
        player.play()
    except Disconnected as error:
        log.info("env %d lost its actor (%s); it begins a new episode with the next", player.index, error)


class Player:
    """Plays episodes until the actor or the run is gone."""

    def __init__(
        self,
        life: Life,
        env: Env,
        index: int,
        actor: Client,
        screen: Screen,
        voice: Voice | None,
        watchdog: Watchdog,
    ) -> None:
        self.life, self.env, self.index = life, env, index
        self.actor, self.screen, self.voice = actor, screen, voice
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
            if self.voice:
                self.voice.note(self.timers)

    def _ask(self, obs: Obs) -> dict[str, Any] | None:
        """The actor's choice; None when the run ended meanwhile."""
        future = self.actor.call("act", self.index, obs)
        while not self.life.is_over:
            self.watchdog.note()
            try:
                chosen: dict[str, Any] = future.result(1.0)
                return chosen
            except Late:
                continue  # the limiter may hold the actor for minutes; only the end of the run is looked for
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
    """Ends this process, with its traceback, when nothing was noted for `limit_s`: an env that never comes back from a
    step is started anew. It works from inside a library that holds Python up, too, and costs next to nothing."""

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._again = Clock(limit_s / 10, due=True)

    def note(self) -> None:
        if self._again.is_due():
            faulthandler.dump_traceback_later(self._limit_s, exit=True)


class Voice:
    """What the first env tells the logger of itself."""

    def __init__(self, logger: Client, every_s: float) -> None:
        self.logger = logger
        self._rate = Rate()
        self._clock = Clock(every_s)

    def note(self, timers: Timers) -> None:
        self._rate.add()
        if self._clock.is_due() and self.logger.wait_connected(0):
            told = {"fps": self._rate.per_second(), **timers.stats(), **usage()}
            self.logger.call("metrics", "env0", told)
