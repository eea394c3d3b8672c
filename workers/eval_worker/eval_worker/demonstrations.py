"""Demonstration data: the episodes of recorded operators, one file per episode and agent.

    <run folder>/demonstrations/episodes/OPERATOR/AGENT/LANE-000003.npz
        observations (one more than the rest; observations/KEY for the parts of a Dict), actions, rewards,
        terminations, truncations, about (JSON: env, agent, operator, seed, spaces)

1. A file is written whole when its episode ends, so a killed run keeps every episode that was over.
2. An episode that was abandoned (a time limit, a failure, a new reset) ends with `truncated`.
3. A repeated episode replaces its file. No pickle is written or read.

minari_export.py makes Minari datasets of them.
"""

import json
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.lib.format as npy
from mosaic_sdk.files import as_file_name, atomic_file

EPISODES = "episodes"
VERSION = 1
_LARGE = 4096  # bytes of an array that is kept compressed until its episode ends
OBSERVATIONS, ACTIONS = "observations", "actions"
REWARDS, TERMINATIONS, TRUNCATIONS, ABOUT = "rewards", "terminations", "truncations", "about"


class Recording:
    """An agent's episode: what it saw, what it did, and what it got for that."""

    def __init__(self, about: Mapping[str, Any]) -> None:
        self.about = dict(about)
        self._observations: list[Any] = []
        self._actions: list[Any] = []
        self._rewards: list[float] = []
        self._is_terminated = self._is_truncated = False

    def __len__(self) -> int:
        return len(self._actions)

    @property
    def is_over(self) -> bool:
        return self._is_terminated or self._is_truncated

    def act(self, observation: Any, action: Any) -> None:
        # Copied: some environments reuse their arrays.
        self._observations.append(_copy(observation))
        self._actions.append(_copy(action))
        self._rewards.append(0.0)

    def note(self, reward: float, terminated: bool, truncated: bool) -> None:
        """A reward for the last action. In a turn-based game there may be several before the next one."""
        if self._actions:
            self._rewards[-1] += reward
        self._is_terminated, self._is_truncated = terminated, truncated

    def save(self, folder: Path, last_observation: Any) -> Path | None:
        """Write the episode's file; None if there was no step."""
        if not self._actions:
            return None
        about = self.about
        path: Path = folder / EPISODES / about["operator"] / as_file_name(about["agent"]) / _file_name(about)
        with atomic_file(path, mode=0o600) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, rows in self._columns(last_observation):
                _write_column(archive, name, rows)
            _write_column(archive, ABOUT, [json.dumps({"version": VERSION, **about})], is_scalar=True)
        return path

    def _columns(self, last_observation: Any) -> Iterator[tuple[str, Sequence[Any]]]:
        ongoing = [False] * (len(self) - 1)
        yield from _by_part(OBSERVATIONS, [*self._observations, _copy(last_observation)])
        yield from _by_part(ACTIONS, self._actions)
        yield REWARDS, [np.float64(reward) for reward in self._rewards]
        yield TERMINATIONS, [*ongoing, self._is_terminated]
        yield TRUNCATIONS, [*ongoing, self._is_truncated or not self._is_terminated]


def read_episode(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """What is said about an episode, and its columns; ValueError if the file is damaged or of another version."""
    try:
        with np.load(path, allow_pickle=False) as file:
            columns = {name: file[name] for name in file.files}
        about = json.loads(str(columns.pop(ABOUT)))
    except (OSError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path} is not a recorded episode: {error}") from None
    if not isinstance(about, dict) or about.get("version") != VERSION:
        raise ValueError(f"{path} is not a recorded episode of version {VERSION}.")
    return about, _nested(columns)


def episodes_in(folder: Path) -> list[Path]:
    """The files of all recorded episodes, in a fixed order."""
    return sorted((folder / EPISODES).glob("*/*/*.npz"))


def _file_name(about: Mapping[str, Any]) -> str:
    return f"{about['lane']}-{about['episode_index']:06}.npz"


def _copy(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _copy(part) for key, part in value.items()}
    if isinstance(value, (tuple, list)):
        return [_copy(part) for part in value]
    if isinstance(value, str):
        return str(value)
    array = np.array(value)
    return array if array.nbytes < _LARGE else _Packed(array)


class _Packed:
    """A large array, compressed: an hour of Atari would not fit into memory otherwise."""

    def __init__(self, array: Any) -> None:
        self._data = zlib.compress(np.ascontiguousarray(array).tobytes(), 1)
        self._dtype, self._shape = array.dtype, array.shape

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.frombuffer(zlib.decompress(self._data), self._dtype).reshape(self._shape)


def _by_part(name: str, rows: Sequence[Any]) -> Iterator[tuple[str, Sequence[Any]]]:
    """A column for each part of a structured value, named by its path."""
    first = rows[0]
    if isinstance(first, dict):
        for key in first:
            yield from _by_part(f"{name}/{key}", [row[key] for row in rows])
    elif isinstance(first, list):
        for place in range(len(first)):
            yield from _by_part(f"{name}/{place}", [row[place] for row in rows])
    else:
        yield name, rows


def _write_column(archive: zipfile.ZipFile, name: str, rows: Sequence[Any], is_scalar: bool = False) -> None:
    """One array of an npz file, row by row: a column of pictures is never in memory as a whole."""
    is_text = isinstance(rows[0], str)
    dtype = np.asarray(rows if is_text else rows[0]).dtype
    shape = () if is_scalar else (len(rows), *np.shape(rows[0]))
    header = {"descr": npy.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
        npy.write_array_header_2_0(file, header)
        for row in rows:
            file.write(np.asarray(row, dtype=dtype).tobytes())


def _nested(columns: Mapping[str, Any]) -> dict[str, Any]:
    """The reverse: {"observations/image": …} → {"observations": {"image": …}}."""
    nested: dict[str, Any] = {}
    for name, column in columns.items():
        *path, last = name.split("/")
        place = nested
        for key in path:
            place = place.setdefault(key, {})
        place[last] = column
    return nested
