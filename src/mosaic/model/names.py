"""Names that become the names of files and folders, checked here and nowhere else.

    envs/<worker>[@<variant>]/     a worker's name is that of its entry point, so a package chooses it
    requirements/<variant>.txt     in a worker's folder
    operators/<operator>.json      in a run's folder
    experiments                    have names of the same form

Run ids are ULIDs (model/ulid.py), and areas are those of model/rundir.py.
"""

import re

VALID = "Use letters, digits, '_', '.' and '-', with a letter or digit first, and at most 100 bytes."
_LONGEST = 100  # bytes; NAME@VARIANT with the prefix of an unfinished folder stays below the 255 of a file name
_WORKER = re.compile(r"\w[\w.-]*")
_OPERATOR = re.compile(r"[A-Za-z0-9_.-]{1,40}")


def is_worker_name(text: str) -> bool:
    """Whether it can be the name of a worker, or of a variant."""
    return _WORKER.fullmatch(text) is not None and len(text.encode()) <= _LONGEST


def is_environment_name(text: str) -> bool:
    """Whether it is WORKER or WORKER@VARIANT, and so the name of a folder in `envs/`."""
    name, at, variant = text.partition("@")
    return is_worker_name(name) and (not at or is_worker_name(variant))


def is_operator_name(text: str) -> bool:
    return _OPERATOR.fullmatch(text) is not None and bool(text.strip("."))  # "." and ".." are folders
