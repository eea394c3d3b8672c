"""The user's folders, as the XDG Base Directory Specification names them."""

import os
from pathlib import Path


def xdg_folder(variable: str, default: str) -> Path:
    """The folder in an XDG variable, or `default` in the home folder. A relative path is ignored, as XDG requires."""
    folder = os.environ.get(variable, "")
    return Path(folder) if os.path.isabs(folder) else Path.home() / default
