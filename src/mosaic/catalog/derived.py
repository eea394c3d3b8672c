"""What `mosaic resume` and `mosaic eval RUN` submit: only what differs from the parent run; the daemon completes it."""

import os
from collections.abc import Mapping
from typing import Any

from mosaic.catalog.request import RunOptions, trainer_config

RESUME, EVAL = "resume", "eval"
BEST = "best"  # instead of the path of a checkpoint


def derived_config(
    parent: str,
    relation: str,
    settings: dict[str, Any],
    options: RunOptions,
    checkpoint: str = "",
    evaluation: Mapping[str, Any] | None = None,
    *,
    is_remote: bool = False,
) -> dict[str, Any]:
    """`checkpoint`: empty for the newest. `evaluation`: episodes, seed and video; None leaves one out.

    `is_remote`: the daemon is on another machine, so a path cannot be completed here.
    """
    config = trainer_config({"config": settings}, options)
    config["metadata"] |= {"parent_run_id": parent, "relation": relation}
    if checkpoint:
        is_complete = checkpoint == BEST or is_remote
        path = checkpoint if is_complete else os.path.abspath(os.path.expanduser(checkpoint))
        config["metadata"]["checkpoint"] = path
    if evaluation is not None:
        given = {name: value for name, value in evaluation.items() if value is not None}
        config["metadata"]["evaluation"] = given
    return config
