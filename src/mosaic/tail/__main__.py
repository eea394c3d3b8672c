"""The tailer's entry point: python -m mosaic.tail."""

import sys

from mosaic.tail.tailer import main

sys.exit(main())
