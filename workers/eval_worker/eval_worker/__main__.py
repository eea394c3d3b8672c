"""python -m eval_worker: the same as python -m eval_worker.cli."""

import sys

from eval_worker.cli import main

sys.exit(main())
