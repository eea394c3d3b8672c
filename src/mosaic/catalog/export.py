"""A checkpoint as files for other people, made by its worker in its own environment: `mosaic` never unpickles one.

The worker's schema names the module (`x-mosaic-export`). It is started as `python -m MODULE CHECKPOINT FOLDER`, writes
its files into the folder, and then export.json, which says what they are: see mosaic_sdk.export.
"""

import os
import signal
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mosaic_sdk.names import EXPORT_FILE

from mosaic.catalog.answers import Answers
from mosaic.catalog.schema import EXPORT_KEY
from mosaic.catalog.workers import Catalog, Worker
from mosaic.model.durable import read_json
from mosaic.model.errors import MosaicError
from mosaic.model.rundir import StateRoot

TIME_LIMIT_S = 600.0  # importing torch and reading a large checkpoint from a cold disk


@dataclass(frozen=True)
class Exported:
    """What the worker says it wrote."""

    library: str = ""
    files: Mapping[str, str] = field(default_factory=dict)  # each file, and what it is
    usage: str = ""
    left_out: tuple[str, ...] = ()
    algo: str = ""


@dataclass(frozen=True)
class Exporter:
    """The module of one worker that exports its checkpoints."""

    worker: Worker
    module: str

    @classmethod
    def of(cls, root: StateRoot, section: Mapping[str, Any]) -> "Exporter | None":
        """For `metadata.worker` of a run; None if its program is not a worker, or one that declares no export.

        UnknownWorker if the worker is not installed any more.
        """
        module = str(section.get("module") or "")
        if not module or section.get("python"):
            return None
        worker = Catalog(root).for_module(module, str(section.get("variant") or ""), str(section.get("name") or ""))
        if not worker.entry_point:
            return None
        descriptor = Answers(root.answers).of(worker)
        if descriptor.problem:
            raise MosaicError(f"Worker '{worker.spelled}' cannot export: {descriptor.problem}. See: mosaic doctor")
        declared = descriptor.schema.get(EXPORT_KEY)
        return cls(worker, declared) if isinstance(declared, str) else None

    def run(self, checkpoint: Path, folder: Path, limit_s: float = TIME_LIMIT_S) -> Exported:
        """Export a checkpoint into an empty folder. MosaicError, with the worker's own reason, if it fails."""
        code, errors = self._start(checkpoint, folder, limit_s)
        about = read_json(folder / EXPORT_FILE)
        if code != 0 or about is None:
            why = _last_line(errors) or f"exit code {code}"
            raise MosaicError(f"Worker '{self.worker.spelled}' could not export {checkpoint}: {why}")
        (folder / EXPORT_FILE).unlink()
        return _checked(about, folder)

    def _start(self, checkpoint: Path, folder: Path, limit_s: float) -> tuple[int, str]:
        # From / because -m puts the working folder on the path. A GPU is not needed, and may be another run's.
        child = subprocess.Popen(
            [str(self.worker.environment.python), "-m", self.module, str(checkpoint), str(folder)],
            cwd="/",
            env={**os.environ, "CUDA_VISIBLE_DEVICES": "", "JAX_PLATFORMS": "cpu"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        try:
            _, errors = child.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            raise MosaicError(
                f"Worker '{self.worker.spelled}' did not export {checkpoint} within {limit_s:g} s."
            ) from None
        finally:
            with suppress(ProcessLookupError):  # also what it started, after Ctrl-C too
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
            if child.stderr:
                child.stderr.close()
        return child.returncode, errors


def _checked(about: Mapping[str, Any], folder: Path) -> Exported:
    files = about.get("files")
    described = {str(name): str(what) for name, what in files.items()} if isinstance(files, dict) else {}
    for name in described:
        if os.path.basename(name) != name or not (folder / name).is_file() or (folder / name).is_symlink():
            raise MosaicError(f"The worker says that it exported '{name}', but there is no such file.")
    left_out = about.get("left_out")
    texts = {key: str(about.get(key) or "") for key in ("library", "usage", "algo")}
    return Exported(files=described, left_out=tuple(map(str, left_out if isinstance(left_out, list) else ())), **texts)


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""
