"""Limits of open files: the daemon's own, those of its workers, and what happens when they are reached."""

import os
import resource
import subprocess
import sys

from mosaic.model.states import RunState as S

FIND = """
import resource
from mosaic.dispatch.descriptors import find_shortage, raise_limit
soft = raise_limit()
assert resource.getrlimit(resource.RLIMIT_NOFILE) == (200, 200), resource.getrlimit(resource.RLIMIT_NOFILE)
files = [open("/dev/null") for _ in range(100)]
print(soft, repr(find_shortage()))
resource.setrlimit(resource.RLIMIT_NOFILE, (110, 200))
print(find_shortage())
"""
PRINT_LIMITS = "import resource; print(*resource.getrlimit(resource.RLIMIT_NOFILE))"


def test_spare_descriptors_are_counted_and_the_limit_is_raised():
    def limit():
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 200))

    done = subprocess.run([sys.executable, "-c", FIND], preexec_fn=limit, capture_output=True, text=True)

    assert done.stdout.splitlines() == [
        "64 ''",
        "free file descriptors: too many open files in the daemon (see: ulimit -n)",
    ], done.stderr


def test_a_run_waits_for_descriptors_with_a_reason_and_then_starts(lab):
    pid = lab.daemon_pid()
    before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    in_use = max(map(int, os.listdir(f"/proc/{pid}/fd"))) + 1
    try:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (in_use + 8, before[1]))
        run = lab.submit(steps=5)
        waiting = lab.wait_until_run(run, lambda run: bool(run.waiting_for), "waits")
    finally:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, before)
    end = lab.wait_until_over(run)

    assert waiting.state is S.INIT
    assert waiting.waiting_for.startswith("free file descriptors: too many open files")
    assert (end.state, end.reason) == (S.TERMINATED, "")


def test_the_daemon_may_open_more_files_than_its_workers(lab, tmp_path):
    script = tmp_path / "limits.py"
    script.write_text(PRINT_LIMITS)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    low = min(soft, 512)

    # A daemon that was started in a shell with `ulimit -Sn 512`.
    lab.stop_daemon()
    resource.setrlimit(resource.RLIMIT_NOFILE, (low, hard))
    try:
        lab.restart_daemon()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    run = lab.submit_worker({"script": str(script)})
    lab.wait_until_over(run)

    assert lab.text(run).split() == [str(low).encode(), str(hard).encode()]
    assert resource.prlimit(lab.daemon_pid(), resource.RLIMIT_NOFILE) == (min(hard, 1 << 20), hard)
