"""A worker's settings, declared once: defaults, checks, the config file and the schema all come from one class.

    class AcmeConfig(Settings):
        seed: Optional[int] = setting(None, "The same seed gives the same rewards.", minimum=0)
        total_timesteps: int = setting(1000, "Environment steps in total.", minimum=1)
        learning_rate: float = setting(3e-4, "Step size.", exclusive_minimum=0, place="extras.algo_params")

    config = AcmeConfig.from_dict(load_config(path))

`mosaic_sdk.schema.schema_of(AcmeConfig)` makes the schema. A Settings class looks like a dataclass, to type checkers
too, but does not import `dataclasses`, which would cost every start of a worker about 10 ms.
"""

from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    ClassVar,
    Dict,
    FrozenSet,
    Iterable,
    Iterator,
    List,
    Mapping,
    Optional,
    Sequence,
    Tuple,
    Type,
    TypeVar,
    get_type_hints,
)

from mosaic_sdk.config import ConfigError, worker_part
from mosaic_sdk.values import NULL, checked, kinds_of, shown

TOP, EXTRAS, ALGO_PARAMS = "", "extras", "extras.algo_params"
PLACES = (TOP, EXTRAS, ALGO_PARAMS)
COMMON = ("version", "run_id", "worker_id")  # in every worker's file; MOSAIC fills them in

# What MOSAIC reads from every config's extras, with the values that a worker may ignore (None: all of them).
COMMON_EXTRAS: Dict[str, Optional[Tuple[Any, ...]]] = {
    "mode": ("train",),
    "test_mode": (False,),
    "fastlane_video_mode": None,
    "fastlane_slot": None,
    "fastlane_grid_limit": None,
    "store_observations": None,
}
_OWN_NAMES = ("given", "rest", "version", "extras")  # attributes of an instance, and keys of every config file
_MOST_NAMES = 40  # in a message
_SAME = object()
S = TypeVar("S", bound="_Base")

if TYPE_CHECKING:
    from typing import dataclass_transform  # since Python 3.11; type checkers run there
else:

    def dataclass_transform(**_: Any) -> Callable[[type], type]:
        return lambda decorated: decorated


class Setting:
    """What a class says about one of its settings."""

    def __init__(self, default: Any, help: str, place: str, aliases: Sequence[str], rules: Mapping[str, Any]) -> None:
        if place not in PLACES:
            raise ValueError(f"place must be one of {PLACES}, not {place!r}")
        self.default = default
        self.help = help
        self.place = place
        self.aliases = tuple(aliases)
        self.rules = dict(rules)  # JSON Schema keywords that are checked here and stated in the schema
        self.is_checkpoint = False
        self.schema_default = default
        self.has_schema_default = True
        self.schema: Mapping[str, Any] = {}

    def new_default(self) -> Any:
        """Instances do not share a list or an object."""
        return self.default.copy() if isinstance(self.default, (dict, list)) else self.default

    def alias_names(self) -> List[str]:
        return [alias.rpartition(".")[2] for alias in self.aliases]


def setting(
    default: Any,
    help: str = "",
    *,
    choices: Optional[Sequence[Any]] = None,
    minimum: Optional[float] = None,
    maximum: Optional[float] = None,
    exclusive_minimum: Optional[float] = None,
    exclusive_maximum: Optional[float] = None,
    pattern: Optional[str] = None,
    examples: Optional[Sequence[Any]] = None,
    place: str = TOP,
    aliases: Sequence[str] = (),
    checkpoint: bool = False,
    schema: Optional[Mapping[str, Any]] = None,
    schema_default: Any = _SAME,
    record_default: bool = True,
) -> Any:
    """One setting of a Settings class.

    `place`: where the config file has it: "" (top level), "extras" or "extras.algo_params".
    `aliases`: other names; "extras.policy_path" is one in another place.
    `checkpoint`: the value is a checkpoint; users may name a run instead of a path.
    `schema`: more JSON Schema keywords of this property; the worker checks these itself.
    `schema_default`: the default that the schema states, if it is not `default`.
    `record_default`: False if the schema states none, because the worker finds it out (from a preset, say).
    """
    given = {"enum": choices, "minimum": minimum, "maximum": maximum, "pattern": pattern, "examples": examples}
    given.update(exclusiveMinimum=exclusive_minimum, exclusiveMaximum=exclusive_maximum)
    rules = {name: list(rule) if isinstance(rule, tuple) else rule for name, rule in given.items() if rule is not None}
    made = Setting(default, help, place, aliases, rules)
    made.is_checkpoint = checkpoint
    made.schema = schema or {}
    made.has_schema_default = record_default
    if schema_default is not _SAME:
        made.schema_default = schema_default
    return made


def _field_names(cls: type) -> Iterator[str]:
    for name, hint in getattr(cls, "__annotations__", {}).items():
        is_class_variable = "ClassVar" in (hint if isinstance(hint, str) else repr(hint))
        if name in vars(cls) and not name.startswith("_") and not is_class_variable:
            yield name


def _refuse_own_names(cls: type) -> None:
    for name in _field_names(cls):
        if hasattr(_Base, name) or name in _OWN_NAMES:
            raise TypeError(f"{cls.__name__}.{name}: a setting cannot have this name; MOSAIC uses it. Choose another.")


def _declared(cls: type, name: str) -> Setting:
    value = vars(cls)[name]
    return value if isinstance(value, Setting) else Setting(value, "", TOP, (), {})


@dataclass_transform(kw_only_default=True, frozen_default=True)
class _Base:
    """All of Settings except its fields: type checkers ignore the fields of a class that is marked this way."""

    open_places: ClassVar[Tuple[str, ...]] = ()
    _settings: ClassVar[Dict[str, Setting]] = {}
    _kinds: ClassVar[Optional[Dict[str, List[str]]]] = None

    if TYPE_CHECKING:
        # Properties, so that they do not count as fields.
        @property
        def given(self) -> FrozenSet[str]: ...
        @property
        def rest(self) -> Dict[str, Dict[str, Any]]: ...

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        _refuse_own_names(cls)
        own = {name: _declared(cls, name) for name in _field_names(cls)}
        cls._settings = {**cls._settings, **own}
        cls._kinds = None
        for name, one in own.items():
            setattr(cls, name, one.default)

    def __init__(self, **values: Any) -> None:
        self._refuse_unknown(values)
        self._fill(values, {}, values)

    @classmethod
    def from_dict(cls: Type[S], data: Mapping[str, Any]) -> S:
        """Read the content of a worker's config file, flat or as part of a complete trainer config.

        A setting is found by its name in any of the three places. ConfigError for an unknown key, for a value that the
        setting does not take, and for two different values of one setting. null means "not given", except
        where the setting takes null.
        """
        values, rest = cls._collect(worker_part(data))
        config = cls.__new__(cls)
        prepared = cls.prepare(dict(values))
        config._fill(prepared, rest, [name for name in values if name in prepared])
        return config

    @classmethod
    def prepare(cls, values: Dict[str, Any]) -> Dict[str, Any]:
        """Override it to derive settings from others: the values of a file by name, before checks and defaults.

        What it removes counts as not given.
        """
        return values

    def check(self) -> None:
        """Override it to raise ConfigError for invalid combinations of settings."""

    @classmethod
    def names(cls) -> List[str]:
        return list(cls._settings)

    @classmethod
    def described(cls) -> Dict[str, Setting]:
        """Each setting as it was declared."""
        return cls._settings

    @classmethod
    def kinds(cls) -> Dict[str, List[str]]:
        """The JSON types that the type hint of each setting allows."""
        if cls._kinds is None:
            hints = get_type_hints(cls)
            cls._kinds = {name: kinds_of(hints[name]) for name in cls._settings}
        return cls._kinds

    def flat(self) -> Dict[str, Any]:
        """Every setting by its name."""
        return {name: getattr(self, name) for name in self._settings}

    def to_dict(self) -> Dict[str, Any]:
        """The content of a worker's config file: from_dict() of this is an equal config."""
        document: Dict[str, Any] = {}
        for name, one in self._settings.items():
            if name not in COMMON or getattr(self, name):
                _folder(document, one.place)[name] = getattr(self, name)
        for place, keys in self.rest.items():
            _folder(document, place).update(keys)
        return document

    def replace(self: S, **changes: Any) -> S:
        """A copy with other values, checked again."""
        self._refuse_unknown(changes)
        config = type(self).__new__(type(self))
        config._fill({**self.flat(), **changes}, self.rest, {*self.given, *changes})
        return config

    def _refuse_unknown(self, names: Iterable[str]) -> None:
        for name in names:
            if name not in self._settings:
                raise ConfigError(f"{name}: the worker has no such setting. {self._suggest(name)}")

    def _fill(self, values: Mapping[str, Any], rest: Dict[str, Dict[str, Any]], given: Any) -> None:
        kinds, found = self.kinds(), {}
        for name, one in self._settings.items():
            value = values.get(name)
            if value is None and not (name in values and NULL in kinds[name]):
                found[name] = one.new_default()
            else:
                found[name] = checked(value, kinds[name], _rules(one, kinds[name]), _path(one.place, name))
        if not found["run_id"]:
            raise ConfigError('run_id is missing. Add "run_id" to the config, or set MOSAIC_RUN_ID.')
        self.__dict__.update(found, given=frozenset(given), rest=rest)
        self.check()

    @classmethod
    def _collect(cls, keys: Mapping[str, Any]) -> Tuple[Dict[str, Any], Dict[str, Dict[str, Any]]]:
        """The values by the settings' names, and what else is in the open places."""
        known = {key: name for name, one in cls._settings.items() for key in (name, *one.alias_names())}
        values: Dict[str, Any] = {}
        rest: Dict[str, Dict[str, Any]] = {}
        paths: Dict[str, str] = {}
        for place, key, value in _entries(keys):
            name, path = known.get(key), _path(place, key)
            if name is None:
                if place in cls.open_places:
                    rest.setdefault(place, {})[key] = value
                elif place == EXTRAS and key in COMMON_EXTRAS:
                    _leave_to_mosaic(key, value)
                else:
                    raise ConfigError(f"{path}: the worker has no such setting. {cls._suggest(key)}")
            elif value is not None or NULL in cls.kinds()[name]:
                if name in values and value == "":
                    continue  # an empty second name says nothing
                if values.get(name, "") not in ("", value):
                    raise ConfigError(
                        f"{path}: is the same setting as {paths[name]} but has another value. Keep one of them."
                    )
                values[name], paths[name] = value, path
        return values, rest

    @classmethod
    def _suggest(cls, key: str) -> str:
        import difflib

        known = sorted(name for name in cls._settings if name not in COMMON)
        near = difflib.get_close_matches(key, known, n=1)
        if near:
            return f"Did you mean '{_path(cls._settings[near[0]].place, near[0])}'?"
        if len(known) <= _MOST_NAMES:
            return f"Its settings: {', '.join(known)}."
        return f"It has {len(known)} settings; list them with: mosaic run WORKER --help"

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"settings are read-only; use replace({name}=…)")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and isinstance(other, _Base) and self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]
    __replace__ = replace

    def __repr__(self) -> str:
        changed = [name for name, one in self._settings.items() if getattr(self, name) != one.default]
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in changed)})"


class Settings(_Base):
    """The base class of a worker's config. Instances do not change; `replace` makes a changed copy.

    `open_places`, a tuple set in the class: places where unknown keys are kept in `rest` instead of refused.
    `given`: the names of the settings that were given explicitly.
    """

    run_id: str = setting("")
    worker_id: Optional[str] = setting(None)


def _rules(one: Setting, kinds: Sequence[str]) -> Mapping[str, Any]:
    """null is a valid value of every nullable setting, also of one with choices."""
    return {**one.rules, "enum": [*one.rules["enum"], None]} if "enum" in one.rules and NULL in kinds else one.rules


def _entries(keys: Mapping[str, Any]) -> Iterator[Tuple[str, str, Any]]:
    """Each key with its place and value."""
    extras = _object(keys, TOP, "extras")
    params = _object(extras, EXTRAS, "algo_params")
    for place, folder in ((TOP, keys), (EXTRAS, extras), (ALGO_PARAMS, params)):
        inner = {TOP: ("extras", "version"), EXTRAS: ("algo_params",)}.get(place, ())
        yield from ((place, key, value) for key, value in folder.items() if key not in inner)


def _object(keys: Mapping[str, Any], place: str, name: str) -> Mapping[str, Any]:
    value = keys.get(name)
    if value is not None and not isinstance(value, Mapping):
        raise ConfigError(f"{_path(place, name)}: must be an object, not {shown(value)}.")
    return value or {}


def _leave_to_mosaic(key: str, value: Any) -> None:
    """A key that MOSAIC reads and this worker does not. ConfigError if the worker may not ignore this value."""
    harmless = COMMON_EXTRAS[key]
    if value is not None and harmless is not None and value not in harmless:
        raise ConfigError(f"extras.{key}: this worker does not support {shown(value)}.")


def _folder(document: Dict[str, Any], place: str) -> Dict[str, Any]:
    for name in place.split(".") if place else ():
        document = document.setdefault(name, {})
    return document


def _path(place: str, name: str) -> str:
    return f"{place}.{name}" if place else name
