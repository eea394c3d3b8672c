"""The fields of a form: one for each setting of a worker's schema, with what a person must know to fill it in."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mosaic.catalog.check import is_a
from mosaic.catalog.common import EXTRAS, FILLED_IN
from mosaic.catalog.placement import with_integers
from mosaic.catalog.schema import (
    CHECKPOINT_KEY,
    OWNER_KEY,
    SAME_KEY,
    UNAVAILABLE_KEY,
    Schema,
    inside,
    kind_of,
    kinds_of,
    parameters,
    place_of,
)
from mosaic.catalog.typed_settings import parse_value, type_value
from mosaic.present.text import printable

CHOICE, BOOL, INTEGER, NUMBER, TEXT, PATH, LIST, JSON = (
    *("choice", "bool", "integer", "number", "text", "path", "list", "json"),
)
_ONE_KIND = {"boolean": BOOL, "integer": INTEGER, "number": NUMBER, "string": TEXT, "array": LIST}
_GENERAL, _FURTHER, _MOSAIC = "General", "Further settings", "Live frames and storage"


@dataclass(frozen=True)
class Field:
    key: str  # as it is typed on the command line: its name, with its place where the name alone is ambiguous
    place: tuple[str, ...]
    name: str
    kind: str
    default: str = ""  # as text; empty: none
    help: str = ""
    limits: str = ""  # the valid values: `integer ≥ 1`
    choices: tuple[str, ...] = ()
    unavailable: Mapping[str, str] = field(default_factory=dict)  # choices that cannot be used here, with the reason
    algorithm: str = ""  # to which alone it belongs
    group: str = ""
    is_required: bool = False
    part: Schema = field(default_factory=dict, repr=False)

    @property
    def path(self) -> str:
        """Its dotted place in the worker's config."""
        return ".".join((*self.place, self.name))

    def value(self, text: str) -> Any:
        """The value that a text means. It may be invalid: catalog.check says so."""
        for choice in self.part.get("enum") or ():
            if text == text_of(choice):
                return choice
        value, kinds = parse_value(text), kinds_of(self.part)
        # In a field for text, 123 and true are texts.
        if kinds and "string" in kinds and not any(is_a(value, kind) for kind in kinds):
            return text
        return with_integers(value, self.part)

    def text(self, value: Any) -> str:
        """The text that means this value."""
        plain = text_of(value)
        return plain if self.value(plain) == value else json.dumps(value, ensure_ascii=False)


def text_of(value: Any) -> str:
    return value if isinstance(value, str) else type_value(value)


def fields_of(schema: Schema) -> tuple[Field, ...]:
    """The settings of a schema (as it applies to one config), without second names of the same setting."""
    return tuple(
        _field(place, name, part, schema)
        for place, name, part in parameters(schema)
        if SAME_KEY not in part and name not in FILLED_IN and _can_be_typed(name)
    )


def _can_be_typed(name: str) -> bool:
    return bool(name) and not any(mark in name for mark in ".=") and name.isprintable()


def _field(place: tuple[str, ...], name: str, part: Schema, schema: Schema) -> Field:
    default = part.get("default")
    unavailable = part.get(UNAVAILABLE_KEY, {})
    return Field(
        key=name if place_of(name, schema) == place else ".".join((*place, name)),
        place=place,
        name=name,
        kind=_kind(part),
        default="" if default is None else text_of(default),
        help=printable(str(part.get("description", ""))),
        limits=kind_of(part),
        choices=_choices(part),
        unavailable={str(value): str(reason) for value, reason in unavailable.items()},
        algorithm=str(inside(schema, place).get(OWNER_KEY, "")) if place else "",
        group=_group(place, name, inside(schema, place)),
        is_required=name in inside(schema, place).get("required", ()),
        part=part,
    )


def _kind(part: Schema) -> str:
    kinds = [kind for kind in kinds_of(part) if kind != "null"]
    if "enum" in part:
        return CHOICE
    if part.get(CHECKPOINT_KEY) or part.get("format") == "path":
        return PATH
    if set(kinds) == {"integer", "number"}:
        return NUMBER
    if kinds == ["boolean"] and "null" in kinds_of(part):
        return CHOICE  # a third state, which a check box does not have
    return _ONE_KIND.get(kinds[0], JSON) if len(kinds) == 1 else JSON


def _choices(part: Schema) -> tuple[str, ...]:
    if "enum" in part:
        return tuple(text_of(value) for value in part["enum"])
    is_nullable = set(kinds_of(part)) == {"boolean", "null"}
    return ("true", "false", "null") if is_nullable else ()


def _group(place: tuple[str, ...], name: str, schema: Schema) -> str:
    if name in EXTRAS and place == ("extras",) and name not in ("mode", "test_mode"):
        return _MOSAIC
    if place == ("extras", "algo_params"):
        owner = str(schema.get(OWNER_KEY, ""))
        return f"Hyperparameters of {owner}" if owner else "Hyperparameters"
    return _FURTHER if place else _GENERAL
