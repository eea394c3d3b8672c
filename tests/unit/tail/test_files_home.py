"""What a node sends home: everything that can be sent, and the names of the rest."""

import os

import pytest

from mosaic.daemon.incoming import put_file
from mosaic.model.durable import write_json
from mosaic.model.rundir import StateRoot
from mosaic.model.ulid import new_ulid
from mosaic.tail.files_home import FilesHome
from mosaic.tail.publish import CALL_LIMIT_S, Publisher
from mosaic.wire import mosaic_pb2 as pb

RUN = new_ulid()


def run_in(folder):
    root = StateRoot(folder)
    root.make()
    rundir = root.run("runs", RUN)
    rundir.make()
    write_json(rundir.launch, {"run_id": RUN, "attempt": 1, "home": True})
    return rundir


class Home:
    """A publisher whose daemon is this process."""

    def __init__(self, rundir):
        self.rundir = rundir

    def register(self):
        pass

    def close(self):
        pass

    def put_file(self, request):
        return put_file(self.rundir, request)


@pytest.fixture
def node(tmp_path):
    return run_in(tmp_path / "node")


@pytest.fixture
def home(tmp_path):
    return run_in(tmp_path / "home")


def test_a_name_that_is_no_text_keeps_no_other_file_from_being_sent(node, home):
    for name in (b"a", b"checkpoints/b\xff", b"c\xff", b"checkpoints/d"):
        with open(os.path.join(os.fsencode(node.path), name), "wb") as file:
            file.write(name)

    left = FilesHome(node, Home(home)).finish()

    assert (home.path / "a").read_bytes() == b"a"
    assert (home.checkpoints / "d").read_bytes() == b"checkpoints/d"
    assert set(left.split("; ")) == {
        "c\ufffd: its name is not UTF-8",
        "checkpoints/b\ufffd: its name is not UTF-8",
    }
    pb.ReportRunRequest(left_behind=left)  # can be said


def test_links_and_special_files_of_a_worker_are_not_sent(node, home, tmp_path):
    (tmp_path / "secret").write_text("secret")
    (node.path / "link").symlink_to(tmp_path / "secret")
    (node.path / "folder").symlink_to(tmp_path)
    os.mkfifo(node.path / "fifo")
    (node.path / "zero").symlink_to("/dev/zero")
    (node.path / "a").write_text("a")

    assert FilesHome(node, Home(home)).finish() == ""
    assert {path.name for path in home.path.iterdir() if path.is_file()} == {"a"}


def test_the_limit_of_a_call_grows_with_the_file_that_the_daemon_reads_again(node, monkeypatch):
    limits = []

    class Stub:
        def PutFile(self, request, timeout, metadata):
            limits.append(timeout)
            return pb.PutFileReply(next_offset=0)

    publisher = Publisher(node, None)
    monkeypatch.setattr(publisher, "_connect", Stub)
    for size in (0, 1 << 40):
        publisher.put_file(pb.PutFileRequest(size=size))

    assert limits[0] == CALL_LIMIT_S
    assert limits[1] > 3600
