"""Memory that was freed is given back to the system."""

import subprocess
import sys

# Every second block is freed last: the heap then ends with a used one, and nothing is given back by itself.
CODE = """
import asyncio, ctypes
from mosaic.daemon.freed_memory import keep_giving_back
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
blocks = [libc.malloc(60_000) for _ in range(1000)]
for block in blocks:
    ctypes.memset(block, 1, 60_000)

def rss_mb():
    return int(open("/proc/self/statm").read().split()[1]) * 4096 / 1e6

async def main():
    for block in blocks[:-1]:
        libc.free(block)
    before = rss_mb()
    task = asyncio.create_task(keep_giving_back(0.01))
    await asyncio.sleep(0.5)
    print(before - rss_mb())
    task.cancel()

asyncio.run(main())
"""


def test_memory_that_was_freed_is_given_back():
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, timeout=30)

    assert done.returncode == 0, done.stderr
    assert float(done.stdout) > 30
