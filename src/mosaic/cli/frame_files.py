"""The file that `mosaic frames` writes: checked before the user waits for a frame."""

import os
from pathlib import Path

from mosaic.cli.verb import BadUsage
from mosaic.model.errors import MosaicError


def check_target(name: str, extension: str, force: bool) -> Path:
    """The path of the file to write. Checks that it can be written before the user waits for a frame."""
    path = Path(name)
    if path.suffix.lower() != extension:
        raise BadUsage(f"'{name}' does not end with {extension}; no other format can be written")
    if not path.parent.is_dir():
        raise BadUsage(f"The folder {path.parent} does not exist. Create it with: mkdir -p {path.parent}")
    if path.is_dir():
        raise BadUsage(f"{path} is a folder. Name a file.")
    if path.exists() and not force:
        raise MosaicError(f"{path} already exists. Choose another name, or overwrite it with --force.")
    if not os.access(path.parent, os.W_OK):
        raise MosaicError(f"You cannot write to {path.parent}. Choose another folder.")
    return path
