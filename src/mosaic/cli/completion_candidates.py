"""Candidates for completion: runs, workers, settings, tags, states and metrics.

A daemon is asked only if one is running on this machine; none is started.
"""

import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mosaic.cli.runs import SHORT_ID
from mosaic.model.rundir import StateRoot
from mosaic.model.states import RunState
from mosaic.present.durations import format_duration

if TYPE_CHECKING:
    from mosaic.catalog.workers import Worker
    from mosaic.client import Run, TrainerClient

MOST_RUNS = 200
WORKER_ANSWERS_WITHIN_S = 1.5
DAEMON_ANSWERS_WITHIN_S = 2.0

OPERATOR_KINDS = {
    "random": "a random legal action",
    "passive": "the action that does nothing",
    "human": "a person at a terminal",
    "rl:": "the policy of a run: rl:RUN or rl:RUN:best",
    "llm:": "a language model: llm:MODEL or llm:MODEL@URL",
    "worker:": "a worker with an interactive mode",
}
Given = Mapping[str, list[str]]  # the words before the cursor, by the name of their argument


@dataclass(frozen=True)
class Candidate:
    value: str
    note: str = ""

    def fits(self, word: str) -> bool:
        return self.value.startswith(word) or (self.value.isupper() and self.value.startswith(word.upper()))


def run_candidates(given: Given, _: str) -> Iterator[Candidate]:
    """`last`, names that are unique, and ids as short as in listings."""
    runs = _runs(given)
    names = Counter(run.name for run in runs)
    shorts = Counter(run.run_id[:SHORT_ID] for run in runs)
    if runs:
        yield Candidate("last", _note(runs[0]))
    for run in runs:
        if run.name and names[run.name] == 1:
            yield Candidate(run.name, _note(run))
    for run in runs:
        short = run.run_id[:SHORT_ID]
        yield Candidate(short if shorts[short] == 1 else run.run_id, _note(run))


def _note(run: "Run") -> str:
    return f"{run.name}, {run.state}, {format_duration(time.time() - run.created_at)} ago"


def evaluated_candidates(given: Given, word: str) -> Iterator[Candidate]:
    """What `mosaic eval` takes first: an action, or a run. Files follow if nothing else fits."""
    yield Candidate("attach", "show an evaluation that is running")
    yield Candidate("compare", "compare evaluations on equal seeds")
    yield from run_candidates(given, word)


def operator_candidates(given: Given, word: str) -> Iterator[Candidate]:
    """Kinds of operators, with the name that was typed before them; after `rl:` the runs."""
    name = word[: word.rfind("=") + 1]
    for kind, note in OPERATOR_KINDS.items():
        yield Candidate(f"{name}{kind}", note)
    if word.startswith(f"{name}rl:"):
        yield from (Candidate(f"{name}rl:{run.value}", run.note) for run in run_candidates(given, ""))


def tag_candidates(given: Given, _: str) -> Iterator[Candidate]:
    return (Candidate(tag) for run in _runs(given) for tag in run.tags)


def curve_candidates(given: Given, _: str) -> Iterator[Candidate]:
    with _client(given) as client:
        if client and given.get("run"):
            yield from (Candidate(name) for name in client.curve_names(given["run"][-1]))


def field_candidates(given: Given, word: str) -> Iterator[Candidate]:
    """Fields of every run, then settings and metrics of the newest one; also in a list, and after a minus sign."""
    from mosaic.model.run_fields import FIELDS

    before = word[: word.rfind(",") + 1]
    before += "-" if word[len(before) :].startswith("-") else ""
    yield from (Candidate(before + name) for name in FIELDS)
    with _client(given) as client:
        if client and (newest := client.list_runs(limit=1).runs):
            settings = client.get_run(newest[0].run_id).settings or {}
            yield from (Candidate(before + key.rpartition(".")[2], "setting") for key in settings)
            yield from (Candidate(before + name, "metric") for name in newest[0].summary.last_values)


def state_candidates(_: Given, word: str) -> Iterator[Candidate]:
    """States, also as a list: FAULTED, FAULTED,CANCELLED and so on."""
    before = word[: word.rfind(",") + 1]
    return (Candidate(before + name) for name in (*(str(state) for state in RunState), "live", "over"))


def worker_candidates(_: Given, __: str) -> Iterator[Candidate]:
    return (
        Candidate(worker.spelled, f"{worker.package} {worker.version}") for worker in _workers() if not worker.problem
    )


def program_candidates(given: Given, word: str) -> Iterator[Candidate]:
    """What `mosaic run` takes first: a worker, or a program of the user's own."""
    yield Candidate("python", "a script of your own")
    yield from worker_candidates(given, word)


def environment_candidates(_: Given, __: str) -> Iterator[Candidate]:
    from mosaic.catalog.script_envs import script_environments

    return (Candidate(env.name, env.made_from) for env in script_environments(StateRoot.from_environment()))


def source_candidates(_: Given, __: str) -> Iterator[Candidate]:
    from mosaic.catalog.sources import bundled_names

    return (Candidate(name, "included in MOSAIC") for name in bundled_names())


def setting_candidates(given: Given, word: str) -> Iterator[Candidate]:
    """Keys such as `algo=`, and after the = their values, from the worker's schema."""
    from mosaic.catalog.schema import kind_of

    key, sign, _ = word.partition("=")
    known = _settings(_worker_named(given))
    if sign:
        part = known.get(key, {})
        yield from (Candidate(f"{key}={value}", note) for value, note in _choices(part))
        return
    taken = {setting.partition("=")[0] for setting in given.get("settings", [])}
    for name, part in known.items():
        if name not in taken:
            about = str(part.get("description", ""))
            yield Candidate(f"{name}=", f"{kind_of(part)[:40]}  {about}".strip())


def _choices(part: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    from mosaic.catalog.schema import UNAVAILABLE_KEY

    refused = part.get(UNAVAILABLE_KEY, {})
    default = part.get("default")
    values = part.get("enum") or (["true", "false"] if part.get("type") == "boolean" else [])
    for value in values:
        if value is not None and str(value) not in refused:
            yield str(value), "default" if value == default else ""
    if not values and isinstance(default, str | int | float) and default != "":
        yield str(default), "default"


def _settings(worker: "Worker | None") -> dict[str, Mapping[str, Any]]:
    """The worker's settings by their short names. A slow worker's answer is only available at the next completion."""
    from mosaic.catalog.answers import Answers
    from mosaic.catalog.schema import parameters

    if worker is None:
        return {}
    answers = Answers(StateRoot.from_environment().answers)
    descriptor = answers.remembered(worker)
    if descriptor is None:
        command = [sys.executable, "-m", "mosaic.cli.main", "worker", "describe", worker.spelled, "--json"]
        quiet = subprocess.DEVNULL
        child = subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True)
        with suppress(subprocess.TimeoutExpired):
            child.wait(WORKER_ANSWERS_WITHIN_S)
        descriptor = answers.remembered(worker)
    known = {name: part for _, name, part in parameters(descriptor.schema if descriptor else {})}
    return {**({"env": known["env_id"]} if "env_id" in known else {}), **known}


def _worker_named(given: Given) -> "Worker | None":
    """The worker that `run WORKER` names, or that the named run used."""
    name = (given.get("worker") or given.get("env_of") or [""])[-1]
    if not name and given.get("run"):
        with _client(given) as client:
            name = client.get_run(given["run"][-1]).worker_name if client else ""
    return next((worker for worker in _workers() if worker.spelled == name), None)


def _workers() -> "list[Worker]":
    from mosaic.catalog.workers import Catalog

    return Catalog(StateRoot.from_environment()).workers()


def _runs(given: Given) -> "tuple[Run, ...]":
    with _client(given) as client:
        return client.list_runs(limit=MOST_RUNS).runs if client else ()


@contextmanager
def _client(given: Given) -> "Iterator[TrainerClient | None]":
    """A client of this machine's daemon; None if none is running."""
    from mosaic.client import TrainerClient
    from mosaic.client.endpoint import find_endpoint

    endpoint = find_endpoint(StateRoot.from_environment())
    if "host" in given or endpoint is None:
        yield None
        return
    with TrainerClient.at(endpoint) as client:
        signal.setitimer(signal.ITIMER_REAL, DAEMON_ANSWERS_WITHIN_S)  # ends the process, see completion_query.py
        yield client


CANDIDATES: Mapping[str, Callable[[Given, str], Iterator[Candidate]]] = {  # by the name of the argument in the help
    "RUN": run_candidates,
    "RUN|FILE": evaluated_candidates,
    "[NAME=]KIND": operator_candidates,
    "TAG": tag_candidates,
    "STATE": state_candidates,
    "[-]FIELD": field_candidates,
    "FIELD,FIELD": field_candidates,
    "WORKER": worker_candidates,
    "WORKER[@VARIANT]": worker_candidates,
    "WORKER[@VARIANT]|python": program_candidates,
    "ENV": environment_candidates,
    "NAME[@VARIANT]": worker_candidates,
    "NAME|PATH|REQUIREMENT": source_candidates,
    "NAME": curve_candidates,
    "key=value": setting_candidates,
}
