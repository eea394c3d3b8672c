"""Every problem of a form at once: catalog.check stops at the first, as a submit does."""

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from mosaic.catalog.check import check
from mosaic.catalog.placement import PATH, put_in_place
from mosaic.catalog.request import rename_fields
from mosaic.catalog.schema import Schema
from mosaic.model.errors import BadConfig
from mosaic.present.form_fields import Field

OTHER = ""  # the key of what belongs to no field
_MOST = 50


def problems_of(given: Mapping[str, Any], schema: Schema, fields: Sequence[Field]) -> dict[str, str]:
    """The sentences that a submit would end with, one per field: check, set the invalid value aside, check again."""
    left: dict[str, Any] = copy.deepcopy(dict(given))
    found: dict[str, str] = {}
    for _ in range(_MOST):
        try:
            left = put_in_place(left, schema)
            check(left, schema, PATH)
            break
        except BadConfig as error:
            path = error.field.removeprefix(f"{PATH}.")
            field = owner_of(path, fields)
            found.setdefault(field.key if field else OTHER, sentence(error, field))
            if field is None:
                break
            schema = _set_aside(left, schema, field)
    return found


def owner_of(path: str, fields: Sequence[Field]) -> Field | None:
    """The field that a path is in: `extras.stages[2].steps` is in `extras.stages`."""
    inner = [field for field in fields if path == field.path or path.startswith((f"{field.path}.", f"{field.path}["))]
    by_name = [field for field in fields if field.key == path]
    return next(iter((*inner, *by_name)), None)


def sentence(error: BadConfig, field: Field | None) -> str:
    """The error as `mosaic run` prints it; beside its field it has the short name of the field."""
    text = rename_fields(str(error))
    return f"{field.key}{text[len(field.path) :]}" if field and text.startswith(field.path) else text


def _set_aside(given: dict[str, Any], schema: Schema, field: Field) -> Schema:
    """Remove the value; one that was missing is no longer required."""
    place: Any = given
    for name in field.place:
        place = place.get(name) if isinstance(place, dict) else None
    if isinstance(place, dict) and field.name in place:
        del place[field.name]
        return schema
    # Not in its place: it was given elsewhere under the same name, or it is missing.
    given.pop(field.name, None)
    return {**schema, "required": [name for name in schema.get("required", ()) if name != field.name]}
