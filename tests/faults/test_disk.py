"""A full disk: it is shown, nothing is lost, and the run continues automatically when there is space."""

import ctypes
import os

import pytest
from lab import Lab

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
