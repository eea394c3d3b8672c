"""The holder's entry point: PYTHON -I -S hold/__main__.py --run-dir DIR --attempt N. See holder.py."""

import gc
import os
import sys


def main() -> int:
    # Python compiles a script at every start and a module only once: keep this file small and import the rest.
    sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    # Imports leave no garbage; collecting it anyway takes a tenth of the start. The holder turns this on again.
    gc.disable()
    from mosaic.hold import holder

    return holder.main(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
