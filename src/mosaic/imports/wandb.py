"""Offline runs of Weights & Biases: `wandb/offline-run-TIME-ID/run-ID.wandb`.

The file is a log in LevelDB's format, with CRC-32 in place of CRC-32C, behind a header of 7 bytes:

    block of 32 KiB := record* padding        record := checksum: u32 │ length: u16 │ type: u8 │ data
    type: 1 whole │ 2 first part │ 3 middle │ 4 last

Each record is a message: the run, a change of its config, a row of its history, its end.
"""

import json
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mosaic.imports import protobuf
from mosaic.imports.block import Block, Gathering
from mosaic.imports.files import Changed, Damaged, opened
from mosaic.imports.source import Source
from mosaic.imports.values import flatten, ns_of, number_of, numbers_in, step_of

MAGIC = b":W&B\xe1\xbe\x00"
BLOCK = 32 << 10
HEADER = 7
LARGEST = 64 << 20  # a message of several parts
WHOLE, FIRST, MIDDLE, LAST = 1, 2, 3, 4
HISTORY, CONFIG, RUN, EXIT = 2, 5, 17, 18  # fields of a record
_HEADER = struct.Struct("<IHB")
_OWN = frozenset({"_step", "_runtime", "_timestamp", "_wandb"})
_STARTS = {kind: zlib.crc32(bytes([kind])) for kind in (WHOLE, FIRST, MIDDLE, LAST)}


def log_files(names: "list[str] | tuple[str, ...]") -> list[str]:
    return sorted(name for name in names if name.startswith("run-") and name.endswith(".wandb"))


class Wandb(Source):
    format = "wandb"

    def blocks(self) -> Iterator[Block]:
        gathering = Gathering()
        self.about.notes.append("its end is not recorded")
        config: dict[str, Any] = self.state.get("config") or {}
        self.about.settings = config
        for name in log_files(self.found.files):
            try:
                for data, end in messages(self.path(name), self.position(name)):
                    self._record(data, gathering)
                    self.advance(name, end)
                    if gathering.block.is_full:
                        yield self._take(gathering)
            except (OSError, Changed, Damaged) as error:
                self.fail(name, error)
        yield self._take(gathering)
        self.about.settings = flatten(self.about.settings)
        self.about.artifacts = {"wandb": {"directory": str(self.found.path), "project": self.state.get("project", "")}}

    def _take(self, gathering: Gathering) -> Block:
        self.state["config"] = flatten(self.about.settings)
        return gathering.take()

    def _record(self, data: bytes, gathering: Gathering) -> None:
        for key, kind, value in protobuf.fields(data):
            if kind != protobuf.BYTES:
                continue
            if key == HISTORY:
                self._history(value, gathering)
            elif key == CONFIG:
                self._config(value)
            elif key == RUN:
                self._run(value)
            elif key == EXIT:
                self._exit(value)

    def _history(self, data: bytes, gathering: Gathering) -> None:
        row = dict(_items(data, 1))
        step = step_of(row.get("_step"))
        if step is None:
            inner = protobuf.only(data, 2)
            step = protobuf.signed(protobuf.only(inner, 1) or 0) if isinstance(inner, bytes) else 0
        at = number_of(row.get("_timestamp")) or self.about.ended or self.about.began
        self.about.seen(at)
        values = {name: value for name, value in numbers_in(row, _OWN).items() if self.is_name(name)}
        # Scripts that log a global_step mean it as their axis: CleanRL's do, and MOSAIC's observer reads it so.
        axis = step_of(values.get("global_step"))
        if values:
            gathering.flush()
            gathering.block.add(ns_of(at), step if axis is None else axis, tuple(values), list(values.values()))

    def _config(self, data: bytes) -> None:
        for name, value in _items(data, 1):
            if not name.startswith("_wandb"):
                self.about.settings[name] = value
        for name, _ in _items(data, 2):
            self.about.settings.pop(name, None)

    def _run(self, data: bytes) -> None:
        for key, kind, value in protobuf.fields(data):
            if kind != protobuf.BYTES:
                continue
            if key == 4:
                self._config(value)
            elif key == 3:
                self.state["project"] = protobuf.text(value)[:200]
            elif key == 8:
                self.about.name = protobuf.text(value)
            elif key == 10:
                self.about.tags.append(protobuf.text(value))
            elif key == 17 and isinstance(seconds := protobuf.only(value, 1), int):
                self.about.seen(float(seconds))

    def _exit(self, data: bytes) -> None:
        code = protobuf.only(data, 1) or 0
        code = protobuf.signed(code) if isinstance(code, int) else 0
        self.about.notes = [note for note in self.about.notes if note != "its end is not recorded"]
        if code:
            # W&B uses 255 for a run that an interrupt or a signal ended.
            self.about.state, self.about.reason = "FAULTED", f"exit code {code}, as W&B recorded it"
        runtime = protobuf.only(data, 2)
        if isinstance(runtime, int) and self.about.began:
            self.about.seen(self.about.began + runtime)


def _items(data: bytes, number: int) -> Iterator[tuple[str, Any]]:
    """The (key, value) pairs of a history row or a config; parts of a nested key are joined by dots."""
    for key, kind, item in protobuf.fields(data):
        if key != number or kind != protobuf.BYTES:
            continue
        name, nested, text = "", [], b""
        for inner, _, value in protobuf.fields(item):
            if inner == 1:
                name = protobuf.text(value)
            elif inner == 2:
                nested.append(protobuf.text(value))
            elif inner == 16 and isinstance(value, bytes):
                text = value
        try:
            yield name or "/".join(nested), json.loads(text or b"null")
        except (ValueError, RecursionError):
            continue


def messages(path: Path, at: int) -> Iterator[tuple[bytes, int]]:
    """The messages of a log from byte `at` on, each with the offset behind it. A last one that is cut is left out."""
    with opened(path) as file:
        if not at:
            if (magic := file.read(len(MAGIC))) != MAGIC:
                raise Damaged("it is not a log of W&B" if magic else "it is empty")
            at = len(MAGIC)
        file.seek(at)
        parts: list[bytes] = []
        while True:
            left = BLOCK - at % BLOCK
            if left < HEADER:
                at += len(file.read(left))
            header = file.read(HEADER)
            if len(header) < HEADER:
                return
            stored, length, kind = _HEADER.unpack(header)
            data = file.read(length)
            if kind not in _STARTS or at % BLOCK + HEADER + length > BLOCK:
                raise Damaged(f"it is damaged at byte {at:,}; what comes before it was imported")
            if len(data) < length:
                raise Damaged(f"it ends inside a record, at byte {at:,}; what comes before it was imported")
            if zlib.crc32(data, _STARTS[kind]) != stored:
                raise Damaged(f"it is damaged at byte {at:,}; what comes before it was imported")
            at += HEADER + length
            parts = [data] if kind in (WHOLE, FIRST) else [*parts, data]
            if sum(map(len, parts)) > LARGEST:
                raise Damaged(f"a record before byte {at:,} has more than {LARGEST >> 20} MiB")
            if kind in (WHOLE, LAST):
                yield b"".join(parts), at
                parts = []
