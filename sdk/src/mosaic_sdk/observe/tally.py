"""Counts the steps and the return of one env, by standing in for its `step`, `reset` and `close`.

    hear(env, episodes)        env.step(action) does what it did, and then counts

Not a wrapper: the env that the script gets is the object that it would have got, with its own type, spaces, spec and
attributes. The stand-ins are attributes of that object. They are methods of a `Tally`, which is pickled and copied as
the env that it belongs to: a copy of the env, in this process or in another, steps itself and is not observed.
"""

import typing
from types import MethodType
from typing import Any, Callable, Optional, Protocol, Tuple

STAND_INS = ("step", "reset", "close")


class Count:
    """The steps of an env. It does not refer to the env, which is freed when the script drops it."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.is_evaluation = False
        # All training steps are those of this env, and nobody else counts them: an episode's end needs no adding up.
        self.is_plain = False
        self.before = 0  # training steps of envs before this one, if it is plain
        self.counted = 0  # training steps of earlier episodes
        self.limit = 0  # the length at which a wrapper further out ends the episode; 0: none is known
        self.is_used = False
        self.forget: Callable[[], Any] = lambda: None
        # The steps of the current episode. A closure keeps them: an attribute would cost a training too much.
        self.read: Callable[[], int] = lambda: 0

    @property
    def training_steps(self) -> int:
        return self.counted if self.is_evaluation else self.counted + self.read()


class Tally:
    """Stands in for the methods of one env."""

    def __init__(self, env: Any, count: Count) -> None:
        self.env = env
        self.count = count

    def __reduce__(self) -> Tuple[Any, Tuple[Any, Any]]:
        # "The tally's method step" is then "the env's method step". cast() returns its second argument. It is in the
        # standard library: another process has no module of ours.
        return typing.cast, (None, self.env)


class Listener(Protocol):
    """What a tally tells: an episode's end, a reset that leaves `steps` unfinished, and its own failure."""

    def end(self, outcome: Any, total: Any, steps: int) -> None: ...

    def note_reset(self, total: Any, steps: int) -> None: ...

    def fail(self, error: Exception) -> None: ...


def tally_of(env: Any) -> Optional[Tally]:
    """The tally of this env, or of one inside it."""
    for _ in range(100):  # an env whose __getattr__ makes up attributes has no innermost one
        # Not through __dict__: since Python 3.11 an object whose __dict__ was read once is slower from then on.
        found = getattr(getattr(env, "step", None), "__self__", None)
        if isinstance(found, Tally):
            return found
        inner = [getattr(env, name, None) for name in ("env", "aec_env", "par_env")]
        env = next((one for one in inner if one is not None), None)
        if env is None:
            return None
    return None


def stand_in(tally: Tally, step: Callable[..., Any], reset: Callable[..., Any], close: Callable[..., Any]) -> None:
    """Replace the methods of the tally's env. Each gets its caller first: the tally, or a copy of the env (`own`)."""
    for name, method in zip(STAND_INS, (step, reset, close)):
        setattr(tally.env, name, MethodType(method, tally))


def stand_down(env: Any) -> None:
    """Give the env its own methods back."""
    for name in STAND_INS:  # one that the script has replaced meanwhile is the script's
        if isinstance(getattr(env.__dict__.get(name), "__self__", None), Tally):
            delattr(env, name)


def count_steps(tally: Tally, listener: Listener) -> None:
    """Stand in for the methods of an env with one agent."""
    env_step, env_reset = tally.env.step, tally.env.reset
    end, note_reset = listener.end, listener.note_reset
    steps, total = 0, 0.0

    # This is what a training pays for at every step.
    def step(caller: Any, action: Any) -> Any:
        nonlocal steps, total
        if caller is not tally:
            return own(caller, "step")(action)
        outcome = env_step(action)
        try:
            steps += 1
            total = total + outcome[1]  # not +=, which would change an array
            if outcome[2] or outcome[3]:
                if not outcome[2] and len(outcome) == 4:
                    return outcome  # gym before 0.26: [3] is the info
                ended, steps = steps, 0
                ended_total, total = total, 0.0
                end(outcome, ended_total, ended)
        except Exception as error:  # noqa: BLE001  # an env is third-party code and may raise anything
            listener.fail(error)
        return outcome

    def reset(caller: Any, *args: Any, **kwargs: Any) -> Any:
        nonlocal steps, total
        if caller is not tally:
            return own(caller, "reset")(*args, **kwargs)
        outcome = env_reset(*args, **kwargs)
        try:
            unfinished, steps = steps, 0
            unfinished_total, total = total, 0.0
            note_reset(unfinished_total, unfinished)
        except Exception as error:  # noqa: BLE001  # an env is third-party code and may raise anything
            listener.fail(error)
        return outcome

    tally.count.read = lambda: steps
    stand_in(tally, step, reset, closer(tally))


def closer(tally: Tally) -> Callable[..., Any]:
    env_close = tally.env.close

    def close(caller: Any, *args: Any, **kwargs: Any) -> Any:
        if caller is not tally:
            return own(caller, "close")(*args, **kwargs)
        stand_down(tally.env)
        tally.count.forget()
        return env_close(*args, **kwargs)

    return close


def own(copied: Any, name: str) -> Any:
    """The method of an env that is a deep copy. copy.deepcopy() copies a method's object, which for a tally is the
    copied env, but not its function, which would step the original."""
    for stand_in_name in STAND_INS:
        copied.__dict__.pop(stand_in_name, None)
    return getattr(copied, name)
