"""What `mosaic run --script` submits: a file, the environment that it runs in, and its config."""

import os
from collections.abc import Sequence
from typing import Any

from mosaic.catalog.answers import Answers
from mosaic.catalog.common import with_common
from mosaic.catalog.placement import put_in_place
from mosaic.catalog.schema import SCRIPTS_KEY, Schema
from mosaic.catalog.workers import Catalog
from mosaic.model.errors import MosaicError
from mosaic.model.rundir import StateRoot


def script_section(
    script: str, env_of: str, settings: dict[str, Any], arguments: Sequence[str], root: StateRoot
) -> dict[str, Any]:
    """`metadata.worker` for a script, which is a file or one that the worker `env_of` ships."""
    path, environment, config = _place(script, env_of, settings, root)
    worker: dict[str, Any] = {"script": path, "arguments": list(arguments), "config": config}
    return {**worker, "variant": environment} if environment else worker


def _place(script: str, env_of: str, settings: dict[str, Any], root: StateRoot) -> tuple[str, str, dict[str, Any]]:
    """The file, the environment (empty: the platform's own) and the config."""
    if not env_of:
        return os.path.abspath(os.path.expanduser(script)), "", settings
    name, _, variant = env_of.partition("@")
    worker = Catalog(root).find(name, variant)
    schema = Answers(root.answers).of(worker).schema
    environment = "" if worker.environment.is_own else worker.environment.name
    return _find_script(script, env_of, schema), environment, put_in_place(settings, with_common(schema))


def _find_script(script: str, env_of: str, schema: Schema) -> str:
    """The file of this name, or else the script of this name that the worker ships."""
    shipped = schema.get(SCRIPTS_KEY, {})
    path = os.path.expanduser(script)
    if os.path.exists(path):
        return os.path.abspath(path)
    if script in shipped:
        return str(shipped[script]["path"])
    ships = f"{env_of} ships: {', '.join(shipped)}" if shipped else f"{env_of} ships no scripts"
    raise MosaicError(f"The file {script} does not exist, and {ships}.")
