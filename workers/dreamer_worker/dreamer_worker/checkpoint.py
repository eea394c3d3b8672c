"""Checkpoints: every part of the run at one moment, under one number.

    checkpoints/
    ├── epoch-00000007/          one moment of the whole run
    │   ├── agent.npz            what the agent has learned
    │   ├── replay.json          what lies in the replay buffers, and the limiter
    │   ├── logger.json          steps, episodes
    │   └── commit.json          written last: names the parts, their sizes and digests. Without it the epoch is none
    ├── epoch-00000006/          the one before, should the newest be damaged
    └── blocks/                  the replay's steps, each block written once and named by the epochs that hold it

No pickle: arrays are npz (zip of npy, each with its CRC), the rest is JSON. Files are written whole: temp, fsync,
rename.
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
    """The epochs in one folder. A newer one replaces an older one only when it is whole."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)

    def path(self, epoch: int) -> Path:
        return self.folder / f"epoch-{epoch:08d}"

    def begin(self, epoch: int) -> Path:
        """An empty folder for this epoch; what a crash left there is removed."""
        path = self.path(epoch)
        if path.exists():
            shutil.rmtree(path)
        path.mkdir(parents=True)
        return path

    def abandon(self, epoch: int) -> None:
        """What was begun and will not be committed only takes room."""
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
        """Newer ones are damaged or were never committed: they must not be taken for the last but one some day."""
        for number in self._numbers():
            if number > epoch:
                aside = self.folder / f"damaged-{number:08d}"
                shutil.rmtree(aside, ignore_errors=True)
                self.path(number).rename(aside)

    def newest(self) -> int | None:
        """The newest epoch whose parts are all whole; a damaged one is passed over."""
        return next((epoch for epoch in self._numbers() if not self.damage(epoch)), None)

    def committed(self) -> list[int]:
        return [epoch for epoch in self._numbers() if (self.path(epoch) / COMMIT).exists()]

    def next_number(self) -> int:
        return max(self._numbers(), default=0) + 1

    def damage(self, epoch: int) -> str:
        """What is wrong with an epoch; empty when it can be restored."""
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
        """All that are there, newest first, committed or not."""
        return sorted((int(path.name[6:]) for path in self.folder.glob("epoch-" + "[0-9]" * 8)), reverse=True)

    def _missing_block(self, replay: Mapping[str, Any]) -> str:
        for buffer in replay["buffers"].values():
            for entry in buffer["blocks"]:
                path = self.folder / "blocks" / entry["file"]
                if not path.exists() or path.stat().st_size != entry["bytes"]:
                    return f"{entry['file']} is missing or cut"
        return ""


class Claim:
    """Who may write a folder: one process at a time, by a lock that ends with it.

    An agent claims the epochs: one that was killed may still be saving its last when the run is launched again.
    A launcher claims the run's folder.
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
                raise CheckpointError(f"Another run writes to {self._path.parent}. Stop it, or choose another logdir.")
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
    """Numbers that survive a kill of their writer: 8-byte words in a mapped file. Each has one writer.

    They tell how far a run has come since its last checkpoint; a process that comes back counts on from them, so they
    never go back. A run that is resumed begins with those of its epoch.
    """

    NAMES = ("env_steps", "updates", "episodes", "eval_episodes", "launches")

    def __init__(self, path: str | os.PathLike[str]) -> None:
        size = 8 * len(self.NAMES)
        with open(path, "a+b") as file:
            # Written, not only made longer: on a full disk that is an error here, and not a SIGBUS at the first count.
            file.write(bytes(max(0, size - os.fstat(file.fileno()).st_size)))
            file.flush()
            self._words = memoryview(mmap.mmap(file.fileno(), size)).cast("q")

    def __getitem__(self, name: str) -> int:
        return self._words[self.NAMES.index(name)]

    def raise_to(self, name: str, value: int) -> int:
        """Set it, unless it is further already; returns where it stands."""
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
    """An npz of plain arrays, written whole."""
    with atomic_file(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, np.asarray(array), allow_pickle=False)


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """Every byte is checked against the archive's CRC; nothing in it is executed."""
    try:
        with zipfile.ZipFile(path) as archive:
            return {entry[:-4]: _array(archive.read(entry)) for entry in archive.namelist()}
    except (zipfile.BadZipFile, ValueError, EOFError) as error:
        raise CheckpointError(f"{path} is damaged: {error}. Use an older checkpoint.") from None


def _array(data: bytes) -> np.ndarray:
    return np.lib.format.read_array(io.BytesIO(data), allow_pickle=False)
