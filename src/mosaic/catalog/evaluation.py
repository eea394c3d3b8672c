"""What `client.evaluate` and `mosaic eval FILE` submit: a trainer config made from an evaluation script.

The script is the setting `script` of the eval worker. Operators that need the environment of another worker are
repeated in `metadata.operators`, because the daemon finds their runs, checkpoints and commands (ADR 18).
"""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mosaic.catalog.request import RunOptions, rename_fields, trainer_config

if TYPE_CHECKING:
    from mosaic_sdk.operators.script import EvalScript

EVAL_WORKER = "eval"
EVAL_MODULE = "eval_worker.cli"
SCRIPT, MANUAL = "script", "manual"  # modes of an evaluation
MULTI_AGENT = (
    "pettingzoo/",
    "mpe2/",
    "MosaicMultiGrid-",
)  # ids of environments that have several agents, whatever the lanes say
BEST = "best"  # instead of the path of a checkpoint
MAX_NAME = 120
FIELDS = {  # fields of the trainer config, as the author of a script writes them
    "metadata.operators.": "operators.",
    "metadata.worker.config.script.": "",
    "metadata.worker.config.": "",
}
_PASSED_ON = ("kind", "run", "checkpoint", "worker", "settings")


def evaluation_config(
    script: "EvalScript", mode: str = SCRIPT, options: RunOptions | None = None, *, is_remote: bool = False
) -> dict[str, Any]:
    """The trainer config that plays `script`.

    `is_remote`: the daemon is on another machine, so relative paths of checkpoints cannot be made absolute here.
    """
    worker = {
        "module": EVAL_MODULE,
        "name": EVAL_WORKER,
        "commands": True,
        "config": {"script": script.to_dict(), "mode": mode},
    }
    config = trainer_config(worker, options or RunOptions())
    config["metadata"].setdefault("run_name", (script.name or f"eval of {script.env['id']}")[:MAX_NAME])
    operators = {
        name: _entry(asked, script.env if _owns_env(name, script) else None, is_remote)
        for name, asked in script.resolved_operators.items()
    }
    if operators:
        config["metadata"]["operators"] = operators
    return config


def for_author(message: str) -> str:
    """An error about the trainer config of an evaluation, in the words of its script."""
    return rename_fields(message, FIELDS)


def _entry(asked: Mapping[str, Any], env: Mapping[str, Any] | None, is_remote: bool) -> dict[str, Any]:
    """An entry of `metadata.operators`; `env` is the environment that its worker creates itself."""
    entry = {key: asked[key] for key in _PASSED_ON if asked.get(key)}
    path = os.path.expanduser(str(entry.get("checkpoint", "")))
    # A path that does not exist here may be one inside the run's folder.
    if path and path != BEST and not is_remote and os.path.exists(path):
        entry["checkpoint"] = os.path.abspath(path)
    return {**entry, "env": dict(env)} if env else entry


def _owns_env(name: str, script: "EvalScript") -> bool:
    """Whether the operator's worker creates the environment itself: not where it plays one of several agents."""
    seats = [operator for lane in script.lanes or () for operator in lane.get("agents", {}).values()]
    is_alone = name not in seats and not script.env["id"].startswith(MULTI_AGENT)
    return bool(script.operators[name].get("owns_env")) and is_alone
