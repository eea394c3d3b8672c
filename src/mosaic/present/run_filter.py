"""The filter of a list of runs: `state:live algo:ppo return>400 -sweep "quoted words"`.

Every part must match. A part is
    word or "quoted words"     anywhere in name, worker, algorithm, environment, state, tags or id
    field:value                the text of a field contains the value; several values: state:done,failed
    field>number  < >= <= =    a number, or a duration for age: return>400 steps>1e6 age<2h
    -part                      must not match
"""

import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mosaic.model.nearest import did_you_mean
from mosaic.model.state_words import STATES
from mosaic.present.durations import parse_duration
from mosaic.present.scores import is_rate_known, score
from mosaic.present.state_marks import WORD
from mosaic.present.text import printable

if TYPE_CHECKING:
    from mosaic.client import Run

Condition = Callable[["Run", float], bool]  # the run, and the time now

TEXTS: "dict[str, Callable[[Run], str]]" = {
    "name": lambda run: run.name,
    "worker": lambda run: run.worker_name,
    "algo": lambda run: run.algo,
    "env": lambda run: run.env_id,
    "id": lambda run: run.run_id,
    "parent": lambda run: run.parent_run_id,
    "reason": lambda run: run.reason,
}
NUMBERS: "dict[str, Callable[[Run, float], float | None]]" = {
    "return": lambda run, _: score(run),
    "steps": lambda run, _: run.summary.env_steps,
    "episodes": lambda run, _: run.summary.episodes,
    "rate": lambda run, _: run.summary.steps_per_s if is_rate_known(run) else None,
    "progress": lambda run, _: None if run.progress is None else run.progress * 100,
    "seed": lambda run, _: run.seed,
    "gpus": lambda run, _: len(run.granted),
    "age": lambda run, now: now - run.created_at,
}
FIELDS = ("state", *TEXTS, "tag", *NUMBERS)
COMPARE: dict[str, Callable[[float, float], bool]] = {
    ">": lambda value, limit: value > limit,
    "<": lambda value, limit: value < limit,
    ">=": lambda value, limit: value >= limit,
    "<=": lambda value, limit: value <= limit,
    "=": lambda value, limit: value == limit,
    ":": lambda value, limit: value == limit,
}
UNITS = {"k": 1e3, "m": 1e6, "g": 1e9, "%": 1.0}
# A part: a minus sign, a field with its operator, and then quoted or plain text. A quote that is not closed is.
PART = re.compile(r'(-?)(?:([a-z_/]+)(:|>=|<=|>|<|=))?(?:"([^"]*)(?:"|$)|(\S*))', re.IGNORECASE)


class BadFilter(ValueError):
    """What is wrong with a filter, in one sentence."""


@dataclass(frozen=True)
class RunFilter:
    """A filter that has been understood."""

    text: str = ""
    conditions: tuple[Condition, ...] = ()

    def matches(self, run: "Run", now: float) -> bool:
        return all(condition(run, now) for condition in self.conditions)

    def chosen(self, runs: "Iterable[Run]") -> "list[Run]":
        now = time.time()
        return [run for run in runs if self.matches(run, now)] if self.conditions else list(runs)


def parse_filter(text: str) -> RunFilter:
    """Understand a filter, or raise BadFilter."""
    parts = (_condition(found) for found in PART.finditer(text) if found[0])
    return RunFilter(text, tuple(part for part in parts if part))


def searchable(run: "Run") -> str:
    """The text in which plain words are looked for."""
    parts = (run.name, run.worker_name, run.algo, run.env_id, run.state, WORD[run.state], *run.tags, run.run_id)
    return " ".join(parts).lower()


def _condition(found: re.Match[str]) -> Condition | None:
    minus, field, operator, quoted, plain = found.groups()
    value = (plain if quoted is None else quoted).lower()
    if field:
        condition = _field_condition(field.lower(), operator, value)
    elif value:
        condition = _contains(value)
    else:
        return None  # a lone minus sign: the user is still typing
    return _negated(condition) if minus else condition


def _field_condition(field: str, operator: str, value: str) -> Condition:
    if field not in FIELDS:
        hint = did_you_mean(field, FIELDS, 1) or f"Choose from: {', '.join(FIELDS)}."
        raise BadFilter(f"{field}: is not a field of a run. {hint} To search for the text itself, put it in quotes.")
    if not value.strip(","):
        raise BadFilter(f"{field}{operator} needs a value, for example {EXAMPLES.get(field, f'{field}:x')}.")
    if field in NUMBERS:
        return _number_condition(field, operator, value)
    if operator not in (":", "="):
        raise BadFilter(f"{field}: is text and cannot be compared with {operator}. Write {field}:{printable(value)}.")
    values = [part for part in value.split(",") if part]
    if field == "state":
        return _state_condition(values)
    if field == "tag":
        return lambda run, _: any(part in tag.lower() for part in values for tag in run.tags)
    text = TEXTS[field]
    return lambda run, _: any(part in text(run).lower() for part in values)


def _state_condition(values: list[str]) -> Condition:
    for value in values:
        if value not in STATES:
            hint = did_you_mean(value, STATES, 1) or f"Choose from: {', '.join(STATES)}."
            raise BadFilter(f'state: "{printable(value)}" is not a state. {hint}')
    states = frozenset().union(*(STATES[value] for value in values))
    return lambda run, _: run.state in states


def _number_condition(field: str, operator: str, value: str) -> Condition:
    read, compare = NUMBERS[field], COMPARE[operator]
    limit = _limit(field, value)

    def condition(run: "Run", now: float) -> bool:
        number = read(run, now)
        return number is not None and compare(number, limit)

    return condition


def _limit(field: str, value: str) -> float:
    if field == "age":
        try:
            return parse_duration(value)
        except ValueError as error:
            raise BadFilter(f"age: {printable(str(error))}") from error
    unit = UNITS.get(value[-1])
    try:
        return float(value[:-1]) * unit if unit else float(value)
    except ValueError as error:
        raise BadFilter(f'{field}: must be a number, not "{printable(value)}".') from error


def _contains(word: str) -> Condition:
    return lambda run, _: word in searchable(run)


def _negated(condition: Condition) -> Condition:
    return lambda run, now: not condition(run, now)


EXAMPLES = {  # of fields with a value
    "state": "state:live",
    "worker": "worker:cleanrl",
    "algo": "algo:ppo",
    "env": "env:CartPole",
    "tag": "tag:sweep",
    "return": "return>400",
    "steps": "steps>1e6",
    "episodes": "episodes>100",
    "rate": "rate>1000",
    "progress": "progress>50",
    "seed": "seed:1",
    "gpus": "gpus>0",
    "age": "age<2h",
}
