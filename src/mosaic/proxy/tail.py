"""The tailer's entry point under its old name.

The holder of a run that an older version started restarts its tailer as `python -m mosaic.proxy.tail`,
and the daemon drains the spool of such a run in the same way when its holder has died.
"""

import sys

from mosaic.tail.tailer import main

if __name__ == "__main__":
    sys.exit(main())
