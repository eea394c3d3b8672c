"""Recorded episodes as Minari datasets: python -m eval_worker --export-demonstrations RUN_FOLDER

The datasets are in RUN_FOLDER/demonstrations, one per operator and agent; datasets.json there lists them. To load one:

    MINARI_DATASETS_PATH=RUN_FOLDER/demonstrations python -c 'import minari; minari.load_dataset("…")'

It may be repeated, and also be run for a run that was killed: the datasets are made of all episodes that have a file.
"""

import copy
import json
import os
import re
import shutil
import sys
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from mosaic_sdk.cli import DONE, USAGE
from mosaic_sdk.config import ConfigError
from mosaic_sdk.files import write_json

from eval_worker.demonstrations import (
    ACTIONS,
    OBSERVATIONS,
    REWARDS,
    TERMINATIONS,
    TRUNCATIONS,
    episodes_in,
    read_episode,
)

FOLDER = "demonstrations"
INDEX = "datasets.json"
_PATH_VARIABLE = "MINARI_DATASETS_PATH"
Episode = tuple[dict[str, Any], dict[str, Any]]


def main(arguments: Sequence[str]) -> int:
    """Prints {"datasets": [{id, operator, agent, episodes, steps}, …]}."""
    if len(arguments) != 1:
        print("usage: python -m eval_worker --export-demonstrations RUN_FOLDER", file=sys.stderr)
        return USAGE
    folder = Path(arguments[0]) / FOLDER
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Minari's advice to authors of public datasets
            found = export(folder)
    except ConfigError as error:
        print(error, file=sys.stderr)
        return USAGE
    print(json.dumps({"datasets": found}))
    return DONE


def export(folder: Path) -> list[dict[str, Any]]:
    """Make the datasets of a run; ConfigError if nothing was recorded."""
    groups = _read_groups(folder)
    if not groups:
        raise ConfigError(f"There are no recorded episodes in {folder}.")
    # All datasets are complete before any of them replaces an older one.
    scratch = Path(tempfile.mkdtemp(prefix=".export-", dir=folder))
    try:
        made = [_make(scratch, *episodes) for episodes in _by_dataset(groups)]
        for dataset in made:
            _replace(scratch / dataset["id"], folder / dataset["id"])
        for extra in scratch.glob("*/*.json"):
            os.replace(extra, folder / extra.relative_to(scratch))
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    write_json(folder / INDEX, {"version": 1, "datasets": made}, indent=2)
    return made


def _read_groups(folder: Path) -> dict[tuple[str, str], list[Episode]]:
    groups: dict[tuple[str, str], list[Episode]] = {}
    for path in episodes_in(folder):
        try:
            about, columns = read_episode(path)
        except ValueError as error:
            print(f"mosaic: skipped: {error}", file=sys.stderr)
            continue
        groups.setdefault((about["operator"], about["agent"]), []).append((about, columns))
    return groups


def _by_dataset(groups: Mapping[tuple[str, str], list[Episode]]) -> list[tuple[str, list[Episode]]]:
    """An id for each group. The agent is part of it only where an operator played several."""
    operators = [operator for operator, _ in groups]
    named = []
    for (operator, agent), episodes in groups.items():
        name = operator if operators.count(operator) == 1 else f"{operator}-{agent}"
        named.append((f"{_slug(episodes[0][0]['env']['id'])}/{_slug(name)}-v0", episodes))
    return named


def _make(scratch: Path, dataset_id: str, episodes: list[Episode]) -> dict[str, Any]:
    import minari

    os.environ[_PATH_VARIABLE] = str(scratch)
    about = episodes[0][0]
    texts = [columns[OBSERVATIONS] for _, columns in episodes]
    dataset = minari.create_dataset_from_buffers(
        dataset_id,
        [_buffer(place, *episode) for place, episode in enumerate(episodes)],
        env=_spec(about["env"]),
        observation_space=_space(about["observation_space"], texts),
        action_space=_space(about["action_space"], [columns[ACTIONS] for _, columns in episodes]),
        algorithm_name=about["operator"],
        description=f"Recorded by MOSAIC: {about['operator']} as {about['agent']} in {about['env']['id']}.",
        jpeg_encoding=False,  # lossy: observations would not be the recorded ones
    )
    steps = sum(len(columns[REWARDS]) for _, columns in episodes)
    loaded = minari.load_dataset(dataset_id)
    if (loaded.total_episodes, loaded.total_steps) != (len(episodes), steps) or dataset.total_steps != steps:
        raise RuntimeError(f"The dataset {dataset_id} does not hold the {steps} recorded steps.")
    return {
        "id": dataset_id,
        "operator": about["operator"],
        "agent": about["agent"],
        "episodes": len(episodes),
        "steps": steps,
    }


def _buffer(place: int, about: Mapping[str, Any], columns: Mapping[str, Any]) -> Any:
    from minari.data_collector import EpisodeBuffer

    return EpisodeBuffer(
        id=place,
        seed=about["seed"],
        observations=_structured(about["observation_space"], columns[OBSERVATIONS]),
        actions=_structured(about["action_space"], columns[ACTIONS]),
        rewards=columns[REWARDS].tolist(),
        terminations=columns[TERMINATIONS].tolist(),
        truncations=columns[TRUNCATIONS].tolist(),
    )


def _structured(space: Mapping[str, Any], column: Any) -> Any:
    """A column as Minari wants it: dictionaries and tuples of arrays, texts as a list."""
    if space["type"] == "Dict":
        return {key: _structured(part, column[key]) for key, part in space["spaces"].items()}
    if space["type"] == "Tuple":
        return tuple(_structured(part, column[str(place)]) for place, part in enumerate(space["spaces"]))
    return [str(text) for text in column] if space["type"] == "Text" else column


def _space(described: Mapping[str, Any], columns: Sequence[Any]) -> Any:
    """A Gymnasium space of a description; a text's length and characters are those of the recorded ones."""
    from gymnasium import spaces
    from mosaic_sdk.operators.arrays import decode

    kind = described["type"]
    if kind == "Dict":
        parts = described["spaces"].items()
        return spaces.Dict({key: _space(part, [column[key] for column in columns]) for key, part in parts})
    if kind == "Tuple":
        parts = enumerate(described["spaces"])
        return spaces.Tuple([_space(part, [column[str(place)] for column in columns]) for place, part in parts])
    if kind == "Discrete":
        return spaces.Discrete(described["n"], start=described.get("start", 0))
    if kind == "Box":
        shape, dtype = tuple(described["shape"]), np.dtype(described["dtype"])
        low, high = (np.full(shape, decode(described[name]), dtype=dtype) for name in ("low", "high"))
        return spaces.Box(low, high, shape=shape, dtype=dtype.type)
    if kind == "MultiDiscrete":
        return spaces.MultiDiscrete(np.asarray(described["nvec"]))
    if kind == "MultiBinary":
        return spaces.MultiBinary(described["n"])
    texts = [str(text) for column in columns for text in column]
    return spaces.Text(
        max(1, max(map(len, texts), default=1)), min_length=0, charset="".join(sorted(set("".join(texts)) | {" "}))
    )


def _spec(env: Mapping[str, Any]) -> Any:
    """The registration, with which Minari recreates an environment; None where it could not."""
    from eval_worker.envs.choice import EnvChoice
    from eval_worker.envs.making import find_spec, is_gymnasium

    choice = EnvChoice.parse(env)
    if choice.wrappers or not is_gymnasium(choice.id):
        return None
    try:
        spec = copy.deepcopy(find_spec(choice.id))
    except ConfigError:
        return None  # its module is not installed here; the data is complete without it
    spec.kwargs = {**spec.kwargs, **choice.kwargs}
    return None if callable(spec.entry_point) else spec


def _replace(new: Path, old: Path) -> None:
    old.parent.mkdir(parents=True, exist_ok=True)
    if old.exists():
        shutil.rmtree(old)
    os.replace(new, old)


def _slug(text: str) -> str:
    return re.sub(r"[^\w-]+", "-", text.lower()).strip("-")
