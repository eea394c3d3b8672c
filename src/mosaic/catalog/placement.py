"""Settings as the worker expects them: every key in its place and under its main name, whole numbers as integers."""

from collections.abc import Iterator, Mapping
from typing import Any

from mosaic.catalog.schema import OPEN_KEY, PLACES, SAME_KEY, Schema, inside, is_set, kinds_of, place_of, properties_of
from mosaic.model.errors import BadConfig

PATH = "metadata.worker.config"  # where the settings are in a trainer config
_Place = tuple[str, ...]


def put_in_place(settings: Mapping[str, Any], schema: Schema, path: str = PATH) -> dict[str, Any]:
    """The settings, with every misplaced key moved to where the schema has it.

    `learning_rate`, `extras.learning_rate` and `extras.algo_params.learning_rate` are one setting; BadConfig when two
    of them differ. So are two names of one setting (x-mosaic-same-as). A top-level key that the schema does not have
    moves to the place that these settings open (x-mosaic-open-with), if there is one.
    """
    placed = _copy(settings)
    for place, key in [*_misplaced(placed, schema)]:
        _move(placed, key, place, place_of(key, schema) or (), path)
    for place in PLACES:
        _rename(_object_at(placed, place) or {}, inside(schema, place), _dotted(path, *place))
    for key in [key for key in placed if place_of(key, schema) is None]:
        _move(placed, key, (), _open_place(placed, schema), path)
    return placed


def with_integers(value: Any, schema: Schema) -> Any:
    """Turn 1e5 into 100000 where the schema asks for an integer: to most programs 1e5 is a float."""
    if isinstance(value, float) and value.is_integer():
        kinds = kinds_of(schema)
        return int(value) if "integer" in kinds and "number" not in kinds else value
    if isinstance(value, Mapping):
        known = properties_of(schema)
        return {name: with_integers(item, known.get(name, {})) for name, item in value.items()}
    if isinstance(value, list):
        return [with_integers(item, schema.get("items", {})) for item in value]
    return value


def _copy(settings: Mapping[str, Any]) -> dict[str, Any]:
    """A copy that shares no object with the original."""
    return {name: _copy(value) if isinstance(value, Mapping) else value for name, value in settings.items()}


def _misplaced(settings: Mapping[str, Any], schema: Schema) -> Iterator[tuple[_Place, str]]:
    for place in PLACES:
        part = inside(schema, place)
        # An open place below the top level may have a key with the same name as another setting.
        if place and part.get("additionalProperties") is not False:
            continue
        for key in _object_at(settings, place) or ():
            if key not in properties_of(part) and place_of(key, schema) is not None:
                yield place, key


def _open_place(settings: Mapping[str, Any], schema: Schema) -> _Place:
    for place in PLACES:
        key = inside(schema, place).get(OPEN_KEY)
        if key and is_set(settings, str(key)):
            return place
    return ()


def _move(settings: dict[str, Any], key: str, old: _Place, new: _Place, path: str) -> None:
    source, target = _object_at(settings, old), _object_at(settings, new, make=True)
    # A value in place of an object is refused by check.py.
    if source is None or target is None or source is target:
        return
    value = source.pop(key)
    if key not in target:
        target[key] = value
    elif isinstance(value, Mapping) and isinstance(target[key], dict):
        for name, item in value.items():
            _put(target[key], name, item, _dotted(path, *old, key, name), _dotted(*new, key, name))
    else:
        _put(target, key, value, _dotted(path, *old, key), _dotted(*new, key))


def _rename(settings: dict[str, Any], schema: Schema, path: str) -> None:
    """Replace aliases by main names, so that a run is recorded with one name for each setting."""
    for name in [name for name in settings if SAME_KEY in properties_of(schema).get(name, {})]:
        first = str(properties_of(schema)[name][SAME_KEY])
        _put(settings, first, settings.pop(name), _dotted(path, name), first)


def _put(target: dict[str, Any], key: str, value: Any, field: str, other: str) -> None:
    if target.setdefault(key, value) != value:
        raise BadConfig(field, f"is the same setting as {other} but has another value. Keep one of them.")


def _object_at(settings: Mapping[str, Any], place: _Place, make: bool = False) -> dict[str, Any] | None:
    found: Any = settings
    for name in place:
        found = found.setdefault(name, {}) if make else found.get(name, {})
        if not isinstance(found, dict):
            return None
    return found if isinstance(found, dict) else None


def _dotted(*names: str) -> str:
    return ".".join(name for name in names if name)
