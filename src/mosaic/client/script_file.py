"""Reads an evaluation script from a file: YAML, JSON, or a Python program that prints either.

A program runs in a process of its own, never in ours.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from mosaic.model.errors import BadConfig, MosaicError

if TYPE_CHECKING:
    from mosaic_sdk.operators.script import EvalScript

SUFFIXES = (".yaml", ".yml", ".json", ".py")
PROGRAM_LIMIT_S = 60.0
LONGEST = 4 * 1024 * 1024  # bytes of a script
SHOWN_LINES = 20  # of a failed program's stderr


def is_script(name: str) -> bool:
    """Whether this is the name of a script file rather than of a run."""
    return name.lower().endswith(SUFFIXES)


def parse_script(document: Mapping[str, Any], mode: str) -> "EvalScript":
    """The script in a document; BadConfig if it is invalid. `mode`: script or manual."""
    from mosaic_sdk.config import ConfigError
    from mosaic_sdk.operators.script import EvalScript

    try:
        return EvalScript.parse(dict(document), mode)
    except ConfigError as error:
        raise BadConfig("", str(error)) from None


def read_script(path: Path, limit_s: float = PROGRAM_LIMIT_S) -> dict[str, Any]:
    """The document in a file. `limit_s`: how long a Python program may run."""
    if not is_script(path.name):
        raise MosaicError(f"{path} is not an evaluation script: its name must end with {', '.join(SUFFIXES)}.")
    try:
        text = path.read_bytes()
    except OSError as error:
        raise MosaicError(f"Cannot read {path}: {error.strerror}.") from None
    if path.suffix.lower() == ".py":
        printed = _decoded(_output_of(path, limit_s), path)
        return _mapping(_json_or_yaml(printed, f"The output of {path}"), f"The output of {path}")
    read = _json if path.suffix.lower() == ".json" else _yaml
    return _mapping(read(_decoded(text, path), str(path)), str(path))


def _decoded(text: bytes, path: Path) -> str:
    if len(text) > LONGEST:
        raise MosaicError(f"{path} is too large for an evaluation script: more than {LONGEST // 2**20} MiB.")
    try:
        return text.decode()
    except UnicodeDecodeError as error:
        raise MosaicError(f"{path} is not a UTF-8 text file: byte {error.start}.") from None


def _mapping(document: Any, name: str) -> dict[str, Any]:
    if not isinstance(document, dict):
        found = "empty" if document is None else f"a {type(document).__name__}"
        raise MosaicError(f"{name} must be a mapping with keys such as env and operators; it is {found}.")
    return document


def _json_or_yaml(text: str, name: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return _yaml(text, name)


def _json(text: str, name: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise MosaicError(f"{name}, line {error.lineno}, column {error.colno}: {error.msg}.") from None
    except RecursionError:
        raise MosaicError(f"{name}: nested too deeply.") from None


def _yaml(text: str, name: str) -> Any:
    """YAML, of which JSON is a part. PyYAML alone would accept a key twice, and take 1e-3 for text."""
    import yaml

    from mosaic.client.yaml_loader import ScriptLoader

    try:
        return yaml.load(text, ScriptLoader)  # a SafeLoader: it builds plain values only
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise MosaicError(f"{name}{place}: {error.problem or error.context}.") from None
    except yaml.YAMLError as error:
        raise MosaicError(f"{name}: {error}") from None
    except RecursionError:
        raise MosaicError(f"{name}: nested too deeply.") from None


def _output_of(path: Path, limit_s: float) -> bytes:
    """What a program prints on stdout. Its whole process group ends with it."""
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            [sys.executable, os.path.abspath(path)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=errors,
            start_new_session=True,
        )
        try:
            code = process.wait(limit_s)
        except subprocess.TimeoutExpired:
            raise MosaicError(f"{path} did not end within {limit_s:g} s.{_last_lines(errors)}") from None
        finally:
            _kill_group(process)
        if code:
            ending = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"exited with {code}"
            raise MosaicError(f"{path} {ending}.{_last_lines(errors)}")
        output.seek(0)
        return output.read(LONGEST + 1)


def _kill_group(process: "subprocess.Popen[bytes]") -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass  # it has ended with all its children
    process.wait()


def _last_lines(errors: IO[bytes]) -> str:
    size = errors.seek(0, os.SEEK_END)
    errors.seek(max(0, size - 65536))
    lines = errors.read().decode(errors="replace").splitlines()[-SHOWN_LINES:]
    return " Its output on stderr:\n" + "\n".join(f"  {line}" for line in lines) if lines else ""
