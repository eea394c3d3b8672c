import subprocess
import sys
import threading

import pytest

from mosaic.gui.hub.threads import DaemonThreads


def test_results_and_errors_reach_the_caller():
    threads = DaemonThreads()

    assert threads.submit(lambda a, b: a + b, 1, b=2).result(10) == 3
    with pytest.raises(ZeroDivisionError):
        threads.submit(lambda: 1 / 0).result(10)
    threads.shutdown()


def test_work_beyond_the_number_of_threads_waits_and_is_done():
    threads, door = DaemonThreads(most=2), threading.Event()
    blocked = [threads.submit(door.wait, 10) for _ in range(2)]
    waiting = [threads.submit(int, i) for i in range(20)]

    assert not any(future.done() for future in waiting)
    door.set()

    assert [future.result(10) for future in blocked] == [True, True]
    assert [future.result(10) for future in waiting] == list(range(20))
    threads.shutdown()


def test_a_process_ends_while_a_thread_hangs():
    code = (
        "import threading; from mosaic.gui.hub.threads import DaemonThreads; "
        "started = threading.Event(); DaemonThreads().submit(lambda: (started.set(), threading.Event().wait())); "
        "started.wait()"
    )

    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 0
