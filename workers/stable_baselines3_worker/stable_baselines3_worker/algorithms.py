"""Which algorithms there are, and their hyperparameters: read from the constructors, without importing the library.

Importing torch takes seconds, and the schema and every dry run need only the names, types and defaults.
"""

import ast
import importlib.util
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from mosaic_sdk.config import ConfigError
from mosaic_sdk.library.settings import nearest

SB3, CONTRIB, SBX = "stable_baselines3", "sb3_contrib", "sbx"

# Arguments that the worker fills in itself, and classes, which a config file cannot hold.
_OWN = {"self", "policy", "env", "seed", "device", "verbose", "tensorboard_log", "_init_setup_model", "param_resets"}
_KINDS = {"int": "integer", "float": "number", "bool": "boolean", "str": "string", "None": "null", "dict": "object"}
_KINDS.update(tuple="array", ActionNoise="number", Schedule="string", Callable="string")  # see model.py: `_as_argument`


@dataclass(frozen=True)
class Algorithm:
    name: str
    package: str
    module: str  # below the package
    class_name: str

    @property
    def is_recurrent(self) -> bool:
        return self.class_name == "RecurrentPPO"

    @property
    def is_maskable(self) -> bool:
        return self.class_name == "MaskablePPO"

    @property
    def is_jax(self) -> bool:
        return self.package == SBX

    def load(self) -> Any:
        """Its class."""
        return getattr(importlib.import_module(f"{self.package}.{self.module}"), self.class_name)


def _simple(package: str, prefix: str, *names: str) -> list[Algorithm]:
    return [Algorithm(prefix + name.lower(), package, f"{name.lower()}.{name.lower()}", name) for name in names]


ALGORITHMS: dict[str, Algorithm] = {
    one.name: one
    for one in (
        *_simple(SB3, "", "A2C", "DDPG", "DQN", "PPO", "SAC", "TD3"),
        *_simple(CONTRIB, "", "CrossQ", "QRDQN", "TQC", "TRPO"),
        Algorithm("maskable_ppo", CONTRIB, "ppo_mask.ppo_mask", "MaskablePPO"),
        Algorithm("recurrent_ppo", CONTRIB, "ppo_recurrent.ppo_recurrent", "RecurrentPPO"),
        *_simple(SBX, "sbx_", "CrossQ", "DDPG", "DQN", "PPO", "SAC", "TD3", "TQC"),
    )
}


def find(name: str) -> Algorithm:
    """The algorithm; ConfigError with the nearest name, or with what to install."""
    found = ALGORITHMS.get(name)
    if found is None:
        raise ConfigError(f"algo: there is no algorithm {name!r}. {nearest(name, ALGORITHMS)}")
    if importlib.util.find_spec(found.package) is None:
        raise ConfigError(
            f"algo: {name} needs the variant {SBX}. Install it with: mosaic worker install {SB3} --variant {SBX}, "
            f"and run it with: mosaic run {SB3}@{SBX}"
        )
    return found


@cache
def hyperparameters(algo: str) -> dict[str, dict[str, Any]]:
    """A JSON Schema property for each argument of the constructor; empty if the package is not installed."""
    found = ALGORITHMS[algo]
    source = _source(found)
    if not source:
        return {}
    classes = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ClassDef))
    defined = next(node for node in classes if node.name == found.class_name)
    help_texts = dict(_help_texts(ast.get_docstring(defined) or ""))
    init = next(node for node in defined.body if isinstance(node, ast.FunctionDef) and node.name == "__init__")
    parts = {name: _part(annotation, default) for name, annotation, default in _arguments(init)}
    return {
        name: {**part, "description": help_texts.get(name, "")}
        for name, part in parts.items()
        if part and name not in _OWN
    }


def _source(algorithm: Algorithm) -> str:
    spec = importlib.util.find_spec(algorithm.package)
    if spec is None or not spec.submodule_search_locations:
        return ""
    path = Path(spec.submodule_search_locations[0], *algorithm.module.split(".")).with_suffix(".py")
    return path.read_text(encoding="utf-8")


def _arguments(init: ast.FunctionDef) -> Iterator[tuple[str, ast.expr | None, ast.expr | None]]:
    arguments = init.args.args
    defaults = [None] * (len(arguments) - len(init.args.defaults)) + list(init.args.defaults)
    for argument, default in zip(arguments, defaults, strict=True):
        yield argument.arg, argument.annotation, default


def _part(annotation: ast.expr | None, default: ast.expr | None) -> dict[str, Any]:
    """Empty for an argument that JSON cannot express."""
    kinds = list(dict.fromkeys(kind for kind in map(_kind, _alternatives(annotation)) if kind))
    if not kinds or kinds == ["null"]:
        return {}
    part: dict[str, Any] = {"type": kinds[0] if len(kinds) == 1 else kinds}
    try:
        return {**part, "default": ast.literal_eval(default)} if default is not None else part
    except ValueError:
        return part


def _alternatives(annotation: ast.expr | None) -> Iterator[ast.expr]:
    """The members of a union, in any of its spellings."""
    if isinstance(annotation, ast.BinOp):
        yield from _alternatives(annotation.left)
        yield from _alternatives(annotation.right)
    elif isinstance(annotation, ast.Subscript) and ast.unparse(annotation.value) in ("Union", "Optional"):
        inner = annotation.slice
        for one in inner.elts if isinstance(inner, ast.Tuple) else [inner, ast.Constant(None)]:
            yield from _alternatives(one)
    elif annotation is not None:
        yield annotation


def _kind(annotation: ast.expr) -> str:
    plain = annotation.value if isinstance(annotation, ast.Subscript) else annotation
    return _KINDS.get(ast.unparse(plain), "")


def _help_texts(docstring: str) -> Iterator[tuple[str, str]]:
    """The first sentence of each `:param name: …`."""
    for name, text in re.findall(r":param (\w+):(.*?)(?=\n\s*:|\Z)", docstring, re.DOTALL):
        sentence = re.split(r"(?<=[.)])\s(?=[A-Z(])|\n\s*\n", " ".join(text.split()))[0]
        yield name, sentence[:1].upper() + sentence[1:].rstrip(".") + "." if sentence else ""
