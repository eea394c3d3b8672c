"""MOSAIC: any reinforcement-learning library, each in its own process and environment, under one daemon."""

import os as _os

with open(_os.path.join(_os.path.dirname(__file__), "VERSION")) as _file:
    __version__ = _file.read().strip()
