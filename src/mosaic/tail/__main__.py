"""The tailer's entry point: python -m mosaic.tail."""

import gc
import sys


def main() -> int:
    # Imports leave no garbage; collecting it anyway takes a seventh of the start.
    gc.disable()
    from mosaic.tail import tailer

    gc.freeze()
    gc.enable()
    return tailer.main()


if __name__ == "__main__":
    sys.exit(main())
