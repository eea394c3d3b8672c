"""`payload.parts` of a config, and `metadata.role` of a run that is a part (ADR 54).

{"payload": {"parts": [{"name": "env", "count": 2, "on": "slurm:cpu", "resources": {"cpus": 8}}]}}
"""

from dataclasses import fields
from typing import Any

from mosaic.engines.cluster import LOCAL, split_place
from mosaic.model.errors import BadConfig
from mosaic.model.names import VALID, is_worker_name
from mosaic.model.run import GpuRequest, Part, ResourceRequest, Role
from mosaic.submit.resources import read_gpus, read_resources
from mosaic.submit.section import Section

MOST_RUNS = 256  # of all parts of a run together
MOST_STARTS = 2**31
FIELDS = ("name", "count", "on", "resources")


def read_parts(payload: Section) -> tuple[Part, ...]:
    given = payload.values.get("parts")
    if given is None:
        return ()
    if not isinstance(given, list):
        raise payload.bad("parts", 'must be a list of objects such as {"name": "env", "count": 2}.')
    if len(given) > MOST_RUNS:  # before a million of them are read
        raise payload.bad("parts", f"has more than {MOST_RUNS} runs.")
    parts = tuple(_read_part(payload, number, part) for number, part in enumerate(given))
    if len({part.name for part in parts}) < len(parts):
        raise payload.bad("parts", "names a part twice. Set its count instead.")
    if sum(part.count for part in parts) > MOST_RUNS:
        raise payload.bad("parts", f"has more than {MOST_RUNS} runs.")
    return parts


def read_role(metadata: Section) -> Role | None:
    section = metadata.section("role")
    if not section.values:
        return None
    section.refuse_unknown(field.name for field in fields(Role))
    count = section.whole("count", 1, MOST_RUNS)
    index, number = section.whole("index", 0, count - 1), section.whole("number", 1, MOST_STARTS)
    return Role(section.text("part"), index, count, number, section.text("address"))


def place_of(part: Part, own: str) -> str:
    """Where a part runs, as in RunConfig.on. `own`: where its run is."""
    return own if not part.on else "" if part.on == LOCAL else part.on


def resources_of(document: dict[str, Any], name: str) -> dict[str, Any]:
    """What the config of a run asks for each run of this part."""
    parts: list[dict[str, Any]] = document["payload"]["parts"]
    return next((part.get("resources") or {} for part in parts if part["name"] == name), {})


def _read_part(payload: Section, number: int, given: Any) -> Part:
    place = payload.of(f"parts[{number}]")
    if not isinstance(given, dict):
        raise BadConfig(place, 'must be an object such as {"name": "env", "count": 2}.')
    section = Section(given, place)
    section.refuse_unknown(FIELDS)
    name, on, resources = section.text("name"), section.text("on"), section.section("resources")
    if not is_worker_name(name):
        raise section.bad("name", f"'{name}' is not a valid name. {VALID}")
    if on:
        split_place(on)
    resources.refuse_unknown(("gpus", *(field.name for field in fields(ResourceRequest))))
    gpus = resources.section("gpus")
    gpus.refuse_unknown(field.name for field in fields(GpuRequest))
    return Part(name, section.whole("count", 1, MOST_RUNS), on, read_gpus(gpus), read_resources(resources))
