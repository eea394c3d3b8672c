"""The wrapper that shows an env while someone watches, for Gymnasium, Gym, PettingZoo and envs with the same methods.

    env = maybe_wrap_env(gymnasium.make("CartPole-v1", render_mode="rgb_array"))

MOSAIC's import hook does this automatically for envs from `gymnasium.make`. No library is imported here: the wrapper
derives from the wrapper class of the library that the env belongs to.
"""

import importlib
import sys
import weakref
from functools import lru_cache
from typing import Any, Callable, Optional, Tuple

from mosaic_sdk.fastlane.grid import lay_out
from mosaic_sdk.fastlane.lane import Lane, as_image, note
from mosaic_sdk.fastlane.settings import Settings
from mosaic_sdk.fastlane.slots import Slots, place_in_run

_slots = Slots()


def is_fastlane_enabled() -> bool:
    """Whether MOSAIC asked this process for frames."""
    return Settings.of().enabled


def maybe_wrap_env(env: Any) -> Any:
    """`env` in a wrapper that shows it, or `env` itself if it is not shown. Never raises."""
    try:
        settings = Settings.of()
        is_shown = isinstance(env, Shown)  # wrapped already: one make function may call another
        return _wrap(env, settings) if settings.enabled and not is_shown else env
    except Exception as error:  # noqa: BLE001  # an env is third-party code and may raise anything; the training must continue
        note(f"no frames of {_name(env)}: {error}")
        return env


def _wrap(env: Any, settings: Settings) -> Any:
    number = _slots.take()
    lane = _lane_for(env, place_in_run(number), settings)
    shown = _wrapper_class(*_library_of(env))(env, lane, number) if lane else env
    weakref.finalize(shown, _slots.give_back, number)
    return shown


def _lane_for(env: Any, place: Optional[int], settings: Settings) -> Optional[Lane]:
    # A vector env has the numbers 0, 1 … of its envs.
    is_seen = place is not None and any(settings.shows(place + n) for n in range(_count(env)))
    if place is None or not is_seen or not _can_be_rendered(env):
        return None
    return Lane.open(settings, place)


def _can_be_rendered(env: Any) -> bool:
    """Only rgb_array can be rendered here: "human" opens a window, and a list of frames belongs to the script."""
    mode = getattr(env, "render_mode", None)
    if mode != "rgb_array":
        note(f"no frames of {_name(env)}: its render_mode is {mode!r}, and only 'rgb_array' can be shown")
    return mode == "rgb_array"


def _count(env: Any) -> int:
    vector = sys.modules.get("gymnasium.vector")
    return int(env.num_envs) if vector and isinstance(env, vector.VectorEnv) else 1


def _name(env: Any) -> str:
    try:
        return str(env.spec.id)
    except Exception:  # noqa: BLE001  # it has none; and an env's str() may do anything
        return type(env).__name__


class Shown:
    """What the wrappers of all libraries share. Its promises:

    1. The script sees the env: every result, attribute and error is the env's own.
    2. An error with frames ends the frames, with a note, and nothing else.
    3. A copy of it, also through pickle, is the env without frames: two must not write one lane.
    """

    env: Any

    def __init__(self, env: Any, lane: Lane, number: int) -> None:
        super().__init__(env)  # type: ignore[call-arg]
        self._lane = lane
        self._number = number

    def __getattr__(self, name: str) -> Any:
        if name == "env" or name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.env, name)

    def __reduce__(self) -> Tuple[Any, Tuple[Any]]:
        return _without_frames, (self.env,)

    def reset(self, *args: Any, **kwargs: Any) -> Any:
        outcome = self.env.reset(*args, **kwargs)
        try:
            self._lane.start_episode(self._picture)
        except Exception as error:  # noqa: BLE001  # an env is third-party code and may raise anything; the training must continue
            self._stop_showing(error)
        return outcome

    def close(self, **kwargs: Any) -> Any:
        self._leave()
        return self.env.close(**kwargs)

    def _picture(self) -> Any:
        return self.env.render()

    def _stop_showing(self, error: Exception) -> None:
        note(f"no more frames of {_name(self.env)}: {type(error).__name__}: {error}")
        self._leave()

    def _leave(self) -> None:
        # From here on the script calls the env directly.
        self.step, self.reset = self.env.step, self.env.reset  # type: ignore[method-assign]
        _slots.give_back(self._number)
        self._number = -1  # another env may have it by the time we are closed again
        try:
            self._lane.close()
        except OSError as error:
            note(f"the frames of {_name(self.env)} were not removed: {error}")


class ShownGym(Shown):
    """Gymnasium, and Gym before and after its 0.26."""

    @property
    def spec(self) -> Any:
        return self.env.spec  # the env's: ours would name a wrapper that does not exist elsewhere

    # Gymnasium uses hasattr, which finds the env's attributes in the wrapper, and would set them there.
    def get_wrapper_attr(self, name: str) -> Any:
        return self.env.get_wrapper_attr(name)

    def set_wrapper_attr(self, name: str, value: Any, **options: Any) -> Any:
        return self.env.set_wrapper_attr(name, value, **options)


class ShownEnv(ShownGym):
    """One env. Its step and reset are closures: in a class with __getattr__, which a wrapper needs, an attribute costs
    a tenth of a microsecond, and a training would pay for that at every step, watched or not."""

    def __init__(self, env: Any, lane: Lane, number: int) -> None:
        super().__init__(env, lane, number)
        # The closures do not refer to the wrapper: when it is dropped, it must be freed at once, with its lane.
        stop = _stopper(weakref.ref(self))
        self.step = _shown_step(env, lane, stop)
        self.reset = _shown_reset(env, lane, stop)  # type: ignore[method-assign]


def _shown_step(env: Any, lane: Lane, stop: Callable[[Exception], None]) -> Callable[[Any], Any]:
    def shown_step(action: Any) -> Any:
        outcome = env.step(action)
        try:
            lane.steps += 1
            lane.return_so_far += outcome[1]
            if outcome[2] or (outcome[3] and len(outcome) == 5):
                lane.end_episode()
            if lane.steps >= lane.next_look:
                lane.look(env.render, outcome[1])
        except Exception as error:  # noqa: BLE001  # an env is third-party code and may raise anything; the training must continue
            stop(error)
        return outcome

    return shown_step


def _shown_reset(env: Any, lane: Lane, stop: Callable[[Exception], None]) -> Callable[..., Any]:
    def shown_reset(*args: Any, **kwargs: Any) -> Any:
        outcome = env.reset(*args, **kwargs)
        try:
            lane.start_episode(env.render)
        except Exception as error:  # noqa: BLE001  # an env is third-party code and may raise anything; the training must continue
            stop(error)
        return outcome

    return shown_reset


def _stopper(shown: "weakref.ref[Shown]") -> Callable[[Exception], None]:
    def stop(error: Exception) -> None:
        wrapper = shown()
        if wrapper is not None:
            wrapper._stop_showing(error)

    return stop


class ShownVector(ShownGym):
    """A vector env that does not consist of single ones: render() returns a picture of each. Metrics: the first's."""

    def __init__(self, env: Any, lane: Lane, number: int) -> None:
        super().__init__(env, lane, number)
        settings = Settings.of()
        self._seen = [n for n in range(env.num_envs) if settings.shows(n)]

    def step(self, actions: Any) -> Any:
        outcome = self.env.step(actions)
        try:
            self._count_step(*(column[self._seen[0]] for column in outcome[1:4]))
        except Exception as error:  # noqa: BLE001  # an env is third-party code and may raise anything; the training must continue
            self._stop_showing(error)
        return outcome

    def _count_step(self, reward: Any, terminated: Any, truncated: Any) -> None:
        lane = self._lane
        lane.steps += self.env.num_envs
        lane.return_so_far += reward
        if terminated or truncated:
            lane.end_episode()
        if lane.steps >= lane.next_look:
            lane.look(self._picture, reward)

    def _picture(self) -> Any:
        frames = self.env.render()
        return lay_out([as_image(frames[n]) for n in self._seen])


class ShownParallel(Shown):
    """PettingZoo, all agents at once; the reward is the sum of theirs."""

    def step(self, actions: Any) -> Any:
        outcome = self.env.step(actions)
        try:
            self._count(sum(outcome[1].values()), is_over=not self.env.agents)
        except Exception as error:  # noqa: BLE001  # an env is third-party code and may raise anything; the training must continue
            self._stop_showing(error)
        return outcome

    def _count(self, reward: float, is_over: bool) -> None:
        lane = self._lane
        lane.steps += 1
        lane.return_so_far += reward
        if is_over:
            lane.end_episode()
        if lane.steps >= lane.next_look:
            lane.look(self.env.render, reward)


class ShownTurns(ShownParallel):
    """PettingZoo, one agent after the other (AEC)."""

    def step(self, action: Any) -> None:
        self.env.step(action)
        try:
            self._count(sum(self.env.rewards.values()), is_over=not self.env.agents)
        except Exception as error:  # noqa: BLE001  # an env is third-party code and may raise anything; the training must continue
            self._stop_showing(error)


class Plain:
    """The base class for an env of an unknown library."""

    def __init__(self, env: Any) -> None:
        self.env = env

    def render(self) -> Any:
        return self.env.render()


# A library's class of envs, its class of wrappers, and how its envs step.
_LIBRARIES = (
    ("gymnasium.vector", "VectorEnv", "gymnasium.vector", "VectorWrapper", ShownVector),
    ("gymnasium", "Env", "gymnasium", "Wrapper", ShownEnv),
    ("pettingzoo", "AECEnv", "pettingzoo.utils.wrappers", "BaseWrapper", ShownTurns),
    ("pettingzoo", "ParallelEnv", "pettingzoo.utils.wrappers", "BaseParallelWrapper", ShownParallel),
    ("gym", "Env", "gym", "Wrapper", ShownEnv),
)


def _library_of(env: Any) -> Tuple[type, type]:
    for library, env_class, home, wrapper_class, shown in _LIBRARIES:
        module = sys.modules.get(library)
        if module and isinstance(env, getattr(module, env_class, ())):
            return shown, getattr(importlib.import_module(home), wrapper_class)
    return ShownEnv, Plain


@lru_cache(maxsize=None)
def _wrapper_class(shown: type, base: type) -> type:
    return type("FastLaneWrapper", (shown, base), {"__module__": __name__})


def _without_frames(env: Any) -> Any:
    return env
