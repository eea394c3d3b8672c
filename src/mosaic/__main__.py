"""The command `mosaic`: checks that the SDK is installed, then runs the command line."""

import gc
import sys
from importlib.util import find_spec

NO_SDK = """\
mosaic: The package mosaic-sdk is not installed. It is one of MOSAIC's own wheels: install it from where mosaic-rl \
came from, not by name from a package index.
  from wheels:     pip install dist/*.whl
  in a checkout:   pip install -e . -e sdk -e workers/toy_worker"""


# Objects between two collections. Python's 700 makes a command spend a sixth of its time on collecting nothing, while
# it imports; a command that runs for long still collects.
COLLECT_EVERY = 50_000


def main() -> int:
    gc.set_threshold(COLLECT_EVERY)
    if find_spec("mosaic_sdk") is None:
        print(NO_SDK, file=sys.stderr)
        return 1
    from mosaic.cli.main import main as run

    return run()


if __name__ == "__main__":
    sys.exit(main())
