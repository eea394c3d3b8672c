"""What the tailer's start must not do: every run waits for one."""

import subprocess
import sys

LATER = ("mosaic.model.run", "mosaic.client", "mosaic.registry", "numpy", "rich")
LISTS = f"import mosaic.tail.tailer, sys; print([name for name in {LATER!r} if name in sys.modules])"
STARTS = """\
import contextlib, gc, os, sys
from mosaic.tail.__main__ import main
before, sys.stderr = sum(one["collections"] for one in gc.get_stats()), open(os.devnull, "w")
with contextlib.suppress(SystemExit):  # there is no --run-dir
    main()
print(sum(one["collections"] for one in gc.get_stats()) - before < 3, gc.isenabled())
"""


def printed(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_the_tailer_imports_only_what_it_uses():
    assert printed(LISTS) == "[]"


def test_the_tailer_collects_garbage_but_not_while_it_imports():
    assert printed(STARTS) == "True True"
