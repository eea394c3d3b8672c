"""The source of a CleanRL script: where it is, which flags it accepts, where its main loop is. The script is not run.

All scripts have the same structure, and the worker relies on it:

    def parse_args(): parser = argparse.ArgumentParser(); parser.add_argument(…) …; args = parser.parse_args() …
    if __name__ == "__main__":
        args = parse_args()                              newer ones: class Args, args = tyro.cli(Args)
        …                                                set-up
        for update in range(1, num_updates + 1):         the main loop (or: for global_step in range(…))
"""

import argparse
import ast
import dataclasses
import itertools
import types
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeGuard

from mosaic_sdk.config import ConfigError

from cleanrl_worker.registry import Algorithm, script_path

_EXPERIMENT = "cleanrl_worker.algorithms.experiment"  # of our own scripts: it imports only the standard library
_PARSERS_IMPORTS = ("argparse", "os", "distutils.util", "dataclasses", "typing", _EXPERIMENT)
_LOOP_VARIABLES = ("update", "global_step", "phase", "iteration")
_KINDS = {int: "integer", float: "number", str: "string"}
_HINTS = {"bool": "boolean", "int": "integer", "float": "number"}


@dataclass(frozen=True)
class Flag:
    """One argument of a script, as its own parser defines it."""

    name: str  # learning_rate
    kind: str  # integer, number, boolean, string
    default: Any
    help: str
    takes_many: bool = False
    is_switch: bool = False  # --capture-video and --no-capture-video, not --capture-video True
    choices: tuple[Any, ...] = ()  # empty: any value of its kind


@dataclass(frozen=True)
class Script:
    path: Path

    @cached_property
    def source(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.source, str(self.path))

    @cached_property
    def flags(self) -> dict[str, Flag]:
        parser = self._parser()
        found = [_flag(action) for action in parser._actions if action.dest != "help"] if parser else self._fields()
        return {flag.name: flag for flag in found}

    @cached_property
    def main_loop(self) -> ast.For | None:
        """The last loop of the main part that counts with range(); None if the script has another structure."""
        loops = [node for node in self._main_part() if isinstance(node, ast.For) and _is_main_loop(node)]
        return loops[-1] if loops else None

    @property
    def counts_steps(self) -> bool:
        """Whether an iteration of the main loop is one step; otherwise it is a whole update."""
        return self.main_loop is not None and getattr(self.main_loop.target, "id", "") == "global_step"

    @cached_property
    def changed_in_loop(self) -> frozenset[str]:
        """Names that the main loop assigns: they must be saved to resume from one of its iterations."""
        nodes = ast.walk(self.main_loop) if self.main_loop else iter(())
        return frozenset(node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))

    def _parser(self) -> argparse.ArgumentParser | None:
        """The parser that parse_args() builds. Only that function is called, up to where it would read sys.argv."""
        namespace: dict[str, Any] = {"__file__": str(self.path), "__name__": "cleanrl_worker.flags"}
        needed = _called_from("parse_args", {node.name: node for node in self.tree.body if _is_function(node)})
        body = [node for node in self.tree.body if _is_parsers_import(node) or node in needed]
        exec(compile(ast.Module(body, []), str(self.path), "exec"), namespace)
        if "parse_args" not in namespace:
            return None
        namespace["argparse"] = types.SimpleNamespace(**{**vars(argparse), "ArgumentParser": _Recorder})
        try:
            namespace["parse_args"]()
        except _Recorded as recorded:
            return recorded.parser
        return None

    def _fields(self) -> list[Flag]:
        """The fields of the class Args that scripts after 1.2.0 have; the string below a field is its help."""
        node = next((part for part in self.tree.body if isinstance(part, ast.ClassDef) and part.name == "Args"), None)
        if node is None:
            return []
        namespace: dict[str, Any] = {"__file__": str(self.path), "__name__": "cleanrl_worker.flags"}
        body = [part for part in self.tree.body if _is_parsers_import(part)]
        exec(compile(ast.Module([*body, node], []), str(self.path), "exec"), namespace)
        helps = _helps(node)
        return [_field(part, helps.get(part.name, "")) for part in dataclasses.fields(namespace["Args"])]

    def _main_part(self) -> Iterator[ast.stmt]:
        for node in self.tree.body:
            if isinstance(node, ast.If) and "__name__" in ast.dump(node.test):
                yield from node.body


def find_script(algorithm: Algorithm, upstream_path: str = "") -> Script:
    """The installed script, or the one in the user's checkout."""
    if upstream_path and not algorithm.is_ours:
        return Script(_in_checkout(Path(upstream_path), algorithm))
    path = script_path(algorithm.module)
    if path:
        return Script(path)
    raise ConfigError(f"algo: {algorithm.name} is {algorithm.module}, which is not installed in this environment.")


def _in_checkout(folder: Path, algorithm: Algorithm) -> Path:
    relative = Path(*algorithm.module.split(".")).with_suffix(".py")
    for path in (folder / relative, folder / relative.name):
        if path.is_file():
            return path
    raise ConfigError(f"extras.upstream_path: {folder} has no {relative}.")


class _Recorded(Exception):
    def __init__(self, parser: argparse.ArgumentParser) -> None:
        self.parser = parser


class _Recorder(argparse.ArgumentParser):
    def parse_args(self, *args: Any, **kwargs: Any) -> Any:
        raise _Recorded(self)


def _flag(action: argparse.Action) -> Flag:
    many = action.nargs in ("+", "*") or isinstance(action.nargs, int)
    text, choices = (action.help or "").strip(), tuple(action.choices or ())
    return Flag(action.dest, _kind(action), action.default, text, many, choices=choices)


def _field(field: "dataclasses.Field[Any]", text: str) -> Flag:
    default = None if field.default is dataclasses.MISSING else field.default
    kind = next((name for known, name in _HINTS.items() if known in str(field.type)), "string")
    many = "list" in str(field.type).lower() or "tuple" in str(field.type).lower()
    return Flag(field.name, kind, default, text, many, is_switch=kind == "boolean")


def _helps(node: ast.ClassDef) -> dict[str, str]:
    found = {}
    for field, below in itertools.pairwise(node.body):
        if not isinstance(field, ast.AnnAssign) or not isinstance(field.target, ast.Name):
            continue
        if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
            found[field.target.id] = " ".join(str(below.value.value).split())
    return found


def _kind(action: argparse.Action) -> str:
    if isinstance(action.default, bool) or isinstance(action.const, bool):
        return "boolean"
    return next((kind for known, kind in _KINDS.items() if action.type is known), "string")


def _is_parsers_import(node: ast.stmt) -> bool:
    names: list[str] = []
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom):
        names = [node.module or ""]
    return bool(names) and all(name in _PARSERS_IMPORTS for name in names)


def _is_function(node: ast.stmt) -> TypeGuard[ast.FunctionDef]:
    return isinstance(node, ast.FunctionDef)


def _called_from(name: str, functions: dict[str, ast.FunctionDef]) -> list[ast.FunctionDef]:
    """The function and all functions that it names, directly or indirectly."""
    found: list[ast.FunctionDef] = []
    names = [name]
    while names:
        node = functions.get(names.pop())
        if node and node not in found:
            found.append(node)
            names += [part.id for part in ast.walk(node) if isinstance(part, ast.Name)]
    return found


def _is_main_loop(node: ast.For) -> bool:
    return (
        isinstance(node.target, ast.Name)
        and node.target.id in _LOOP_VARIABLES
        and isinstance(node.iter, ast.Call)
        and getattr(node.iter.func, "id", "") == "range"
    )
