"""Checkpoints: every part of the run at one moment, under one number.

    checkpoints/
    ├── epoch-00000007/          one moment of the whole run
    │   ├── agent.npz            what the agent has learned
    │   ├── replay.json          what the replay buffers hold, and the limiter
    │   ├── logger.json          steps, episodes
    │   └── commit.json          written last: the parts with sizes and digests. Without it the epoch does not count
    ├── epoch-00000006/          the previous one, in case the newest is damaged
    └── blocks/                  the replay's steps; each block is written once and listed by the epochs that use it

No pickle: arrays are npz (zip of npy, each with its CRC), the rest is JSON. Files are written atomically.
"""

from __future__ import annotations

import fcntl
import io
import mmap
import os
import shutil
import time
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from mosaic_sdk import checkpoints
from mosaic_sdk.checkpoints import CheckpointError
from mosaic_sdk.files import atomic_file, read_json
from mosaic_sdk.names import COMMIT_FILE

WORKER = "dreamer"
FORMAT = 1  # of what an epoch holds
COMMIT = COMMIT_FILE
KEEP = 2
CLAIM_S = 20.0


class Epochs:
    """The epochs in one folder. A newer one replaces an older one only when it is complete."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)

    def path(self, epoch: int) -> Path:
        return self.folder / f"epoch-{epoch:08d}"

    def begin(self, epoch: int) -> Path:
        """Create an empty folder for this epoch; remove what a crash left there."""
        path = self.path(epoch)
        if path.exists():
            shutil.rmtree(path)
        path.mkdir(parents=True)
        return path

    def abandon(self, epoch: int) -> None:
        """Remove an epoch that was begun and will not be committed."""
        if not (self.path(epoch) / COMMIT).exists():
            shutil.rmtree(self.path(epoch), ignore_errors=True)

    def commit(self, epoch: int, counters: Mapping[str, int], settings: Mapping[str, Any] | None = None) -> None:
        """The epoch is complete: put it in force, and remove all but the newest two."""
        settings = settings or {}
        checkpoints.commit(
            self.path(epoch),
            worker=WORKER,
            format=FORMAT,
            step=int(counters.get("env_steps", 0)),
            env_id=str(settings.get("env", "")),
            settings=settings,
            digests=True,
            epoch=epoch,
            counters=dict(counters),
        )
        kept = self.committed()[:KEEP]
        for old in self._numbers():
            if old not in kept:
                shutil.rmtree(self.path(old), ignore_errors=True)

    def set_aside_after(self, epoch: int) -> None:
        """Rename newer epochs, which are damaged or were never committed, so that they are not used later."""
        for number in self._numbers():
            if number > epoch:
                aside = self.folder / f"damaged-{number:08d}"
                shutil.rmtree(aside, ignore_errors=True)
                self.path(number).rename(aside)

    def newest(self) -> int | None:
        """The newest epoch whose parts are all intact; damaged ones are skipped."""
        return next((epoch for epoch in self._numbers() if not self.damage(epoch)), None)

    def committed(self) -> list[int]:
        return [epoch for epoch in self._numbers() if (self.path(epoch) / COMMIT).exists()]

    def next_number(self) -> int:
        return max(self._numbers(), default=0) + 1

    def damage(self, epoch: int) -> str:
        """What is wrong with an epoch; empty if it can be restored."""
        try:
            if problem := self._checkpoint(epoch).damage():
                return problem
            replay = self.path(epoch) / "replay.json"
            return self._missing_block(read_json(replay)) if replay.exists() else ""
        except (OSError, ValueError, KeyError, CheckpointError) as error:
            return str(error)

    def read(self, epoch: int) -> Mapping[str, Any]:
        """What was committed: `counters`, `settings` and the rest of commit.json."""
        return self._checkpoint(epoch).about

    def _checkpoint(self, epoch: int) -> checkpoints.Checkpoint:
        """Epochs that were saved before the SDK wrote commit.json have neither worker nor settings in it."""
        found = checkpoints.read(self.path(epoch))
        found.require(worker=WORKER, format=FORMAT)
        return found

    def _numbers(self) -> list[int]:
        """All epochs in the folder, newest first, committed or not."""
        return sorted((int(path.name[6:]) for path in self.folder.glob("epoch-" + "[0-9]" * 8)), reverse=True)

    def _missing_block(self, replay: Mapping[str, Any]) -> str:
        for buffer in replay["buffers"].values():
            for entry in buffer["blocks"]:
                path = self.folder / "blocks" / entry["file"]
                if not path.exists() or path.stat().st_size != entry["bytes"]:
                    return f"{entry['file']} is missing or truncated"
        return ""


class Claim:
    """The right to write a folder: one process at a time, by a lock that ends with the process.

    An agent claims the epochs: one that was killed may still be saving when the run is launched again. A launcher
    claims the run's folder.
    """

    def __init__(self, folder: str | os.PathLike[str], name: str = "agent.lock") -> None:
        self._path = Path(folder) / name
        self._file: Any = None

    def take(self, limit_s: float = CLAIM_S) -> Claim:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._file = open(self._path, "a")  # noqa: SIM115
        until = time.monotonic() + limit_s
        while not self._is_mine():
            if time.monotonic() >= until:
                raise CheckpointError(
                    f"Another run is writing to {self._path.parent}. Stop it, or choose another logdir."
                )
            time.sleep(0.1)
        return self

    def release(self) -> None:
        self._file.close()

    def _is_mine(self) -> bool:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


class Counters:
    """Numbers that survive a kill of their writer: 64-bit integers in a mapped file. Each has one writer.

    They count the progress since the last checkpoint. A restarted process continues from them, so they never decrease.
    A resumed run starts with those of its epoch.
    """

    NAMES = ("env_steps", "updates", "episodes", "eval_episodes", "launches")

    def __init__(self, path: str | os.PathLike[str]) -> None:
        size = 8 * len(self.NAMES)
        with open(path, "a+b") as file:
            # Written, not only extended: a full disk then raises an error here instead of SIGBUS at the first count.
            file.write(bytes(max(0, size - os.fstat(file.fileno()).st_size)))
            file.flush()
            self._words = memoryview(mmap.mmap(file.fileno(), size)).cast("q")

    def __getitem__(self, name: str) -> int:
        return self._words[self.NAMES.index(name)]

    def raise_to(self, name: str, value: int) -> int:
        """Raise a counter to at least `value`; returns its value."""
        place = self.NAMES.index(name)
        if value > self._words[place]:
            self._words[place] = value  # one aligned store: a reader sees the old or the new number
        return self._words[place]

    def reset(self, values: Mapping[str, int]) -> None:
        for place, name in enumerate(self.NAMES):
            self._words[place] = int(values.get(name, 0))

    def to_dict(self) -> dict[str, int]:
        return dict(zip(self.NAMES, self._words, strict=True))


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write plain arrays as npz, atomically."""
    with atomic_file(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, np.asarray(array), allow_pickle=False)


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """Read an npz. Every byte is checked against the archive's CRC, and nothing in it is executed."""
    try:
        with zipfile.ZipFile(path) as archive:
            return {entry[:-4]: _array(archive.read(entry)) for entry in archive.namelist()}
    except (zipfile.BadZipFile, ValueError, EOFError) as error:
        raise CheckpointError(f"{path} is damaged: {error}. Use an older checkpoint.") from None


def _array(data: bytes) -> np.ndarray:
    return np.lib.format.read_array(io.BytesIO(data), allow_pickle=False)
