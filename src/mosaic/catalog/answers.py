"""The workers' descriptors, cached on disk: asking starts a Python, and a broken worker takes its whole timeout."""

import hashlib
import os
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from mosaic_sdk.files import as_file_name

from mosaic.catalog.descriptor import TIME_LIMIT_S, Descriptor, describe
from mosaic.catalog.workers import Worker
from mosaic.model import durable

PROBLEM_KEPT_S = 600.0
_VERSION = 5


class Answers:
    """One file per worker in `envs/.answers/`, valid until the environment's packages or the worker's files change."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def of(self, worker: Worker, limit_s: float = TIME_LIMIT_S) -> Descriptor:
        """The cached answer, or a new one."""
        return self.remembered(worker) or self.ask(worker, limit_s)

    def of_all(self, workers: Iterable[Worker]) -> list[Descriptor]:
        """The answers in the order of the workers. All are asked concurrently, so one that hangs delays no other."""
        todo = list(workers)
        found = [self.remembered(worker) for worker in todo]
        if all(found):
            return [answer for answer in found if answer]
        with ThreadPoolExecutor(max_workers=8) as pool:
            return list(pool.map(lambda pair: pair[1] or self.ask(pair[0]), zip(todo, found, strict=True)))

    def remembered(self, worker: Worker) -> Descriptor | None:
        cached = durable.read_json(self._path(worker)) or {}
        if cached.get("state") != state_of(worker):
            return None
        answer: dict[str, Any] = cached["answer"]
        # The problem may be gone: a full disk, a machine under load, a cold cache.
        if answer["problem"] and not 0 <= time.time() - cached["asked_at"] <= PROBLEM_KEPT_S:
            return None
        return Descriptor(**answer)

    def ask(self, worker: Worker, limit_s: float = TIME_LIMIT_S) -> Descriptor:
        """Ask now, even if an answer is cached."""
        state, answer = state_of(worker), describe(worker, limit_s)
        # If the folder is not writable, the worker is asked again the next time; nothing else is lost.
        with suppress(OSError):
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            durable.write_json(self._path(worker), {"state": state, "asked_at": time.time(), "answer": asdict(answer)})
        return answer

    def _path(self, worker: Worker) -> Path:
        # By its Python too: two installations with one state folder each have an environment called OWN.
        mark = hashlib.sha256(f"{worker.environment.python}\0{worker.entry_point}".encode()).hexdigest()[:12]
        return self.folder / f"{as_file_name(worker.name)}-{mark}.json"


def state_of(worker: Worker) -> str:
    """Changes when a package is installed or removed, or a file of the worker's package changes (editable installs)."""
    place = worker.environment.locate(worker.package)
    state = repr((_VERSION, worker.entry_point, _packages(worker), sorted(_files(place))))
    return hashlib.sha256(state.encode()).hexdigest()


def _packages(worker: Worker) -> list[object]:
    # Only these folders: the CLI and the daemon differ in the others on their paths.
    return [entry for entry in worker.environment.stamp() if entry[0].endswith(("site-packages", "dist-packages"))]


def _files(place: Path | None) -> list[tuple[str, int, int]]:
    if place is None:
        return []
    return [state for path in (place.rglob("*.py") if place.is_dir() else [place]) if (state := _file_state(path))]


def _file_state(path: Path) -> tuple[str, int, int] | None:
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return None  # an editor is saving it: the file will be back in a moment
    return str(path), status.st_mtime_ns, status.st_size
