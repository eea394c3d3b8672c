"""A run derived from another one: the parent's settings, those that its worker needs, the user's on top.

    {"metadata": {"parent_run_id": "01…", "relation": "resume", "worker": {"config": {"steps": 2000}}}}

The worker's schema says which settings it needs:
{"x-mosaic-resume": {"extras.mode": "resume_training", "extras.policy_path": "{checkpoint}"}}.
See docs/howto/new-worker.md.
"""

import copy
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mosaic.catalog.placement import PATH, put_in_place
from mosaic.catalog.schema import DERIVING_KEYS, Schema, parameters
from mosaic.model.errors import BadConfig
from mosaic.model.labels import MAX_NAME
from mosaic.submit.checkpoints import Checkpoint
from mosaic.submit.config import FIELDS, RELATIONS, TOTAL_NAMES
from mosaic.submit.route import plays_operators
from mosaic.submit.section import Section

RESUME, EVAL = RELATIONS
KEYWORDS = dict(zip(RELATIONS, DERIVING_KEYS, strict=True))
FIRST_EVAL_SEED = 1_000_000  # trainings do not use these seeds
OPTIONS = {"episodes": "the number of episodes", "seed": "the first seed", "video": "video recording"}
ASKED = {  # keys of `metadata` in a request to derive a run, and their meaning; not part of the resulting config
    "checkpoint": "of the parent: `best`, or a path; without it, the newest",
    "evaluation": "for `eval`: `episodes`, `seed` and `video`",
}
PARENT = "{parent}"  # the parent's own value of that setting
_SUFFIX = re.compile(r" \(resumed(?: (\d+))?\)$")
_OF_PARENT = ("run_id", "worker_id")
_NOT_CARRIED = ("config", "worker_id")


@dataclass(frozen=True)
class Parent:
    """The run that another one is derived from."""

    run_id: str
    name: str
    worker_name: str
    document: Mapping[str, Any]  # its validated trainer config
    schema: Schema = field(default_factory=dict)
    is_finished: bool = False  # it ran to its end

    @property
    def worker(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.document.get("metadata", {}).get("worker", {})
        return found

    @property
    def config(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.worker.get("config") or {}
        return found

    @property
    def operators(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.document.get("metadata", {}).get("operators") or {}
        return found

    @property
    def drives(self) -> bool:
        return bool(self.worker.get("drives"))

    @property
    def plays_operators(self) -> bool:
        """Whether it is an evaluation of operators, which can be continued like a training."""
        return plays_operators(str(self.worker.get("module") or ""), bool(self.operators))


def schema_settings(parent: Parent, relation: str) -> Mapping[str, Any]:
    """The settings that the schema has for this relation; BadConfig if it has none."""
    keyword = KEYWORDS[relation]
    from_schema = parent.schema.get(keyword)
    if isinstance(from_schema, Mapping) and from_schema:
        return from_schema
    verb = "resumed" if relation == RESUME else "evaluated"
    if parent.worker.get("python"):
        raise BadConfig(
            "",
            f"Run {parent.run_id} is a program of your own, and MOSAIC does not know how it is {verb}. Start it again "
            "with its own option for a checkpoint, such as: mosaic run python train.py --resume PATH",
        )
    who = f"Run {parent.run_id} is a script, which" if parent.worker.get("script") else f"Worker '{parent.worker_name}'"
    raise BadConfig(
        "",
        f"{who} does not say how its runs are {verb}: its schema has no {keyword} (see docs/howto/new-worker.md). "
        "Pass the checkpoint as one of its settings instead.",
    )


def read_evaluation(metadata: Section, parent: Parent) -> dict[str, Any]:
    """The options in `metadata.evaluation`; BadConfig for one that the worker does not support."""
    section = metadata.section("evaluation")
    section.refuse_unknown(OPTIONS)
    asked = {name: value for name, value in section.values.items() if value is not None and value is not False}
    section.whole("episodes", 1, 1_000_000)
    section.whole("seed", 0, 2**31 - 1)
    section.flag("video")
    for name in asked:
        if f"{{{name}}}" not in schema_settings(parent, EVAL).values():
            raise BadConfig("", f"Worker '{parent.worker_name}' has no setting for {OPTIONS[name]} of an evaluation.")
    return {"seed": FIRST_EVAL_SEED, **asked}


def derive(document: Mapping[str, Any], parent: Parent, relation: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """The complete config of the new run. `values` replace the {placeholders} in the schema: checkpoint, episodes …"""
    metadata = dict(document.get("metadata", {}))
    own = Section(dict(metadata.get("worker") or {}), "metadata.worker")
    asked = put_in_place(own.section("config").values, parent.schema)
    from_schema = schema_settings(parent, relation)
    refuse_second_checkpoint(from_schema, asked, PATH, "Choose another with --checkpoint.")
    config = merged(_base(parent, relation, asked), filled(from_schema, parent.config, values))
    worker = {
        name: value for name, value in _known(parent.worker, "metadata.worker").items() if name not in _NOT_CARRIED
    }
    metadata["worker"] = {**copy.deepcopy(worker), "config": merged(config, asked)}
    metadata.setdefault("run_name", name_of(parent.name or parent.worker_name, relation))
    if parent.operators:
        _inherit_operators(metadata, parent)
    if relation == RESUME and parent.drives:
        # A driver that continues has the runs of the same experiment.
        metadata["experiment"] = copy.deepcopy(parent.document["metadata"].get("experiment"))
    if relation == RESUME and parent.document["metadata"].get("tags"):
        metadata.setdefault("tags", parent.document["metadata"]["tags"])
    for used in ASKED:
        metadata.pop(used, None)
    payload = merged(_payload(parent, relation), document.get("payload") or {})
    return {**document, "metadata": metadata, "payload": payload}


def _inherit_operators(metadata: dict[str, Any], parent: Parent) -> None:
    """The same operators: their runs and checkpoints are recorded with the parent, not looked up again."""
    if metadata.get("operators"):
        raise BadConfig("metadata.operators", "a resumed evaluation has the operators of its parent. Leave this out.")
    metadata["operators"] = copy.deepcopy(dict(parent.operators))


def merged(base: Mapping[str, Any], top: Mapping[str, Any]) -> dict[str, Any]:
    """Both, merged object by object; values of `top` take precedence."""
    whole = copy.deepcopy(dict(base))
    for name, value in top.items():
        here = whole.get(name)
        whole[name] = merged(here, value) if isinstance(here, dict) and isinstance(value, Mapping) else value
    return whole


def name_of(name: str, relation: str) -> str:
    """`crawler` → `crawler (resumed)` → `crawler (resumed 2)`, or `eval of crawler`."""
    if relation == EVAL:
        return f"eval of {name}"[:MAX_NAME]
    before = _SUFFIX.search(name)
    count = int(before[1] or 1) + 1 if before else 1
    suffix = f" (resumed {count})" if count > 1 else " (resumed)"
    return _SUFFIX.sub("", name)[: MAX_NAME - len(suffix)] + suffix


def total_of(config: Mapping[str, Any], schema: Schema) -> tuple[str, int | None]:
    """The setting for the total number of steps, and its value in the config or the schema's default."""
    known = {name: part.get("default") for place, name, part in parameters(schema) if not place}
    names = [name for name in TOTAL_NAMES if name in config] or [name for name in TOTAL_NAMES if name in known]
    if not names:
        return "", None
    total = config.get(names[0], known.get(names[0]))
    is_number = isinstance(total, int | float) and not isinstance(total, bool) and 0 < total < 2**63
    return names[0], int(total) if is_number else None


def refuse_finished(parent: Parent, before: int | None, found: Checkpoint, config: Mapping[str, Any]) -> None:
    """Refuse to resume a training that is complete: it would end at once and look like a success.

    `before`: the total steps of the parent; None if unknown.
    """
    key, total = total_of(config, parent.schema)
    total = total or before
    if total is None:
        return
    is_done = found.step is not None and found.step >= total
    # A training may end a few steps before its total, because it counts in batches.
    was_done = parent.is_finished and before is not None and total <= before
    if is_done or was_done:
        at = f"step {found.step} of {total}" if found.step is not None else f"the end of its {total} steps"
        key = key or TOTAL_NAMES[0]
        raise BadConfig(
            "",
            f"Run {parent.run_id} is at {at}: nothing is left to train. {key} counts from the start of the parent, so "
            f"increase it: mosaic resume {parent.run_id} {key}={2 * max(total, found.step or 0)}",
        )


def refuse_second_checkpoint(from_schema: Mapping[str, Any], asked: Mapping[str, Any], path: str, hint: str) -> None:
    for key in (key for key, value in from_schema.items() if value == "{checkpoint}"):
        if _at(asked, key.split(".")):
            raise BadConfig(f"{path}.{key}", f"is set to the checkpoint of the parent. {hint}")


def _base(parent: Parent, relation: str, asked: Mapping[str, Any]) -> dict[str, Any]:
    """The settings to inherit: all for a resume; for an evaluation the schema names them."""
    if relation == EVAL:
        return {}
    # These are names of one setting: the user's value must replace the parent's under any of them.
    renamed = TOTAL_NAMES if any(name in asked for name in TOTAL_NAMES) else ()
    left_out = (*_OF_PARENT, *renamed)
    return {name: value for name, value in parent.config.items() if name not in left_out}


def _payload(parent: Parent, relation: str) -> dict[str, Any]:
    payload: Mapping[str, Any] = parent.document.get("payload") or {}
    sections = ("resources", "limits") if relation == RESUME else ("resources",)
    found: dict[str, Any] = {name: _known(payload[name], f"payload.{name}") for name in sections if payload.get(name)}
    if relation == RESUME and payload.get("parts"):
        found["parts"] = copy.deepcopy(payload["parts"])
    return found


def _known(values: Mapping[str, Any], path: str) -> dict[str, Any]:
    """The config without unknown fields, which an older MOSAIC accepted and this one refuses."""
    return {
        name: _known(value, f"{path}.{name}") if f"{path}.{name}" in FIELDS else value
        for name, value in values.items()
        if name in FIELDS[path]
    }


def filled(
    from_schema: Mapping[str, Any], parent_config: Mapping[str, Any], values: Mapping[str, Any]
) -> dict[str, Any]:
    """The settings from the schema in their places, without those whose placeholder has no value."""
    placed: dict[str, Any] = {}
    for key, value in from_schema.items():
        names = key.split(".")
        is_placeholder = isinstance(value, str) and value.startswith("{") and value.endswith("}")
        given = _at(parent_config, names) if value == PARENT else values.get(value[1:-1]) if is_placeholder else value
        if given is not None:
            _put(placed, names, given)
    return placed


def _at(config: Mapping[str, Any], names: list[str]) -> Any:
    value: Any = config
    for name in names:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _put(config: dict[str, Any], names: list[str], value: Any) -> None:
    for name in names[:-1]:
        config = config.setdefault(name, {})
    config[names[-1]] = value
