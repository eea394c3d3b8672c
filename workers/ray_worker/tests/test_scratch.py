"""The private folder of Ray's files, and the end of Ray's processes."""

import os
import subprocess
import sys
import tempfile

import pytest
from mosaic_sdk.lab import processes
from ray_worker.instance import end_children, environment
from ray_worker.scratch import PREFIX, scratch_folder


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """A short folder in place of /tmp."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        monkeypatch.setattr(tempfile, "tempdir", folder)
        yield folder


def test_the_folder_is_private_and_removed_at_the_end(temporary):
    with scratch_folder() as folder:
        assert os.path.dirname(folder) == temporary
        assert os.stat(folder).st_mode & 0o777 == 0o700

    assert os.listdir(temporary) == []


def test_the_path_leaves_room_for_sockets(tmp_path, monkeypatch):
    long = tmp_path / ("x" * 80)
    long.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(long))

    with scratch_folder() as folder:
        assert len(folder) + 60 <= 107


def test_what_a_killed_run_left_is_removed_and_what_a_live_one_uses_is_not(temporary):
    orphan = os.path.join(temporary, PREFIX + "orphan")
    os.mkdir(orphan)
    open(os.path.join(orphan, "lock"), "w").close()
    new = os.path.join(temporary, PREFIX + "new")  # its lock is not there yet
    os.mkdir(new)

    with scratch_folder() as first, scratch_folder() as second:
        assert sorted(os.listdir(temporary)) == sorted(map(os.path.basename, (new, first, second)))


def test_each_instance_has_a_token_of_its_own():
    assert environment("/a")["RAY_AUTH_TOKEN"] != environment("/a")["RAY_AUTH_TOKEN"]


def test_no_descendant_survives_the_end_of_an_instance():
    before = processes.children()
    processes.subreaper(True)
    # A process that ignores SIGTERM and leaves an orphan behind, as a raylet that was killed does.
    code = "import subprocess, sys; print(subprocess.Popen(['sleep', '600']).pid, flush=True); sys.stdin.read()"
    parent = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    orphan = int(parent.stdout.readline())
    parent.kill()

    end_children(before)

    processes.subreaper(False)
    assert not processes.lives(orphan)
    assert not processes.lives(parent.pid)
