"""A worker's parameters as JSON Schema, made from its config class.

    class AcmeConfig(Settings):
        algo: str = setting("ppo", "Algorithm to train.", choices=("ppo", "dqn"))
        learning_rate: float = setting(3e-4, "Step size.", minimum=0, place="extras.algo_params")

    def get_worker_schema():              # beside get_worker_metadata
        return schema_of(AcmeConfig, title="Acme", lab={"short": {"total_timesteps": 100}})

Every key is in the schema where it is in the config file: on the top level, in `extras`, in `extras.algo_params`.
`mosaic run` finds the place of a key by its name, checks the values before anything starts, and prints the help.

A dataclass works too: the metadata of a field holds `help`, `choices`, `place`, `same_as` and JSON Schema's bounds.
"""

from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, get_type_hints

from mosaic_sdk import keywords
from mosaic_sdk.settings import COMMON, PLACES, Setting, _Base
from mosaic_sdk.values import NULL, kinds_of

LAB_KEY = keywords.LAB
_RANGES = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength", "pattern")
Described = Tuple[str, Setting, List[str]]  # name, what the class says of it, the JSON types it takes


def schema_of(
    config: type,
    *,
    title: str = "",
    lab: Optional[Mapping[str, Mapping[str, Any]]] = None,
    examples: Sequence[str] = (),
    resume: Optional[Mapping[str, Any]] = None,
    evaluate: Optional[Mapping[str, Any]] = None,
    interactive: Optional[Mapping[str, Any]] = None,
    parts: Sequence[str] = (),
    export: str = "",
    inherits_with: Sequence[str] = (),
    variants: Optional[Mapping[str, Mapping[str, str]]] = None,
    scripts: Optional[Mapping[str, Mapping[str, Any]]] = None,
    closed: bool = True,
) -> Dict[str, Any]:
    """The schema of a config class. `closed`: an unknown key is an error, in extras too.

    The other arguments are the schema's own keywords: see mosaic_sdk.keywords.
    """
    schema = _object(closed)
    for name, setting, kinds in _described(config):
        properties = _folder(schema, setting.place, closed)["properties"]
        properties[name] = _part(setting, kinds)
        for place, alias, part in _aliases(name, setting, properties[name]):
            _folder(schema, place, closed)["properties"][alias] = part
    schema["properties"].update({name: {} for name in COMMON})
    _folder(schema, "extras", closed)  # MOSAIC adds the keys that it reads itself, for every worker
    given: Dict[str, Any] = {"title": title, keywords.LAB: lab and {name: dict(keys) for name, keys in lab.items()}}
    given.update({keywords.EXAMPLES: list(examples), keywords.INHERITS_WITH: list(inherits_with)})
    given.update({keywords.RESUME: resume, keywords.EVAL: evaluate, keywords.INTERACTIVE: interactive})
    given.update({keywords.PARTS: list(parts)})
    given.update({keywords.VARIANTS: variants, keywords.SCRIPTS: scripts, keywords.EXPORT: export})
    return {**schema, **{name: value for name, value in given.items() if value}}


def _object(closed: bool) -> Dict[str, Any]:
    schema: Dict[str, Any] = {"type": "object", "properties": {}}
    return dict(schema, additionalProperties=False) if closed else schema


def _folder(schema: Dict[str, Any], place: str, closed: bool) -> Dict[str, Any]:
    """The object of the schema at `place`, created if necessary."""
    if place not in PLACES:
        raise ValueError(f"place must be one of {PLACES}, not {place!r}")
    for name in place.split(".") if place else ():
        schema = schema["properties"].setdefault(name, _object(closed))
    return schema


def _described(config: type) -> Iterator[Described]:
    if issubclass(config, _Base):
        kinds = config.kinds()
        found = [(name, setting, kinds[name]) for name, setting in config.described().items()]
    else:
        found = _described_by_hints(config)
    yield from (one for one in found if one[0] not in COMMON)


def _described_by_hints(config: type) -> List[Described]:
    """A dataclass, or any class with annotated attributes."""
    import dataclasses

    fields = {field.name: field for field in dataclasses.fields(config)} if dataclasses.is_dataclass(config) else {}
    found = []
    for name, hint in get_type_hints(config).items():
        if not name.startswith("_"):
            default = _default(config, fields.get(name), name)
            metadata: Mapping[str, Any] = fields[name].metadata if name in fields else {}
            found.append((name, _from_metadata(default, metadata), kinds_of(hint)))
    return found


def _default(config: type, field: Any, name: str) -> Any:
    import dataclasses

    if field is None:
        return getattr(config, name, dataclasses.MISSING)
    return field.default if field.default_factory is dataclasses.MISSING else field.default_factory()


def _from_metadata(default: Any, metadata: Mapping[str, Any]) -> Setting:
    import dataclasses

    rules = {name: metadata[name] for name in _RANGES if name in metadata}
    if metadata.get("choices"):
        rules["enum"] = list(metadata["choices"])
    setting = Setting(default, metadata.get("help", ""), metadata.get("place", ""), (), rules)
    setting.has_schema_default = default is not dataclasses.MISSING
    if metadata.get("same_as"):
        setting.schema = {keywords.SAME_AS: metadata["same_as"]}
    return setting


def _part(setting: Setting, kinds: Sequence[str]) -> Dict[str, Any]:
    part: Dict[str, Any] = {"type": kinds[0] if len(kinds) == 1 else list(kinds)} if kinds else {}
    part.update(setting.rules)
    if "enum" in part and NULL in kinds:
        part["enum"] = [*part["enum"], None]
    if setting.is_checkpoint:
        part[keywords.CHECKPOINT] = True
    if setting.help:
        part["description"] = setting.help
    if setting.has_schema_default:
        part["default"] = setting.schema_default
    return {**part, **setting.schema}


def _aliases(name: str, setting: Setting, part: Mapping[str, Any]) -> Iterator[Tuple[str, str, Dict[str, Any]]]:
    """Place, name and property of each other name.

    `x-mosaic-same-as` is for names in one place; the first one in another place is a separate property there.
    """
    first = {setting.place: name}
    for dotted in setting.aliases:
        place, _, alias = dotted.rpartition(".") if "." in dotted else (setting.place, "", dotted)
        copy = {**part, "description": f"The same as {first.get(place, name)}."}
        if place in first:
            copy[keywords.SAME_AS] = first[place]
        if place != setting.place:
            copy.pop("default", None)  # stated once, where the setting is
        first.setdefault(place, alias)
        yield place, alias, copy
