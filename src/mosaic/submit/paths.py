"""Paths in a config: output paths must stay in the run's folder, input paths must exist and are resolved."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mosaic.submit.section import Section

WRITE_FIELDS = (
    *("tensorboard_dir", "checkpoint_dir", "checkpoints_dir", "video_dir", "videos_dir", "log_dir", "logs_dir"),
    *("model_dir", "save_dir", "output_dir", "results_dir", "run_dir", "telemetry_dir", "wandb_dir"),
    *("save_path", "output_path"),
)
READ_FIELDS = (
    "policy_path",
    "checkpoint_path",
    "config_path",
    "model_path",
    "resume_path",
    "load_path",
    "upstream_path",
)


def check_writes(config: Section, folder: Path) -> None:
    """Refuse a path that leads out of `folder`: an absolute one, or one with `..` or through a link."""
    inside = Path(os.path.realpath(folder))
    for section in _places(config):
        for name in WRITE_FIELDS:
            path = _read_path(section, name)
            # A library may expand these after this check.
            if path.startswith("~") or "$" in path:
                raise section.bad(name, f"'{path}' contains ~ or $. Use a path inside the run's folder.")
            if path and not Path(os.path.realpath(inside / path)).is_relative_to(inside):
                raise section.bad(name, f"'{path}' is outside the run's folder. A run can write only inside it.")


def resolve_reads(config: Section) -> None:
    """Replace every input path by its real path; each must exist."""
    for section in _places(config):
        for name in READ_FIELDS:
            path = _read_path(section, name)
            if path:
                section.values[name] = resolve(section, name, path)


def resolve(section: Section, name: str, path: str) -> str:
    """The real path of a file or folder that exists and can be read."""
    _refuse_nul(section, name, path)
    full = os.path.expanduser(path)
    if not os.path.isabs(full):
        raise section.bad(
            name, f"'{path}' is relative, and the daemon does not know your working directory. Use an absolute path."
        )
    real = os.path.realpath(full)
    if not os.path.exists(real):
        raise section.bad(name, f"'{path}' does not exist.")
    if not (os.path.isfile(real) or os.path.isdir(real)):
        raise section.bad(name, f"'{path}' is not a file or directory.")
    if not os.access(real, os.R_OK):
        raise section.bad(name, f"'{path}' cannot be read. Check its permissions.")
    return real


def _places(config: Section) -> Iterator[Section]:
    """The config itself, `extras` and `extras.algo_params`."""
    yield config
    extras = config.section("extras")
    yield extras
    parameters: Any = extras.values.get("algo_params")
    if isinstance(parameters, dict):
        yield Section(parameters, extras.of("algo_params"))


def _read_path(section: Section, name: str) -> str:
    path = section.text(name)
    _refuse_nul(section, name, path)
    return path


def _refuse_nul(section: Section, name: str, path: str) -> None:
    if "\0" in path:
        raise section.bad(name, "contains a NUL character, which is not allowed in a path.")
