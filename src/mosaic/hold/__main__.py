"""The holder's entry: PYTHON -I -S hold/__main__.py --run-dir DIR --attempt N. Standard library only. See holder.py."""

import gc
import os
import sys


def main() -> int:
    # A script is compiled at every start and a module only once: this file stays small and everything else is imported.
    sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    # Nothing that is imported is garbage; looking for some takes a tenth of the start. The holder turns it on again.
    gc.disable()
    from mosaic.hold import holder

    return holder.main(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
