"""PettingZoo: games that agents play in turns (AEC) or all at once (parallel).

One episode of the game is one line. Its return is the sum of the agents', and `metadata.returns` has each one's.
"""

import weakref
from types import ModuleType
from typing import Any, Callable, Dict

from mosaic_sdk.observe.episodes import Episodes, is_stepped_for_the_parent
from mosaic_sdk.observe.observer import Observer
from mosaic_sdk.observe.seam import call_instead
from mosaic_sdk.observe.tally import Tally, closer, own, stand_down, stand_in, tally_of
from mosaic_sdk.observe.words import note


def listen(module: ModuleType, observer: Observer) -> None:
    for name in ("env", "parallel_env", "make"):
        if callable(getattr(module, name, None)):
            call_instead(module, name, _maker(observer.episodes, "{}.{}".format(module.__name__, name)))


def _maker(episodes: Episodes, by: str) -> Callable[..., Any]:
    def make(original: Any, *args: Any, **kwargs: Any) -> Any:
        return hear_game(original(*args, **kwargs), episodes, by)

    return make


def hear_game(env: Any, episodes: Episodes, by: str) -> Any:
    """`env`, observed from now on unless it or an env inside it is already. Never raises."""
    try:
        if tally_of(env) is None and not is_stepped_for_the_parent():
            _count_game(Tally(env, episodes.new_count(env)), episodes, by)
    except Exception as error:  # noqa: BLE001  # an env is third-party code and may raise anything
        note("no episodes of {}: {}: {}".format(type(env).__name__, type(error).__name__, error))
    return env


def _count_game(tally: Tally, episodes: Episodes, by: str) -> None:
    env_step, env_reset = tally.env.step, tally.env.reset
    game = Game(episodes, tally, by)
    # In turns, the outcome of a step is in the env's attributes.
    note_step = game.note_turn if hasattr(tally.env, "agent_iter") else game.note_outcome

    def step(caller: Any, *args: Any, **kwargs: Any) -> Any:
        if caller is not tally:
            return own(caller, "step")(*args, **kwargs)
        outcome = env_step(*args, **kwargs)
        try:
            note_step(outcome)
        except Exception as error:  # noqa: BLE001  # an env is third-party code and may raise anything
            game.fail(error)
        return outcome

    def reset(caller: Any, *args: Any, **kwargs: Any) -> Any:
        if caller is not tally:
            return own(caller, "reset")(*args, **kwargs)
        outcome = env_reset(*args, **kwargs)
        game.note_reset()
        return outcome

    stand_in(tally, step, reset, closer(tally))


class Game:
    """The current episode of one game."""

    def __init__(self, episodes: Episodes, tally: Tally, by: str) -> None:
        self._episodes = episodes
        self._count = tally.count
        self._by = by
        self._env = weakref.ref(tally.env)
        self._steps = 0
        self._returns: Dict[str, float] = {}
        self._is_over = True  # until the first reset
        tally.count.read = lambda: self._steps

    def note_reset(self) -> None:
        if not self._count.is_evaluation:
            self._count.counted += self._steps
        self._steps, self._returns, self._is_over = 0, {}, False
        self._episodes.begin(self._count, self._by)

    def note_outcome(self, outcome: Any) -> None:
        _, rewards, ends, cuts, _ = outcome
        self._note(rewards, ends, cuts)

    def note_turn(self, _: None) -> None:
        env: Any = self._env()
        self._note(env.rewards, env.terminations, env.truncations)

    def fail(self, error: Exception) -> None:
        env = self._env()
        note("no more episodes of {}: {}: {}".format(type(env).__name__, type(error).__name__, error))
        stand_down(env)

    def _note(self, rewards: Any, ends: Any, cuts: Any) -> None:
        if self._is_over:
            return  # the turns of agents that are out of the game already
        self._steps += 1
        for agent, reward in rewards.items():
            self._returns[agent] = self._returns.get(agent, 0.0) + float(reward)
        if all(ends[agent] or cuts[agent] for agent in ends):
            self._end(terminated=any(ends.values()), truncated=not any(ends.values()))

    def _end(self, **how: bool) -> None:
        steps, returns = self._steps, self._returns
        self._steps, self._is_over = 0, True
        self._episodes.tell(
            self._count,
            sum(returns.values()),
            steps,
            metadata={"returns": {str(k): v for k, v in returns.items()}},
            **how,
        )
