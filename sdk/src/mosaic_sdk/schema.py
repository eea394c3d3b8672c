"""A worker's parameters as JSON Schema, made from its config class.

    @dataclass
    class MyConfig:
        run_id: str = ""
        seed: Optional[int] = None
        algo: str = field(default="ppo", metadata={"choices": ["ppo", "dqn"], "help": "the algorithm"})
        learning_rate: float = field(default=3e-4, metadata={"minimum": 0, "place": "extras.algo_params"})

    def get_worker_schema():              # beside get_worker_metadata
        return schema_of(MyConfig, lab={"short": {"total_timesteps": 100}})

A key lies in the schema where it lies in the config file: on the top level, in `extras`, in `extras.algo_params`.
`mosaic run` finds the place by the name, checks the values before anything starts, and prints the help.
"""

import dataclasses
import types
from typing import Any, Dict, Mapping, Optional, Union, get_args, get_origin, get_type_hints

LAB_KEY = "x-mosaic-lab"  # configs for `mosaic worker test`: short, long, fails
PLACES = ("", "extras", "extras.algo_params")

# What every worker's file holds, whatever the worker makes of it.
_COMMON = ("version", "run_id", "worker_id")
_TYPES = {
    int: "integer",
    float: "number",
    bool: "boolean",
    str: "string",
    list: "array",
    tuple: "array",
    dict: "object",
}
_UNIONS = (Union, getattr(types, "UnionType", Union))  # `int | None` is one of its own since 3.10
_RANGES = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength", "pattern")


def schema_of(
    config: type, *, title: str = "", lab: Optional[Mapping[str, Mapping[str, Any]]] = None, closed: bool = True
) -> Dict[str, Any]:
    """The schema of a class with annotated fields. `closed`: a key it does not have is an error, in extras too."""
    fields = {field.name: field for field in dataclasses.fields(config)} if dataclasses.is_dataclass(config) else {}
    schema = _object(closed)
    for name, hint in get_type_hints(config).items():
        if name.startswith("_") or name in _COMMON:
            continue
        metadata = dict(fields[name].metadata) if name in fields else {}
        part = _part(hint, metadata, _default(config, fields.get(name), name))
        _folder(schema, metadata.get("place", ""), closed)["properties"][name] = part
    schema["properties"].update({name: {} for name in _COMMON})
    _folder(schema, "extras", closed)  # MOSAIC adds the keys that it reads itself, for every worker
    if title:
        schema["title"] = title
    if lab:
        schema[LAB_KEY] = {name: dict(keys) for name, keys in lab.items()}
    return schema


def _object(closed: bool) -> Dict[str, Any]:
    schema: Dict[str, Any] = {"type": "object", "properties": {}}
    return dict(schema, additionalProperties=False) if closed else schema


def _folder(schema: Dict[str, Any], place: str, closed: bool) -> Dict[str, Any]:
    """The object of the schema at `place`, made when it is not there."""
    if place not in PLACES:
        raise ValueError(f"place must be one of {PLACES}, not {place!r}")
    for name in place.split(".") if place else ():
        schema = schema["properties"].setdefault(name, _object(closed))
    return schema


def _part(hint: Any, metadata: Mapping[str, Any], default: Any) -> Dict[str, Any]:
    part: Dict[str, Any] = _typed(hint)
    if metadata.get("choices"):
        part["enum"] = list(metadata["choices"]) + ([None] if _is_optional(hint) else [])
    part.update({name: metadata[name] for name in _RANGES if name in metadata})
    if metadata.get("same_as"):
        part["x-mosaic-same-as"] = metadata["same_as"]
    if metadata.get("help"):
        part["description"] = metadata["help"]
    if default is not dataclasses.MISSING:
        part["default"] = default
    return part


def _typed(hint: Any) -> Dict[str, Any]:
    names = [_TYPES.get(get_origin(kind) or kind) for kind in _alternatives(hint)]
    known = [name for name in names if name]
    if len(known) < len(names):
        return {}  # Any, or a class of the worker's own: whatever it is, it is not ours to judge
    if _is_optional(hint):
        known.append("null")
    return {"type": known[0] if len(known) == 1 else known}


def _alternatives(hint: Any) -> "list[Any]":
    kinds = get_args(hint) if get_origin(hint) in _UNIONS else (hint,)
    return [kind for kind in kinds if kind is not type(None)]


def _is_optional(hint: Any) -> bool:
    return get_origin(hint) in _UNIONS and type(None) in get_args(hint)


def _default(config: type, field: "Optional[dataclasses.Field[Any]]", name: str) -> Any:
    if field is None:
        return getattr(config, name, dataclasses.MISSING)
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return field.default
