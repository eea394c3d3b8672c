"""What a caller passes to the client, as the requests to the daemon carry it: JSON text and names of states."""

import json
import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from mosaic.model.errors import BadCommand, MosaicError
from mosaic.model.states import RunState
from mosaic.wire.convert import state_to_wire


def config_text(config: Mapping[str, Any] | str | Path) -> str:
    if isinstance(config, Path):
        try:
            return config.read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise MosaicError(f"{config} cannot be read: {error}") from None
    try:
        return config if isinstance(config, str) else json.dumps(config, default=_plain)
    except (TypeError, ValueError) as error:
        raise MosaicError(f"The config cannot be written as JSON: {error}.") from None


def command_text(command: Mapping[str, Any]) -> str:
    try:
        return json.dumps(dict(command), default=_plain)
    except (TypeError, ValueError) as error:
        raise BadCommand(f"The command cannot be written as a JSON object: {error}.") from None


def states_to_wire(states: Collection[RunState | str]) -> list[str]:
    """States, or their names; one alone is accepted as well."""
    try:
        return [state_to_wire(RunState(state)) for state in ((states,) if isinstance(states, str) else states)]
    except ValueError as error:
        raise MosaicError(f"{error}. The states are {', '.join(RunState)}.") from None


def _plain(value: Any) -> Any:
    """What scripts pass beside JSON's own types: paths, and numpy's numbers."""
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if hasattr(value, "item"):
        return value.item()
    raise TypeError(f"{value!r} is not a JSON value")
