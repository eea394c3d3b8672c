"""The checkpoints of a replay that is a part of its run: their files are kept with the run, not with the part.

    part: FarVault ── newest, read ──▶ run: Keeper, over the run's checkpoints folder
                   ── store, sweep ──▶

So a part can be lost with its node and its disk, and needs no folder that both sides see.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from mosaic_sdk.checkpoints import CheckpointError
from mosaic_sdk.files import read_json

from dreamer_worker.checkpoint import Epochs
from dreamer_worker.replay import PART, Replay, Vault
from dreamer_worker.rpc import Client, Server

PIECE = 8 << 20  # bytes in one call
_NAMES = re.compile(r"blocks/[a-z]+-[0-9]{1,19}-[0-9]{1,9}\.npz|epoch-[0-9]{8,19}/" + re.escape(PART))


class Keeper:
    """The run's side. Its promises:

    1. A file is there whole or not at all.
    2. Only the names of a replay's files are served.
    3. It takes files from one replay only, the newest. One that was lost may live on without a connection for a while.
    """

    def __init__(self, epochs: Epochs) -> None:
        self._epochs = epochs
        self._sender = ""

    def take_from(self, address: str) -> None:
        """The replay at this address is the run's from now on."""
        self._sender = address

    def serve_at(self, server: Server) -> None:
        for name in ("newest", "read", "store", "sweep"):
            server.bind(f"vault_{name}", getattr(self, name))

    def newest(self) -> str:
        """The newest complete epoch, with the names and sizes of the replay's files, as JSON; {} if there is none."""
        epoch = self._epochs.newest()
        if epoch is None or not (self._epochs.path(epoch) / PART).exists():
            return "{}"
        part = self._epochs.path(epoch) / PART
        files = {f"{part.parent.name}/{PART}": part.stat().st_size}
        files |= {f"blocks/{entry['file']}": entry["bytes"] for entry in _blocks(read_json(part))}
        return json.dumps({"epoch": epoch, "files": files})

    def read(self, name: str, offset: int) -> bytes:
        with open(self._path(name), "rb") as file:
            file.seek(int(offset))
            return file.read(PIECE)

    def store(self, sender: str, name: str, size: int, digest: str, offset: int, piece: bytes) -> None:
        """Take a piece of a file. The last one puts it in place, if the whole has this SHA-256."""
        self._check(sender)
        path = self._path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        half = path.with_name(f"{path.name}.half")
        with open(half, "r+b" if half.exists() else "w+b") as file:
            file.seek(int(offset))
            file.write(piece)
            if int(offset) + len(piece) < int(size):
                return
            file.truncate(int(size))
            file.flush()
            os.fsync(file.fileno())
            file.seek(0)
            found = hashlib.file_digest(file, "sha256").hexdigest()
        if found != digest:
            half.unlink()
            raise ValueError(f"{name} arrived damaged")
        half.replace(path)

    def sweep(self, sender: str, epoch: int) -> None:
        self._check(sender)
        Vault(self._epochs).sweep(int(epoch))

    def _check(self, sender: str) -> None:
        if sender != self._sender:
            raise ValueError("another replay has taken the place of this one")

    def _path(self, name: str) -> Path:
        if not _NAMES.fullmatch(name):
            raise ValueError(f"{name!r} is not a file of a replay")
        return self._epochs.folder / name


class FarVault(Vault):
    """The part's side: what is in `folder` is only on its way."""

    def __init__(self, folder: Path, keeper: Client, address: str) -> None:
        """`address`: of this replay."""
        super().__init__(Epochs(folder))
        self._keeper = keeper
        self._address = address
        self._kept: set[str] = set()  # blocks that the run has

    def newest(self) -> int | None:
        """Fetch the newest epoch of the run."""
        shutil.rmtree(self.epochs.folder, ignore_errors=True)
        found = json.loads(self._keeper.ask("vault_newest"))
        for name, size in found.get("files", {}).items():
            self._fetch(name, size)
        epoch: int | None = found.get("epoch")
        if epoch is not None:
            print(f"The replay continues from checkpoint {epoch} of the run.", file=sys.stderr, flush=True)
        return epoch

    def restore(self, replay: Replay, epoch: int) -> None:
        super().restore(replay, epoch)
        self._kept = {entry["file"] for entry in self._written.values()}
        self._empty()

    def write(self, replay: Replay, snapshot: dict[str, Any], epoch: int) -> None:
        super().write(replay, snapshot, epoch)
        for entry in _blocks(snapshot):
            if entry["file"] not in self._kept:
                self._send(f"blocks/{entry['file']}")
                self._kept.add(entry["file"])
                (self.folder / entry["file"]).unlink()
        # Last: an epoch whose blocks are not all there must not count.
        self._send(f"{self.epochs.path(epoch).name}/{PART}")

    def sweep(self, newest: int) -> None:
        self._keeper.ask("vault_sweep", self._address, newest)
        super().sweep(newest)
        self._kept &= {entry["file"] for entry in self._written.values()}
        shutil.rmtree(self.epochs.path(newest), ignore_errors=True)

    def _empty(self) -> None:
        for path in self.folder.iterdir() if self.folder.exists() else ():
            path.unlink()

    def _fetch(self, name: str, size: int) -> None:
        path = self.epochs.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "wb") as file:
            while file.tell() < size:
                piece = self._keeper.ask("vault_read", name, file.tell())
                if not piece:
                    raise CheckpointError(f"{name} is shorter than its {size} bytes. Use an older checkpoint.")
                file.write(piece)

    def _send(self, name: str) -> None:
        path = self.epochs.folder / name
        size = path.stat().st_size
        with open(path, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            for offset in range(0, size, PIECE):
                file.seek(offset)
                self._keeper.ask("vault_store", self._address, name, size, digest, offset, file.read(PIECE))


def _blocks(saved: Any) -> Iterable[Any]:
    return (entry for buffer in saved["buffers"].values() for entry in buffer["blocks"])
