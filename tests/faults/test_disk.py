"""A full disk: it is shown, nothing is lost, and the run continues automatically when there is space."""

import ctypes
import os

import pytest
from lab import Lab, wait_until

from mosaic.model.states import RunState

S = RunState
LIBC = ctypes.CDLL(None, use_errno=True)


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 24 MB under the state root."""
    if os.getuid() != 0:
        pytest.skip("only root can mount a small file system")
    home = tmp_path / "h"
    home.mkdir()
    if LIBC.mount(b"tmpfs", os.fsencode(home), b"tmpfs", 0, b"size=24m"):
        pytest.skip("mounting is not allowed here")
    yield home
    LIBC.umount2(os.fsencode(home), 2)


def test_a_full_disk_is_shown_and_everything_is_stored_when_there_is_space(small_disk, tmp_path):
    lab = Lab(small_disk)
    try:
        run = lab.submit(steps=3_000, rate=1_000, metrics_every=0, record=str(tmp_path / "record"))
        lab.wait_until_run(run, lambda now: now.summary.steps > 200, "200 steps")

        ballast = small_disk / "ballast"
        with open(ballast, "wb", buffering=0) as file:
            try:
                while file.write(bytes(65536)):
                    pass
            except OSError:
                pass
        full = lab.wait_until_run(run, lambda now: "full" in now.telemetry.lower(), "the note about the disk")
        ballast.unlink()
        end = lab.wait_until_over(run)

        assert "disk" in full.telemetry.lower()
        steps = [step["step_index"] for step in lab.events(run, "step")]
        gaps = [event for event in lab.events(run, "lifecycle") if event["event"] == "telemetry_gap"]
        lost = sum(gap["payload"]["lines"] for gap in gaps)
        assert end.state is S.TERMINATED
        assert steps == sorted(set(steps))
        assert len(steps) + lost >= 3_000
    finally:
        lab.close()


def fill(home):
    """Fill the file system to its last byte; returns the file."""
    ballast = home / "ballast"
    with open(ballast, "ab", buffering=0) as file:
        for size in (65536, 4096, 1):
            try:
                while file.write(bytes(size)):
                    pass
            except OSError:
                pass
    return ballast


def test_runs_are_cancelled_and_deleted_and_a_daemon_starts_on_a_full_disk(small_disk):
    lab = Lab(small_disk)
    try:
        over = lab.submit("over", steps=3)
        lab.wait_until_over(over)
        live = [lab.submit(f"live {n}", steps=1_000_000, rate=100, metrics_every=0) for n in range(2)]
        for run in live:
            lab.wait_for(run, S.EXECUTING)
        waiting = lab.submit("waiting", resources={"cpus": 32}, steps=1)
        fill(small_disk)

        lab.client.cancel_run(waiting.run_id)
        lab.client.cancel_run(live[0].run_id)
        ends = [lab.wait_until_over(run, timeout_s=30) for run in (waiting, live[0])]
        fill(small_disk)
        lab.kill_daemon()
        fill(small_disk)
        lab.restart_daemon()
        adopted = lab.client.get_run(live[1].run_id)
        fill(small_disk)
        for run in (over, *ends):
            lab.client.delete_run(run.run_id)
        left = lab.client.list_runs().runs

        assert [end.state for end in ends] == [S.CANCELLED, S.CANCELLED]
        assert adopted.state is S.EXECUTING
        assert [run.run_id for run in left] == [live[1].run_id]
        assert not lab.rundir(over).path.exists()
        fill(small_disk)
        lab.client.shutdown(kill_runs=True)
        wait_until(lambda: not lab.processes())
    finally:
        (small_disk / "ballast").unlink(missing_ok=True)
        lab.close()
