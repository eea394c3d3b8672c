"""Parses complete lines of a worker's stdout into events, log text, and rejects with their reason.

    {"event": "heartbeat", …}                 lifecycle   one of seven names, or any name with this run's id
    {"type": "step", "step_index": 3, …}      step        `event_type` or `type`, in upper or lower case
    {"type": "episode", …}  {"type": "metric", …}
    {"type": "episode_end", "return": 3, …}   the same under other names: foreign.py
    anything else                             log text, raw; a hint is counted if it looks like telemetry

Values stay the raw bytes of the line unless a field has a type, so `extra` holds exactly what the worker wrote and a
long observation costs a scan, not a tree of objects.
"""

import json
from collections.abc import Callable

from msgspec import Raw

from mosaic.model.listed import LONGEST_NAME
from mosaic.tail import foreign
from mosaic.tail.fields import (
    MAX_DEPTH,
    NULL,
    Fields,
    InvalidField,
    count_in,
    encode,
    excerpt,
    fields_of,
    flag,
    floats_of,
    looks_like_object,
    name_in,
    number,
    plain,
    refuse_deep,
    rest,
    scalar,
    text_of,
    time_ns,
    whole,
)
from mosaic.wire import mosaic_pb2 as pb

HEAD_BYTES = 4096  # of a reject
TEXT_BYTES = 64 << 10  # of one LogText
OBSERVATION_BYTES = 4096
EXAMPLE_BYTES = 200  # of a line that looks like telemetry

Request = pb.PublishTelemetryRequest
Adder = Callable[[Fields, int, Request], None]


class Parser:
    """Parses the output of one run.

    1. It never raises, for any bytes.
    2. Events, texts and rejects together cover every byte once.
    """

    def __init__(self, run_id: str, keep_observations: bool = False) -> None:
        self._this_run = Raw(json.dumps(run_id).encode())
        self._keep_observations = keep_observations

    def parse(self, data: bytes, offset: int, now_ns: int, request: Request) -> None:
        """Add the content of `data`: lines of stdout from byte `offset` on. A last line without newline was cut off."""
        here = text = 0  # [text, here) is log text that has not been added yet
        *lines, cut = data.split(b"\n")
        for line in lines:
            end = here + len(line) + 1
            if self._is_event(line, offset + here, end - here, now_ns, request):
                if text < here:
                    add_text(request, pb.STDOUT, data[text:here], offset + text)
                text = end
            here = end
        if looks_like_object(cut):
            add_text(request, pb.STDOUT, data[text:here], offset + text)
            if not self._add_line(cut, offset + here, len(cut), now_ns, request):
                add_reject(request, pb.STDOUT, offset + here, len(cut), "cut: the line has no end", cut)
            return
        add_text(request, pb.STDOUT, data[text:], offset + text)

    def look(self, data: bytes, request: Request) -> None:
        """Count lines of stderr that would be telemetry on stdout. They stay text: seq depends on stdout alone."""
        if b"{" not in data:
            return
        for line in data.splitlines():
            if line[-1:] == b"}" and self._would_be_event(line):
                _count(request, line, foreign.ON_STDERR)

    def _is_event(self, line: bytes, offset: int, length: int, now_ns: int, request: Request) -> bool:
        """Add an event or a reject, or count a hint; False when the line is text."""
        if looks_like_object(line):
            if self._add_line(line, offset, length, now_ns, request):
                return True
        elif line[-1:] == b"}" and (told := foreign.without_prefix(line)):
            return self._add_foreign(fields_of(told), told, now_ns, request, prefix=line[: -len(told)])
        elif line[:1] not in b" \t":
            return False
        if why := foreign.looks_like_telemetry(line):
            _count(request, line, why)
        return False

    def _add_line(self, line: bytes, offset: int, length: int, now_ns: int, request: Request) -> bool:
        """Add an event or a reject; False when the line is text."""
        try:
            fields = fields_of(line)
            if fields is None:
                return False
            if (add := self._kind_of(fields)) is None:
                return self._add_foreign(fields, line, now_ns, request)
            self._add(add, fields, line, now_ns, request)
        except InvalidField as error:
            add_reject(request, pb.STDOUT, offset, length, str(error), line)
        return True

    def _add_foreign(
        self, fields: Fields | None, line: bytes, now_ns: int, request: Request, prefix: bytes = b""
    ) -> bool:
        """Add what another program means by this line; False when that is not certain."""
        if fields is None or not (kind := foreign.kind_of(fields)) or (prefix and not foreign.is_named(fields)):
            return False
        known = len(request.events)
        try:
            foreign.translate(kind, fields)
            if prefix:
                fields["log_prefix"] = Raw(json.dumps(prefix.decode(errors="replace")).encode())
            self._add(_KINDS[kind], fields, line, now_ns, request)
        except InvalidField:
            del request.events[known:]
            return False
        return True

    def _add(self, add: Adder, fields: Fields, line: bytes, now_ns: int, request: Request) -> None:
        fields.pop("run_id", None)
        if not self._keep_observations and len(line) > OBSERVATION_BYTES:
            _omit_long_observation(fields)
        if len(line) > 2 * MAX_DEPTH:
            refuse_deep(fields)
        add(fields, now_ns, request)

    def _would_be_event(self, line: bytes) -> bool:
        has_prefix = not looks_like_object(line)
        told = foreign.without_prefix(line) if has_prefix else line
        try:
            fields = fields_of(told) if told else None
        except InvalidField:
            return False
        if fields is None or not foreign.kind_of(fields):
            return False
        return foreign.is_named(fields) or not has_prefix

    def _kind_of(self, fields: Fields) -> Adder | None:
        for name in ("event_type", "type"):
            if (raw := fields.get(name)) is not None and (add := _OWN_KINDS.get(bytes(raw).lower())):
                del fields[name]
                return add
        if (raw := fields.get("event")) is not None:
            event = plain(raw)
            if isinstance(event, str) and (event in foreign.LIFECYCLE or fields.get("run_id") == self._this_run):
                return _add_lifecycle
        return None


def add_text(request: Request, stream: pb.Stream, text: bytes, offset: int) -> None:
    """Add raw bytes as log text, in pieces that end at the end of a line where possible."""
    while len(text) > TEXT_BYTES:
        end = text.rfind(b"\n", 0, TEXT_BYTES) + 1 or TEXT_BYTES
        request.texts.add(stream=stream, offset=offset, text=text[:end])
        text, offset = text[end:], offset + end
    if text:
        request.texts.add(stream=stream, offset=offset, text=text)


def add_reject(request: Request, stream: pb.Stream, offset: int, length: int, reason: str, line: bytes) -> None:
    request.rejects.add(stream=stream, offset=offset, length=length, reason=reason, head=line[:HEAD_BYTES])


def _count(request: Request, line: bytes, why: str) -> None:
    """Count a line that looks like telemetry, and keep the first."""
    if not request.lookalikes.count:
        request.lookalikes.first = line.strip()[:EXAMPLE_BYTES]
        request.lookalikes.why = why
    request.lookalikes.count += 1


def _add_step(fields: Fields, now_ns: int, request: Request) -> None:
    if "step_index" not in fields:
        foreign.complete_step(fields)
    index = whole(fields, "step_index", None)
    reward = number(fields, "reward")
    env_index = whole(fields, "env_index", 0)
    agent_id = name_in(fields, "agent_id")
    episode_index = whole(fields, "episode_index", 0)
    terminated = flag(fields, "terminated")
    truncated = flag(fields, "truncated")
    ts_ns = whole(fields, "ts_unix_ns", now_ns)

    # Filled in place, which is twice as fast as building a Step and copying it into the request.
    event = request.events.add()
    event.ts_ns = ts_ns
    step = event.step
    step.step_index = index
    if reward is not None:
        step.reward = reward
    if env_index:
        step.env_index = env_index
    if agent_id:
        step.agent_id = agent_id
    if episode_index:
        step.episode_index = episode_index
    if terminated:
        step.terminated = True
    if truncated:
        step.truncated = True
    if fields:
        step.extra = encode(fields)


def _add_episode(fields: Fields, now_ns: int, request: Request) -> None:
    if "total_reward" not in fields:
        foreign.complete_episode(fields)
    elif "steps" not in fields:
        fields["steps"] = fields.pop("num_steps", NULL)
    total_reward = number(fields, "total_reward")
    if total_reward is None:
        raise InvalidField("total_reward", "is missing")
    episode = pb.Episode(
        episode_index=whole(fields, "episode_index", None),
        total_reward=total_reward,
        steps=whole(fields, "steps", None),
        env_index=whole(fields, "env_index", 0),
        agent_id=name_in(fields, "agent_id"),
        terminated=flag(fields, "terminated"),
        truncated=flag(fields, "truncated"),
        global_step=count_in(fields, "global_step"),
    )
    ts_ns = whole(fields, "ts_unix_ns", now_ns)
    episode.extra = rest(fields)
    request.events.add(ts_ns=ts_ns, episode=episode)


def _add_metric(fields: Fields, now_ns: int, request: Request) -> None:
    values = _values(fields)
    step = whole(fields, "step", 0)
    ts_ns = whole(fields, "ts_unix_ns", now_ns)

    event = request.events.add()
    event.ts_ns = ts_ns
    metric = event.metric
    metric.step = step
    metric.names.extend(values)
    metric.values.extend(values.values())
    if fields:
        metric.extra = encode(fields)


def _values(fields: Fields) -> dict[str, float]:
    """The scalars of a metric line: `values{}`, or `name` and `value`, or both."""
    if "values" not in fields and "name" not in fields:
        foreign.complete_metric(fields)
    values = {}
    if (raw := fields.pop("values", NULL)) != NULL:
        values = floats_of(raw)
    if "name" in fields or not values:
        raw = fields.pop("name", NULL)
        if not bytes(raw).startswith(b'"'):
            raise InvalidField("name", "is missing" if raw == NULL else f"{excerpt(raw)} is not a string")
        values[text_of("name", bytes(raw))] = scalar("value", fields.pop("value", NULL))
    if (longest := max(map(len, values))) > LONGEST_NAME:
        raise InvalidField("name", f"has {longest:,} characters; at most {LONGEST_NAME} are possible")
    return values


def _add_lifecycle(fields: Fields, now_ns: int, request: Request) -> None:
    event = text_of("event", bytes(fields.pop("event")))
    stamp = fields.pop("timestamp", NULL)
    ts_ns = whole(fields, "ts_unix_ns", now_ns if stamp == NULL else time_ns(stamp))
    payload = fields.pop("payload", NULL)
    if payload == NULL:
        payload = Raw(b"{}")
    if not bytes(payload).startswith(b"{"):
        raise InvalidField("payload", f"{excerpt(payload)} is not an object")
    lifecycle = pb.Lifecycle(event=event, payload=bytes(payload), extra=rest(fields))
    request.events.add(ts_ns=ts_ns, lifecycle=lifecycle)


_KINDS: dict[str, Adder] = {
    "step": _add_step,
    "episode": _add_episode,
    "metric": _add_metric,
    "lifecycle": _add_lifecycle,
}
_OWN_KINDS = {b'"%b"' % kind.encode(): _KINDS[kind] for kind in ("step", "episode", "metric")}


def _omit_long_observation(fields: Fields) -> None:
    size = len(memoryview(fields.get("observation", NULL)))
    if size > OBSERVATION_BYTES:
        del fields["observation"]
        fields["observation_omitted"] = Raw(b"%d" % size)
