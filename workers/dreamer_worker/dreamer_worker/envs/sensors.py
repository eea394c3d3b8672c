"""The observations of a Gymnasium env, as flat named spaces for the agent. docs/howto/dreamer-envs.md has the table.

Dict({"arm": Dict({"speed": Box}), "lamp": Discrete})   ─▶   {"arm/speed": …, "lamp": …}
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from gymnasium import spaces

from dreamer_worker.agent.spaces import BOOKKEEPING, Space, Spaces
from dreamer_worker.envs import BOUNDLESS, Obs, groups_of, resize
from dreamer_worker.envs.library import BadEnv

Path = tuple[Any, ...]
Read = Callable[[Any], np.ndarray]

# Anything smaller is a board or a matrix: as an image it would hold less information than its numbers.
SMALLEST_SIDE = 16
MOST = float(np.finfo(np.float32).max)
# Names that replay, the agent's losses or the log use for something else.
TAKEN = {*BOOKKEEPING, "action", "consec", "stepid", "priority", "total"}
TAKEN |= {"continue", "dynamics", "representation", "policy", "value", "replay_value"}
TAKEN_FOLDERS = ("action/", "dyn/", "log/")


class Sensors:
    """Its promises:

    1. `spaces` names every part of an observation once, never as an action or the agent's own keys are named.
    2. Called with an observation of the env, it gives exactly these names, shapes and dtypes, or raises.
    """

    def __init__(self, space: Any, size: tuple[int, int]) -> None:
        self.spaces: Spaces = {}
        self._size = size
        self._reads: list[tuple[str, Path, Read]] = []
        for path, part in _parts(space):
            self._place(path, part)
        if not self.spaces:
            raise BadEnv(f"env: {space} contains no observation. Wrap the env so that it has a Box or a Discrete.")

    def __call__(self, seen: Any) -> Obs:
        return {name: self._read(seen, name, path, read) for name, path, read in self._reads}

    def _read(self, seen: Any, name: str, path: Path, read: Read) -> np.ndarray:
        try:
            return read(_at(seen, path)).reshape(self.spaces[name].shape)
        except (ValueError, TypeError, LookupError) as error:
            raise ValueError(f"The observation {name!r} does not match the env's space: {error}") from error

    def _place(self, path: Path, part: Any) -> None:
        if isinstance(part, spaces.Box):
            self._box(path, part)
        elif isinstance(part, spaces.Discrete):
            start, space = part.start, Space("int32", (), 0, int(part.n))
            self._add(_name(path), path, space, lambda value: np.asarray(value - start, np.int32))
        elif isinstance(part, spaces.MultiDiscrete):
            self._choices(path, part)
        elif isinstance(part, spaces.MultiBinary):
            self._add(_name(path), path, Space("bool", part.shape), _switches)
        elif not (path and _is_text(part)):  # a text beside other observations is left out
            raise BadEnv(
                f"env: its observation {_name(path)!r} is {part}; the agent reads arrays of one size only. Wrap it: "
                "gymnasium.wrappers.TransformObservation makes a Box of it, FilterObservation leaves it out."
            )

    def _box(self, path: Path, box: Any) -> None:
        if is_picture(box):
            picture = Picture(box, self._size)
            self._add(_name(path, "image"), path, picture.space, picture)
        elif box.dtype == bool:
            self._add(_name(path), path, Space("bool", box.shape), _switches)
        else:
            self._add(_name(path), path, Space("float32", box.shape), _numbers)

    def _choices(self, path: Path, space: Any) -> None:
        start = space.start.ravel()
        for name, places, classes in groups_of(_name(path), space.nvec):
            shape = space.shape if len(places) == space.nvec.size else (len(places),)
            self._add(name, path, Space("int32", shape, 0, classes), _picked(places, start[places]))

    def _add(self, name: str, path: Path, space: Space, read: Read) -> None:
        if 0 in space.shape:
            return
        name = f"obs/{name}" if name in TAKEN or name.startswith(TAKEN_FOLDERS) else name
        if name in self.spaces:
            raise BadEnv(f"env: two parts of its observation would both be called {name!r}. Rename one of them.")
        self.spaces[name] = space
        self._reads.append((name, path, read))


class Picture:
    """Pixels of any size, type and order of axes as height × width × channels bytes."""

    def __init__(self, box: Any, size: tuple[int, int]) -> None:
        self._size = size
        self._low, self._scale = None, None
        if box.dtype != np.uint8:
            self._low, self._scale = box.low, 255 / (box.high.astype(float) - box.low)
        self._axes, self._shape, (height, width, channels) = _layout(box.shape)
        self._flat = (height, width, channels)
        self.space = Space("uint8", (*size, channels))

    def __call__(self, value: Any) -> np.ndarray:
        pixels = np.asarray(value)
        if self._low is not None:
            pixels = np.rint((pixels - self._low) * self._scale).clip(0, 255)
        pixels = pixels.astype(np.uint8).reshape(self._shape).transpose(self._axes)
        return resize(np.ascontiguousarray(pixels).reshape(self._flat), self._size)


def is_picture(box: Any) -> bool:
    """Bytes in two to four axes; also bounded floats, and integers in 0 .. 255, in three."""
    if box.dtype == np.uint8:
        axes: tuple[int, ...] = (2, 3, 4)
    elif box.dtype.kind == "f":
        axes = (3,) if (np.abs([box.low, box.high]) < BOUNDLESS).all() and (box.low < box.high).all() else ()
    else:
        axes = (3,) if (box.low == 0).all() and (box.high == 255).all() else ()
    return len(box.shape) in axes and min(_layout(box.shape)[2][:2]) >= SMALLEST_SIDE


def _layout(shape: tuple[int, ...]) -> tuple[Path, Path, Path]:
    """How to put axes in order, given as frames × … in four axes; and the height, width and channels that result."""
    if len(shape) == 2:
        shape = (*shape, 1)
    if len(shape) == 3:
        shape = (1, *shape)
    frames, *rest = shape
    if rest[0] < rest[2]:  # channels first
        return (2, 3, 0, 1), shape, (rest[1], rest[2], frames * rest[0])
    return (1, 2, 0, 3), shape, (rest[0], rest[1], frames * rest[2])


def _parts(space: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """What a nest of dicts and tuples is made of, and where in it."""
    if isinstance(space, spaces.Dict | spaces.Tuple):
        inner = space.spaces.items() if isinstance(space, spaces.Dict) else enumerate(space.spaces)
        for key, part in inner:
            yield from _parts(part, (*path, key))
    else:
        yield path, space


def _at(seen: Any, path: Path) -> Any:
    for key in path:
        seen = seen[key]
    return seen


def _name(path: Path, alone: str = "vector") -> str:
    return "/".join(map(str, path)) or alone


def _is_text(space: Any) -> bool:
    return isinstance(space, spaces.Text) or (space.dtype is not None and space.dtype.kind == "U")


def _picked(places: np.ndarray, start: np.ndarray) -> Read:
    return lambda value: (np.ravel(value)[places] - start).astype(np.int32)


def _switches(value: Any) -> np.ndarray:
    return np.array(value, bool)


def _numbers(value: Any) -> np.ndarray:
    array = np.asarray(value)
    if array.dtype.kind == "f":
        # A single one in the replay makes all weights NaN.
        if not np.isfinite(array).all():
            raise ValueError("it contains NaN or infinity. Fix the env, or wrap it.")
        array = array.clip(-MOST, MOST)
    return array.astype(np.float32)
