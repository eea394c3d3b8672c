"""A worker's description of itself, requested in its own environment: `mosaic` never imports a worker."""

import json
import os
import signal
import subprocess
from dataclasses import dataclass, field
from typing import Any

from mosaic.catalog.keywords import unsupported
from mosaic.catalog.schema import schema_problem
from mosaic.catalog.workers import Worker

TIME_LIMIT_S = 10.0
_MARK = "mosaic-descriptor:"

# Runs in the worker's Python, which may be 3.9. Libraries print while they are imported, hence the mark. The alarm ends
# a worker that hangs after the process that asked was killed.
_QUESTION = f"""
import dataclasses, importlib, json, signal, sys
signal.alarm(int(sys.argv[2]))
name, _, function = sys.argv[1].partition(":")
module = importlib.import_module(name)
answer = getattr(module, function)()
schema = getattr(module, "get_worker_schema", dict)()
pair = answer if isinstance(answer, tuple) else ({{}}, answer)
def plain(value):
    if dataclasses.is_dataclass(value):
        return dataclasses.asdict(value)
    if isinstance(value, (set, frozenset)):
        return sorted(value, key=str)
    return dict(vars(value)) if hasattr(value, "__dict__") else str(value)
print("\\n" + {_MARK!r} + json.dumps([*pair, schema], default=plain), flush=True)
"""


@dataclass(frozen=True)
class Descriptor:
    """A worker's metadata, capabilities and settings schema (empty: it publishes none), or the problem.

    The schema is the result of `get_worker_schema()` in the entry point's module: see catalog/schema.py.
    """

    metadata: dict[str, Any] = field(default_factory=dict)
    capabilities: dict[str, Any] = field(default_factory=dict)
    schema: dict[str, Any] = field(default_factory=dict)
    problem: str = ""
    unsupported: str = ""  # the part of its schema that MOSAIC cannot check; then a submit is refused


def describe(worker: Worker, limit_s: float = TIME_LIMIT_S) -> Descriptor:
    """Ask a worker. One that fails or takes too long gives a Descriptor with a problem."""
    if not worker.entry_point:
        return Descriptor(problem=f"{worker.package} has no entry point in the group mosaic.workers")
    try:
        status, text, errors = _ask(worker, limit_s)
    except subprocess.TimeoutExpired:
        return Descriptor(problem=f"no answer in {limit_s:g} s")
    except OSError as error:
        return Descriptor(problem=f"{worker.environment.python} does not start ({error.strerror})")
    answers = [line for line in text.splitlines() if line.startswith(_MARK)]
    if status != 0 or not answers:
        return Descriptor(problem=_last_line(errors) or f"exit code {status} and no descriptor")
    return _parse(answers[-1].removeprefix(_MARK))


def _ask(worker: Worker, limit_s: float) -> tuple[int, str, str]:
    # From / because -c puts the working folder on the path, which may contain a json.py of another user.
    child = subprocess.Popen(
        [str(worker.environment.python), "-c", _QUESTION, worker.entry_point, str(int(limit_s) + 10)],
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        text, errors = child.communicate(timeout=limit_s)
        return child.returncode, text, errors
    finally:
        # Processes that it started hold our pipes and would outlive it.
        _kill_group(child.pid)
        child.wait()
        for pipe in (child.stdout, child.stderr):
            if pipe:
                pipe.close()


def _kill_group(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def _parse(text: str) -> Descriptor:
    try:
        metadata, capabilities, schema = (dict(part) for part in json.loads(text))
    except (ValueError, TypeError, RecursionError) as error:
        return Descriptor(problem=f"the descriptor cannot be read ({error})")
    if problem := schema_problem(schema):
        return Descriptor(metadata, capabilities, problem=f"its schema cannot be used: {problem}")
    if part := unsupported(schema):
        return Descriptor(metadata, capabilities, problem=f"its schema cannot be used: {part}", unsupported=part)
    return Descriptor(metadata, capabilities, schema)


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""
