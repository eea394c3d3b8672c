"""The rows of an evaluation: one per episode, in a multi-agent env one per episode and agent.

A row with `failed` is an episode that was not played to its end: an operator died or did not answer, or the env
raised. It is kept and counted, but not averaged: its return says nothing about how well an operator plays. In a
multi-agent env that holds for all agents of the episode.
"""

import math
from typing import Any, Dict, Hashable, List, Mapping, Sequence

from mosaic_sdk.results.averages import mean
from mosaic_sdk.results.games import Row, episode_key

EMPTY: Dict[str, Any] = {
    "lane": "",
    "env_index": 0,
    "operator": "",
    "agent_id": "",
    "episode_index": 0,
    "seed": None,
    "return": math.nan,
    "length": 0,
    "success": None,
    "terminated": False,
    "truncated": False,
    "reason": "",
    "failed": False,
    "steps_per_s": None,
    "decision_ms": None,
}


def row_of(fields: Mapping[str, Any]) -> Dict[str, Any]:
    """The fields and the missing ones. Unless it says otherwise, an episode that ended for a `reason` has failed."""
    row = {**EMPTY, "failed": bool(fields.get("reason")), **fields}
    row["return"] = math.nan if row["return"] is None else float(row["return"])
    return row


def row_of_episode(episode: Mapping[str, Any]) -> Dict[str, Any]:
    """The row of a stored episode: the fields of an `episode` line of telemetry."""
    steps, duration = episode.get("steps") or 0, episode.get("duration_s")
    fields = {key: episode[key] for key in EMPTY if key in episode}
    fields.update({"return": episode.get("total_reward"), "length": steps, "seed": episode.get("episode_seed")})
    fields["steps_per_s"] = steps / duration if isinstance(duration, (int, float)) and duration > 0 else None
    fields.setdefault("lane", str(episode.get("env_index", 0)))
    return row_of(fields)


def counted(rows: Sequence[Row]) -> List[Row]:
    """The rows that are averaged: those of episodes in which nothing failed and every return is a finite number."""
    bad = {episode_key(row) for row in rows if row["failed"] or not math.isfinite(row["return"])}
    return [row for row in rows if episode_key(row) not in bad]


def is_one_seed(rows: Sequence[Row]) -> bool:
    """Whether all episodes have the same seed: then the repetitions are compared, not the seeds."""
    seeds = {row["seed"] for row in rows}
    return len(seeds) == 1 and None not in seeds


def is_repeated(rows: Sequence[Row]) -> bool:
    """Whether one seed is played more than once by the same operators: its repetitions are paired by their number."""
    players = {(row["lane"], row["agent_id"], row["operator"]) for row in rows}
    return is_one_seed(rows) and len(players) < len(rows)


def tells_success(rows: Sequence[Row]) -> bool:
    """Whether the environment says of any episode that it was a success or not."""
    return any(row["success"] is not None for row in rows)


def scores_of(rows: Sequence[Row], by_repetition: bool = False) -> Dict[Hashable, float]:
    """The mean return on each seed: a seed played twice does not count twice. Rows without a seed are left out."""
    returns: Dict[Hashable, List[float]] = {}
    for row in rows:
        if row["seed"] is not None:
            key = (row["seed"], row["episode_index"]) if by_repetition else row["seed"]
            returns.setdefault(key, []).append(row["return"])
    return {seed: mean(values) for seed, values in returns.items()}
