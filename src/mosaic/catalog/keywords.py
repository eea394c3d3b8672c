"""The keywords that a worker's schema may use. Any other is refused: the user would believe that it is checked."""

from collections.abc import Iterator, Mapping
from typing import Any

from mosaic_sdk.keywords import ALGORITHMS, KEYWORDS

from mosaic.catalog.interactive import problem_of
from mosaic.catalog.schema import EXPORT_KEY, INTERACTIVE_KEY, Schema, kinds_of
from mosaic.model.nearest import nearest

TYPES = ("integer", "number", "boolean", "string", "array", "object", "null")
CHECKED = (
    *("type", "enum", "const", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
    *("minLength", "maxLength", "pattern", "items", "minItems", "maxItems"),
    *("properties", "required", "additionalProperties"),
)
# They describe a value and limit nothing. `format` is one of them in JSON Schema itself.
ANNOTATIONS = (
    *("title", "description", "default", "examples", "format"),
    *("deprecated", "readOnly", "writeOnly", "$schema", "$id", "$comment"),
)


def unsupported(schema: Schema) -> str:
    """The first part of this schema that MOSAIC cannot check, as a sentence; empty if it can check all of it."""
    if (way := schema.get(INTERACTIVE_KEY)) is not None and (problem := problem_of(way)):
        return f"{INTERACTIVE_KEY} {problem}"
    if (module := schema.get(EXPORT_KEY)) is not None and not is_module(module):
        return f"{EXPORT_KEY} is not the name of a module"
    try:
        return next(_problems(schema, ""), "")
    except RecursionError:
        return "it is nested too deeply"


def is_module(name: object) -> bool:
    """Whether it is a dotted name, which `python -m` cannot take for an option or a path."""
    return isinstance(name, str) and all(part.isidentifier() for part in name.split("."))


def _problems(part: Any, field: str) -> Iterator[str]:
    if not isinstance(part, Mapping):
        yield f"'{field}' is not described by an object"
        return
    yield from (_unknown(keyword, field) for keyword in part if not _is_known(keyword))
    yield from (f"'{kind}' in {_at(field)} is not a JSON type" for kind in _names(part) if kind not in TYPES)
    if not isinstance(part.get("additionalProperties", True), bool):
        yield f"'additionalProperties' in {_at(field)} must be true or false"
    if "items" in part:
        yield from _problems(part["items"], f"{field}[]")
    yield from _problems_within(part.get("properties"), field)
    for own in _values(part.get(ALGORITHMS)):
        yield from _problems_within(own, field)


def _problems_within(properties: Any, field: str) -> Iterator[str]:
    if isinstance(properties, Mapping):
        for name, part in properties.items():
            yield from _problems(part, f"{field}.{name}" if field else str(name))


def _is_known(keyword: str) -> bool:
    # Another program's own keywords are annotations to us; ours are not, when they are misspelled.
    is_foreign = keyword.startswith("x-") and not keyword.startswith("x-mosaic-")
    return keyword in CHECKED or keyword in ANNOTATIONS or keyword in KEYWORDS or is_foreign


def _unknown(keyword: str, field: str) -> str:
    # A suggestion for a keyword of JSON Schema would mislead: 'maxProperties' does not mean 'properties'.
    near = nearest(keyword, KEYWORDS, n=1) if keyword.startswith("x-mosaic-") else []
    hint = f"did you mean '{near[0]}'?" if near else "remove it from the schema"
    return f"MOSAIC does not support the keyword '{keyword}' in {_at(field)}; {hint}"


def _at(field: str) -> str:
    return f"'{field}'" if field else "the schema"


def _names(part: Schema) -> list[str]:
    return kinds_of(part) if isinstance(part.get("type", []), str | list) else []


def _values(part: Any) -> list[Any]:
    return list(part.values()) if isinstance(part, Mapping) else []
