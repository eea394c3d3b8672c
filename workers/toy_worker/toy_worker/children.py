"""Child processes that outlive the worker, hidden from it in every possible way."""

import os
import sys
import time

from toy_worker.config import ToyConfig

_LIFE_S = 3600  # a test that fails must not leave them forever


def leave_children(config: ToyConfig) -> None:
    """Start `fork_children` of them, or one if only a way to hide is requested."""
    hides = config.double_fork or config.setsid or config.clear_environment or bool(config.rename_process)
    for _ in range(config.fork_children or int(hides)):
        pid = os.fork()
        if pid == 0:
            _live_on(config)
        if config.double_fork:
            os.waitpid(pid, 0)  # the intermediate process


def _live_on(config: ToyConfig) -> None:
    """The body of the child; it never returns."""
    try:
        if config.double_fork and os.fork():
            os._exit(0)
        if config.setsid:
            os.setsid()
        if config.rename_process:
            with open("/proc/self/comm", "w") as comm:
                comm.write(config.rename_process[:15])
        if config.clear_environment:
            _exec_without_environment(config)
        time.sleep(_LIFE_S)
    finally:
        os._exit(0)


def _exec_without_environment(config: ToyConfig) -> None:
    # The run's id is in argv, so that a test can find the process.
    script = f"import time; time.sleep({_LIFE_S})"
    os.execve(sys.executable, [sys.executable, "-c", script, f"toy-child-of-{config.run_id}"], {})
