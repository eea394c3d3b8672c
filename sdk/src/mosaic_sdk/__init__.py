"""The MOSAIC SDK for workers. Standard library only, Python 3.9 and newer.

Nothing is imported here, so that a worker loads only the parts it uses:

    from mosaic_sdk import emit
    emit.step(step_index=0, reward=1.0)
"""

import os as _os

with open(_os.path.join(_os.path.dirname(__file__), "VERSION")) as _file:
    __version__ = _file.read().strip()
