"""Frames of the toy worker: its test picture, shown while there is a viewer."""

import sys
from typing import Any, Optional

from toy_worker.config import ToyConfig
from toy_worker.picture import TestPicture


def show_picture(config: ToyConfig) -> Optional[Any]:
    """The test picture, published when MOSAIC asks for frames; None, with a note on stderr, if numpy is missing."""
    try:
        from mosaic_sdk.fastlane import maybe_wrap_env
    except ImportError as error:
        print(f"toy: no test picture: {error}. Frames need numpy in the worker's environment.", file=sys.stderr)
        return None
    picture = maybe_wrap_env(TestPicture(config.paint_width, config.paint_height))
    picture.reset()
    return picture
