"""Files that a node sends home: all regular ones, and what stays is said."""

import os

import pytest

from mosaic.model.rundir import StateRoot
from mosaic.model.ulid import new_ulid
from mosaic.tail.files_home import FilesHome


class Daemon:
    """The publisher's side of a daemon that takes every piece."""

    def __init__(self):
        self.files = {}

    def register(self):
        pass

    def put_file(self, request):
        self.files.setdefault(request.path, b"")
        if request.data:
            self.files[request.path] += request.data
        return len(self.files[request.path])

    def close(self):
        pass


@pytest.fixture
def rundir(tmp_path):
    root = StateRoot(tmp_path)
    root.make()
    rundir = root.run("runs", new_ulid())
    rundir.make()
    return rundir


def test_a_file_whose_name_is_not_utf8_stays_and_all_others_are_sent(rundir):
    (rundir.path / "a.txt").write_bytes(b"a")
    (rundir.path / "z.txt").write_bytes(b"z" * (3 << 20))
    with open(os.fsencode(rundir.path) + b"/m\xff\n.txt", "wb") as file:
        file.write(b"m")
    daemon = Daemon()

    left = FilesHome(rundir, daemon).finish()

    assert {path: len(data) for path, data in daemon.files.items()} == {"a.txt": 1, "z.txt": 3 << 20}
    assert left == "m\\udcff\n.txt: its name is not UTF-8"


def test_links_and_fifos_are_not_sent(rundir, tmp_path):
    (tmp_path / "secret").write_text("secret")
    (rundir.path / "link").symlink_to(tmp_path / "secret")
    (rundir.path / "folder").symlink_to(tmp_path)
    os.mkfifo(rundir.path / "fifo")
    daemon = Daemon()

    assert FilesHome(rundir, daemon).finish() == ""
    assert daemon.files == {}
