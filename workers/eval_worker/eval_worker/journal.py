"""checkpoints/journal.jsonl: all that an evaluation has seen, from which another run continues it.

    {"kind": "header", "version": 1, "script": {…}, "mode": …, "agents": […] | null}
    {"kind": "opening", "lane": "ppo", "episode": 0, "seed": 3, "opening": {…}}
    {"kind": "act", "lane": "me", "episode": 0, "step": 4, "agent": "agent_0", "action": 2}      a person's action
    {"kind": "turn", "lane": "ppo", "episode": 0, "turn": {…}}
    {"kind": "end", "lane": "ppo", "episode": 0, "seed": 3, "reason": "", "failed": false}

Each line is written at once, and the file is synced when an episode ends. A line that a kill has cut off is ignored.
"""

import errno
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mosaic_sdk.checkpoints import CheckpointError
from mosaic_sdk.emit import to_json

from eval_worker.game import Opening, Turn

VERSION = 1
FILE_NAME = "journal.jsonl"
RESET = "ended by a command"  # the reason of an episode that a command ended


class Journal:
    """Appends to the journal of this run."""

    def __init__(self, path: str) -> None:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC
        self._file = open(os.open(path, flags, 0o600), "wb", buffering=0)  # noqa: SIM115  # open for the whole run
        self.path = path

    def header(self, script: Mapping[str, Any], mode: str, agents: list[str] | None) -> None:
        self._write(kind="header", version=VERSION, script=script, mode=mode, agents=agents)
        self.sync()

    def opening(self, lane: str, episode: int, seed: int, opening: Opening) -> None:
        self._write(kind="opening", lane=lane, episode=episode, seed=seed, opening=opening.to_dict())

    def act(self, lane: str, episode: int, step: int, agent: str, action: Any) -> None:
        self._write(kind="act", lane=lane, episode=episode, step=step, agent=agent, action=action)

    def turn(self, lane: str, episode: int, turn: Turn) -> None:
        self._write(kind="turn", lane=lane, episode=episode, turn=turn.to_dict())

    def end(self, lane: str, episode: int, seed: int, reason: str, failed: bool) -> None:
        self._write(kind="end", lane=lane, episode=episode, seed=seed, reason=reason, failed=failed)
        self.sync()

    def sync(self) -> None:
        os.fsync(self._file.fileno())

    def close(self) -> None:
        self._file.close()

    def _write(self, **fields: Any) -> None:
        line = (to_json(fields) + "\n").encode()
        # A full disk takes a part of a line first: without an error the next line would be glued to it.
        if self._file.write(line) != len(line):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self.path)


@dataclass
class PastEpisode:
    """An episode of the journal."""

    index: int
    seed: int = 0
    opening: Opening | None = None
    turns: list[Turn] = field(default_factory=list)
    acts: dict[tuple[int, str], Any] = field(default_factory=dict)  # people's actions, by step and agent
    is_over: bool = False
    reason: str = ""
    failed: bool = False

    @property
    def never_began(self) -> bool:
        return self.is_over and self.opening is None

    @property
    def was_reset(self) -> bool:
        """Whether a command ended it."""
        return self.reason == RESET


@dataclass
class Past:
    """What the journal of an earlier run holds."""

    path: str = ""
    script: Mapping[str, Any] = field(default_factory=dict)
    agents: list[str] | None = None
    lanes: dict[str, dict[int, PastEpisode]] = field(default_factory=dict)

    def finished(self, lane: str) -> list[PastEpisode]:
        """The lane's episodes that are over, in order; without those at the end that could not begin, which get another
        chance."""
        episodes = [one for one in self.lanes.get(lane, {}).values() if one.is_over and not one.was_reset]
        while episodes and episodes[-1].never_began:
            episodes.pop()
        return episodes

    def interrupted(self, lane: str) -> list[PastEpisode]:
        """The lane's episodes that began and were not over."""
        return [one for one in self.lanes.get(lane, {}).values() if one.opening is not None and not one.is_over]

    def recall(self, lane: str, episode: int, step: int, agent: str) -> list[Any]:
        """A list with a person's recorded action, or an empty one."""
        past = self.lanes.get(lane, {}).get(episode)
        key = (step, agent)
        return [past.acts[key]] if past is not None and not past.is_over and key in past.acts else []


def read_journal(path: str) -> Past:
    """The content of a journal. CheckpointError if it is not one."""
    try:
        with open(path, "rb") as file:
            lines = file.read().split(b"\n")
    except OSError as error:
        raise CheckpointError(f"resume_from: cannot read {path}: {error.strerror}.") from None
    rows = [_parse(line, number, path) for number, line in enumerate(lines[:-1], 1)]
    if not rows or rows[0].get("kind") != "header":
        raise CheckpointError(f"resume_from: {path} is not the journal of an evaluation.")
    if rows[0].get("version") != VERSION:
        raise CheckpointError(
            f"resume_from: {path} was written by another version of MOSAIC. Start the evaluation anew."
        )
    past = Past(path, rows[0]["script"], rows[0]["agents"])
    for row in rows[1:]:
        _add(past, row)
    return past


def _parse(line: bytes, number: int, path: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except ValueError:
        row = None
    if not isinstance(row, dict):
        raise CheckpointError(f"resume_from: line {number} of {path} is damaged. Start a new evaluation.")
    return row


def _add(past: Past, row: Mapping[str, Any]) -> None:
    episodes = past.lanes.setdefault(row["lane"], {})
    episode = episodes.setdefault(row["episode"], PastEpisode(row["episode"]))
    kind = row["kind"]
    if kind == "opening":
        episode.seed, episode.opening = row["seed"], Opening(**row["opening"])
    elif kind == "turn":
        episode.turns.append(Turn.from_dict(row["turn"]))
    elif kind == "act":
        episode.acts[row["step"], row["agent"]] = row["action"]
    elif kind == "end":
        episode.seed, episode.is_over = row["seed"], True
        episode.reason, episode.failed = row["reason"], row["failed"]
