"""The commands that arrive on stdin: {"seq": 3, "cmd": "step", "lanes": [0], "count": 2}"""

import json
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from eval_worker.lane import Lane

COMMANDS = ("start", "step", "play", "pause", "reset", "act", "finish")
_MOST_STEPS = 1_000_000
_FASTEST = 1000.0


class CommandRefused(Exception):
    """A command that cannot be executed now. The text says why, and what to send instead."""


def read_commands(take: Callable[[Mapping[str, Any] | None], None], fd: int = 0) -> None:
    """Call `take` with every command from a thread, and with None when there will be no more."""

    def read() -> None:
        for line in _lines(fd):
            if line.strip():
                take(_parse(line))
        take(None)

    threading.Thread(target=read, name="commands", daemon=True).start()


def _lines(fd: int) -> Iterator[bytes]:
    """The whole lines of a pipe. Not by sys.stdin: a thread that waits there aborts the interpreter at its exit."""
    rest = b""
    while data := _read(fd):
        *lines, rest = (rest + data).split(b"\n")
        yield from lines


def _read(fd: int) -> bytes:
    try:
        return os.read(fd, 1 << 16)
    except OSError:  # closed
        return b""


def _parse(line: bytes) -> Mapping[str, Any]:
    """The command; one that cannot be read has no `cmd`, and is refused like an unknown one."""
    try:
        command = json.loads(line)
    except (ValueError, RecursionError):
        command = None
    return command if isinstance(command, dict) else {}


def lanes_of(command: Mapping[str, Any], lanes: Sequence[Lane]) -> list[Lane]:
    """The lanes that a command names by index or by name; all of them if it names none."""
    given = command.get("lanes")
    if given is None:
        return list(lanes)
    if not isinstance(given, list) or not given:
        raise CommandRefused(f"lanes: must be a list of lanes, not {given!r}.")
    found = [lane_of(one, lanes, "lanes") for one in given]
    return [lane for lane in lanes if lane in found]


def lane_of(given: Any, lanes: Sequence[Lane], key: str) -> Lane:
    for lane in lanes:
        if given == lane.name or (given == lane.index and not isinstance(given, bool)):
            return lane
    known = ", ".join(f"{lane.index} ({lane.name})" for lane in lanes)
    raise CommandRefused(f"{key}: there is no lane {given!r}. Choose from: {known}.")


def count_of(command: Mapping[str, Any]) -> int:
    return _integer(command, "count", 1, 1, _MOST_STEPS)


def seed_of(command: Mapping[str, Any]) -> int | None:
    return None if command.get("seed") is None else _integer(command, "seed", 0, 0, 2**31 - 1)


def rate_of(command: Mapping[str, Any], default: float) -> float:
    rate = command.get("rate")
    if rate is None:
        return default
    if not isinstance(rate, (int, float)) or isinstance(rate, bool) or not 0 < rate <= _FASTEST:
        raise CommandRefused(f"rate: must be a number of steps per second up to {_FASTEST:g}, not {rate!r}.")
    return float(rate)


def _integer(command: Mapping[str, Any], key: str, default: int, low: int, high: int) -> int:
    value = command.get(key)
    if value is None:
        return default
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise CommandRefused(f"{key}: must be an integer from {low} to {high}, not {value!r}.")
    return value
