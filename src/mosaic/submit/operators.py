"""`metadata.operators` of a trainer config: decision makers that run in the environments of other workers.

    {"ppo": {"kind": "rl", "run": "last", "checkpoint": "best", "settings": {}, "env": {"id": "CartPole-v1"}},
     "gpt": {"kind": "llm", "settings": {"model": "gpt-x"}},
     "toy": {"kind": "worker", "worker": "toy@jax", "settings": {}}}

`env` is the environment that the operator's worker creates itself; without it the operator only selects actions. The
daemon replaces `run` by the run's id and `checkpoint` by a path, and adds what it found under `resolved`
(daemon/operators.py):

    {"worker": {"module", "name", "variant", "arguments", "config", "environment"},
     "about": {"worker", "run_id", "checkpoint", "step", "env_id", "algo"}}
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from mosaic.model.names import is_operator_name
from mosaic.model.run import Operator, WorkerSpec
from mosaic.submit.section import Section
from mosaic.submit.variables import read_variables

RL, LLM, WORKER = "rl", "llm", "worker"
KEYS = {  # of an operator of each kind, besides those that all have
    RL: ("run", "checkpoint"),
    LLM: (),
    WORKER: ("worker",),
}
COMMON_KEYS = ("kind", "settings", "env", "resolved")
LLM_WORKER = "llm"
MAX_OPERATORS = 64
_ENV_KEYS = ("id", "kwargs", "wrappers", "api")


@dataclass(frozen=True)
class Asked:
    """An operator as the config asks for it."""

    name: str
    kind: str
    section: Section  # the entry itself: resolved values are written into it
    run: str = ""
    worker: str = ""  # NAME or NAME@VARIANT
    settings: Mapping[str, Any] = field(default_factory=dict)
    env_id: str = ""  # empty: it creates no environment of its own
    env_kwargs: Mapping[str, Any] = field(default_factory=dict)
    env_wrappers: tuple[Any, ...] = ()

    @property
    def settings_path(self) -> str:
        return self.section.of("settings")


def read_asked(metadata: Section) -> list[Asked]:
    """What the config asks for, or BadConfig with the path of the field."""
    return [_read(name, section) for name, section in _entries(metadata)]


def read_operators(metadata: Section) -> dict[str, Operator]:
    """The operators as the daemon resolved them; without a worker if it has not yet."""
    return {asked.name: _resolved(asked) for asked in read_asked(metadata)}


def _entries(metadata: Section) -> Iterator[tuple[str, Section]]:
    operators = metadata.section("operators")
    if len(operators.values) > MAX_OPERATORS:
        raise metadata.bad("operators", f"has {len(operators.values)} operators; the maximum is {MAX_OPERATORS}.")
    for name in operators.values:
        if not is_operator_name(name):
            raise operators.bad(name, "is not a valid name: use 1 to 40 letters, digits, dots, dashes or underscores.")
        entry = operators.section(name)
        if operators.values[name] is None:
            raise operators.bad(name, "must be an object, not null.")
        yield name, entry


def _read(name: str, section: Section) -> Asked:
    kind = section.text("kind")
    if kind not in KEYS:
        said = f"not '{kind}'" if kind else "and is missing"
        raise section.bad("kind", f"must be one of {', '.join(KEYS)}, {said}.")
    section.refuse_unknown((*COMMON_KEYS, *KEYS[kind]))
    for needed in KEYS[kind][:1]:
        if not section.text(needed):
            raise section.bad(needed, f"missing. An operator of the kind {kind} needs it.")
    section.text("checkpoint")
    env = section.section("env")
    env.refuse_unknown(_ENV_KEYS)
    if section.values.get("env") is not None and not env.text("id"):
        raise env.bad("id", "missing. Leave env out for an operator that only selects actions.")
    return Asked(
        name=name,
        kind=kind,
        section=section,
        run=section.text("run"),
        worker=LLM_WORKER if kind == LLM else section.text("worker"),
        settings=section.section("settings").values,
        env_id=env.text("id"),
        env_kwargs=env.section("kwargs").values,
        env_wrappers=_wrappers(env),
    )


def _wrappers(env: Section) -> tuple[Any, ...]:
    wrappers = env.values.get("wrappers")
    if wrappers is None:
        return ()
    if not isinstance(wrappers, list):
        raise env.bad("wrappers", "must be a list.")
    return tuple(wrappers)


def _resolved(asked: Asked) -> Operator:
    found = asked.section.section("resolved")
    worker = found.section("worker")
    if not worker.values:
        return Operator(asked.kind, owns_env=bool(asked.env_id))
    spec = WorkerSpec(
        module=worker.text("module"),
        name=worker.text("name"),
        variant=worker.text("variant"),
        arguments=worker.texts("arguments"),
        config=worker.section("config").values,
        environment=read_variables(worker.section("environment")),
    )
    return Operator(asked.kind, spec, found.section("about").values, bool(asked.env_id))
