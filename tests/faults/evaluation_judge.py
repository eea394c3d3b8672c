"""The judge of evaluations: which promises did a run break, compared with an undisturbed run of the same script?"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from lab import alive, all_pids, cmdline, environ
from stage import Event
from watch import still_alive

from mosaic.client.run import Run
from mosaic.model.states import RunState

SUMMARY = "eval_summary.json"


def violations_of_lanes(told: list[Event], calm: list[Event], kills: Mapping[int, int]) -> Iterator[str]:
    """`kills`: how many processes of a lane were killed while it played. All other lanes must be as in the calm run."""
    lanes, expected = _by_lane(told), _by_lane(calm)
    for lane, rows in expected.items():
        if kills.get(lane):
            yield from _check_killed(lane, lanes.get(lane, []), rows, kills[lane])
        elif lanes.get(lane) != rows:
            yield f"lane {lane} was left alone, and {_difference(lanes.get(lane, []), rows)}"
    yield from violations_of_rows(told)


def violations_of_rows(told: list[Event]) -> Iterator[str]:
    """One row per lane, agent, episode and step; steps without a gap."""
    steps = Counter((*_place(row), row["step_index"]) for row in told if row["type"] == "step")
    episodes = Counter(_place(row) for row in told if row["type"] == "episode")
    for place, times in (steps + episodes).items():
        if times > 1:
            yield f"lane, agent, episode, step {place} has {times} rows"
    for *place, step in steps:
        if step and (*place, step - 1) not in steps:
            yield f"step {step} of lane, agent, episode {place} has no step before it"


def violations_of_summary(run: Run, told: list[Event]) -> Iterator[str]:
    """eval_summary.json is whole, and says what the stored episodes say."""
    path = Path(run.run_dir) / SUMMARY
    if not path.exists():
        # Only a process that is killed cannot write it.
        yield from [f"it is {run.state} and has no {SUMMARY}"] if run.state is RunState.TERMINATED else []
        return
    try:
        rows = json.loads(path.read_text())["rows"]
    except ValueError as error:
        yield f"{SUMMARY} is not whole: {error}"
        return
    written = {(row["env_index"], row["agent_id"], row["episode_index"]): _result(row) for row in rows}
    stored = {_place(row): _result(row) for row in told if row["type"] == "episode"}
    # A cancel may arrive between an episode's result and its line.
    surplus = {key for key in written if key not in stored}
    if len(surplus) > (run.state is not RunState.TERMINATED) or len(written) != len(rows):
        yield f"{SUMMARY} has {len(rows)} rows, and {len(stored)} episodes are stored"
    for key, result in stored.items():
        if written.get(key) != result:
            yield f"{SUMMARY} says {written.get(key)} of lane, agent, episode {key}, and {result} is stored"


def violations_after_the_end(run: Run, tree: Mapping[int, str]) -> Iterator[str]:
    """`tree`: the run's processes while it played."""
    for pid in {*still_alive(dict(tree)), *_named(run.run_id.encode())}:
        yield f"process {pid} is left over: {cmdline(pid)!r}"
    for path in Path("/dev/shm").glob(f"mosaic.fastlane.{run.run_id}*"):
        yield f"{path} is left over"


def _named(mark: bytes) -> Iterator[int]:
    """Live processes with the run in their command line or environment, but holder and tailer, which end after it."""
    for pid in all_pids():
        words = cmdline(pid)  # empty while a process exits
        is_its_own = b"mosaic.tail" in words or b"hold/__main__.py" in words
        if words and not is_its_own and (mark in words or mark in environ(pid)) and alive(pid):
            yield pid


def _check_killed(lane: int, rows: list[Event], calm: list[Event], kills: int) -> Iterator[str]:
    """Each kill costs at most the episode that was being played, which ends with a reason."""
    played, expected = _by_episode(rows), _by_episode(calm)
    if set(played) != set(expected):
        yield f"lane {lane} has the episodes {sorted(played)} instead of {sorted(expected)}"
    lost = [episode for episode in expected if played.get(episode) != expected[episode]]
    if not 1 <= len(lost) <= kills:
        yield f"{kills} processes of lane {lane} were killed, and the episodes {lost} differ"
    for episode in lost:
        yield from _check_lost(f"lane {lane}, episode {episode}", played.get(episode, []), expected[episode])


def _check_lost(place: str, rows: list[Event], calm: list[Event]) -> Iterator[str]:
    steps, expected = ([row for row in one if row["type"] == "step"] for one in (rows, calm))
    if steps != expected[: len(steps)]:
        yield f"{place}: before its end {_difference(steps, expected)}"
    ends = [row for row in rows if row["type"] == "episode"]
    if not ends or not all(row["reason"] and row["failed"] for row in ends):
        yield f"{place} was disturbed and has no reason: {ends}"
    if not any(row.get("event") == "lane_failed" and row["payload"]["reason"] for row in rows):
        yield f"{place}: nobody was told that it failed"


def _by_lane(told: list[Event]) -> dict[int, list[Event]]:
    found: dict[int, list[Event]] = {}
    for row in told:
        lane = _field(row, "env_index", "lane")
        if isinstance(lane, int):
            found.setdefault(lane, []).append(row)
    return found


def _by_episode(rows: list[Event]) -> dict[int, list[Event]]:
    found: dict[int, list[Event]] = {}
    for row in rows:
        found.setdefault(_field(row, "episode_index", "episode_index"), []).append(row)
    return found


def _field(row: Event, key: str, key_of_payload: str) -> Any:
    return row.get("payload", {}).get(key_of_payload) if row["type"] == "lifecycle" else row.get(key)


def _place(row: Event) -> tuple[Any, ...]:
    return row["env_index"], row["agent_id"], row["episode_index"]


def _result(row: Event) -> tuple[Any, ...]:
    total, length, seed = (
        (row["return"], row["length"], row["seed"])
        if "return" in row
        else (row["total_reward"], row["steps"], row["episode_seed"])
    )
    return (seed, total, length, row["terminated"], row["truncated"], row["reason"], row["failed"])


def _difference(these: list[Event], those: list[Event]) -> str:
    for number, (this, that) in enumerate(zip(these, those, strict=False)):
        if this != that:
            return f"row {number} is {json.dumps(this)} instead of {json.dumps(that)}"
    return f"has {len(these)} rows instead of {len(those)}"
