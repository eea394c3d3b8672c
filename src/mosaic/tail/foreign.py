"""Lines of programs that were not written for MOSAIC: other names for the same things.

    {"type": "episode_end", "episode": 3, "return": 12.5, "length": 40}     episode
    {"type": "step", "global_step": 7, "reward": 1}                         step
    {"type": "metrics", "metrics": {"loss": 0.3}, "step": 7}                metric
    {"loss": 0.3, "step": 7}                                                metric: a step, and otherwise only numbers
    {"type": "run_started"}                                                 lifecycle
    2026-01-31 12:00:00 INFO {"type": "episode", …}                         what the object behind the prefix is

Only the line itself decides: a spool that is read again must give the same events. What is not certain stays log text;
looks_like_telemetry() says why, for a hint to the user.
"""

import re
from collections.abc import Sequence

from msgspec import Raw

from mosaic.model.listed import UNNUMBERED
from mosaic.tail.fields import NULL, Fields, InvalidField, encode, plain, scalar

EPISODE = {"episode_end", "episode_done", "episode_ended", "episode_complete", "episode_completed", "episode_finished"}
METRIC = {"metrics", "scalar", "scalars"}
LIFECYCLE = {"run_started", "run_completed", "run_failed", "run_cancelled"}
LIFECYCLE |= {"heartbeat", "checkpoint_saved", "checkpoint_loaded"}
KINDS = {"step": "step", "episode": "episode", "metric": "metric"}
KINDS |= dict.fromkeys(EPISODE, "episode") | dict.fromkeys(METRIC, "metric") | dict.fromkeys(LIFECYCLE, "lifecycle")

RETURNS = ("episode_return", "return", "episode_reward", "reward")
LENGTHS = ("num_steps", "episode_length", "length", "episode_steps")
INDEXES = ("episode", "episode_number", "episode_num", "episode_id")
STEPS = ("step", "global_step", "timestep", "timesteps", "num_timesteps", "env_steps")
GROUPS = ("metrics", "scalars", "metric", "data", "value")
NAMES = ("metric", "tag", "key")
_DISCRIMINATORS = ("event_type", "type", "event")
_TIMES = ("time", "timestamp", "ts", "wall_time")

PREFIX_BYTES = 200
# What a logging library puts before its message: a level, a date or a time of day.
_PREFIX = re.compile(rb"\b(?:DEBUG|INFO|WARN|WARNING|ERROR|CRITICAL|TRACE)\b|\d\d:\d\d:\d\d|\d{4}-\d\d-\d\d", re.I)
_WORDS = rb"reward|return|total_reward|episode_return|episode_reward|loss|step|step_index|global_step|episode"
_NAMED = rb"[\"'](?:event_type|type|event)[\"']\s*:\s*[\"'](?:" + "|".join(KINDS).encode() + rb")[\"']"
_MEMBERS = re.compile(rb"[\"'](?:" + _WORDS + rb")[\"']\s*:|" + _NAMED)
_KIND_MEMBER = re.compile(rb'\s+"(?:event_type|type|event)"\s*:\s*"(\w+)",?\s*$')
_STEP_MEMBER = re.compile(rb'\s+"(?:global_step|step)"\s*:\s*\d+,?\s*$')

ON_STDERR = "it was printed to stderr; print it to stdout"
NO_KIND = 'it has no known "type"; docs/howto/telemetry-lines.md lists them'
NOT_ONE_LINE = "it spans several lines; print json.dumps(…) without indent"
NOT_JSON = "it is not JSON; print(json.dumps(…)), one object per line"


def kind_of(fields: Fields) -> str:
    """The kind that a discriminator names, "metric" for a bare line of numbers; empty when it is not certain."""
    for name in _DISCRIMINATORS:
        if (raw := fields.get(name)) is not None:
            word = plain(raw)
            return KINDS.get(word.lower(), "") if isinstance(word, str) else ""
    return "metric" if _is_bare_metric(fields) else ""


def is_named(fields: Fields) -> bool:
    """Whether the line names its kind; a bare line of numbers does not."""
    return any(name in fields for name in _DISCRIMINATORS)


def translate(kind: str, fields: Fields) -> None:
    """Give the members of such a line our names. What is missing stays missing."""
    word = next((fields.pop(name) for name in _DISCRIMINATORS if name in fields), None)
    if kind == "lifecycle" and word is not None:
        fields["event"] = Raw(bytes(word).lower())
    elif kind in _COMPLETED:
        _COMPLETED[kind](fields)


def complete_step(fields: Fields) -> None:
    _rename(fields, "step_index", STEPS)


def complete_episode(fields: Fields) -> None:
    _rename(fields, "total_reward", RETURNS)
    _rename(fields, "steps", LENGTHS)
    _rename(fields, "episode_index", INDEXES)
    fields.setdefault("episode_index", Raw(b"%d" % UNNUMBERED))
    # An episode has at least one step, so 0 means that the number is unknown.
    fields.setdefault("steps", Raw(b"0"))


def complete_metric(fields: Fields) -> None:
    _rename(fields, "step", STEPS)
    for group in GROUPS:
        if "values" not in fields and bytes(fields.get(group, NULL)).startswith(b"{"):
            fields["values"] = fields.pop(group)
    if "values" in fields:
        return
    for name in NAMES:
        if "name" not in fields and bytes(fields.get(name, NULL)).startswith(b'"'):
            fields["name"] = fields.pop(name)
    if "name" not in fields:
        _group_numbers(fields)


def without_prefix(line: bytes) -> bytes:
    """The object at the end of a line that a logging library printed; empty when there is none."""
    at = line.find(b'{"', 0, PREFIX_BYTES)
    return line[at:] if at > 0 and _PREFIX.search(line, 0, at) else b""


def looks_like_telemetry(line: bytes) -> str:
    """Why this line of text, which a user may take for telemetry, is none; empty for ordinary text."""
    if (inside := _KIND_MEMBER.match(line)) and inside[1].decode().lower() in KINDS:
        return NOT_ONE_LINE
    if _STEP_MEMBER.match(line):
        return NOT_ONE_LINE
    start = line.lstrip()[:2]
    if start[:1] != b"{" or not _MEMBERS.search(line):
        return ""
    return NO_KIND if start[1:2] in b'" ' and line.count(b"}") == line.count(b"{") == 1 else NOT_JSON


def _is_bare_metric(fields: Fields) -> bool:
    numbers = [name for name in fields if name not in _TIMES and name != "run_id"]
    steps = [name for name in numbers if name in STEPS]
    return bool(steps) and len(numbers) > len(steps) and all(_is_number(fields[name]) for name in numbers)


def _group_numbers(fields: Fields) -> None:
    """Move the numbers of a flat line, {"type": "metrics", "loss": 0.3}, to `values`."""
    kept = {"step", "value", "env_index", "agent_id", "ts_unix_ns", "run_id", *_TIMES}
    names = [name for name, raw in fields.items() if name not in kept and _is_number(raw)]
    if names:
        values = b", ".join(encode(name) + b": " + bytes(fields.pop(name)) for name in names)
        fields["values"] = Raw(b"{" + values + b"}")


def _is_number(raw: Raw) -> bool:
    try:
        scalar("", raw)
    except InvalidField:
        return False
    return True


def _rename(fields: Fields, own: str, others: Sequence[str]) -> None:
    """Call the first of the others that is a number by our name, unless the line uses it already."""
    if fields.get(own, NULL) != NULL:
        return
    for other in others:
        if other in fields and _is_number(fields[other]):
            fields[own] = fields.pop(other)
            return


_COMPLETED = {"step": complete_step, "episode": complete_episode, "metric": complete_metric}
