"""Files from nodes: whole or not at all, resumable, and never outside the run's folder."""

import asyncio
import hashlib
import os
import threading

import pytest

from mosaic.daemon import incoming
from mosaic.daemon.incoming import IncomingFiles, put_file
from mosaic.dispatch.live_runs import LiveRuns
from mosaic.model.durable import write_json
from mosaic.model.errors import BadConfig, NotAllowed, StoreUnavailable
from mosaic.model.rundir import StateRoot
from mosaic.model.ulid import new_ulid
from mosaic.wire import mosaic_pb2 as pb

DATA = bytes(range(256)) * 40


@pytest.fixture
def rundir(tmp_path):
    root = StateRoot(tmp_path)
    root.make()
    rundir = root.run("runs", new_ulid())
    rundir.make()
    write_json(rundir.launch, {"run_id": rundir.run_id, "attempt": 1, "home": True})
    return rundir


def put(rundir, path="checkpoints/a.pt", offset=0, piece=b"", data=DATA):
    return put_file(rundir, request(rundir, path, offset, piece, data))


def request(rundir, path="checkpoints/a.pt", offset=0, piece=b"", data=DATA):
    digest = hashlib.sha256(data).digest()
    return pb.PutFileRequest(run_id=rundir.run_id, path=path, size=len(data), sha256=digest, offset=offset, data=piece)


def test_a_file_appears_whole(rundir):
    assert put(rundir) == 0
    assert put(rundir, piece=DATA[:5000]) == 5000
    assert not (rundir.checkpoints / "a.pt").exists()

    assert put(rundir, offset=5000, piece=DATA[5000:]) == len(DATA)

    assert (rundir.checkpoints / "a.pt").read_bytes() == DATA
    assert list(rundir.incoming.iterdir()) == []


def test_after_a_break_it_is_continued(rundir):
    put(rundir, piece=DATA[:5000])

    assert put(rundir) == 5000
    assert put(rundir, offset=0, piece=DATA[:5000]) == 5000  # the answer was lost: nothing is written twice
    assert put(rundir, offset=9000, piece=DATA[9000:]) == 5000  # a piece that leaves a gap is not taken
    assert put(rundir, offset=5000, piece=DATA[5000:]) == len(DATA)
    assert put(rundir) == len(DATA)


def test_another_version_starts_at_the_beginning(rundir):
    put(rundir, piece=DATA[:5000])

    assert put(rundir, data=DATA[::-1]) == 0
    assert len(list(rundir.incoming.iterdir())) == 1


def test_a_wrong_hash_is_not_stored(rundir):
    put(rundir, piece=DATA[:5000])

    assert put(rundir, offset=5000, piece=bytes(len(DATA) - 5000)) == 0
    assert not (rundir.checkpoints / "a.pt").exists()


def test_an_empty_file_is_stored(rundir):
    assert put(rundir, path="done", data=b"") == 0
    assert (rundir.path / "done").read_bytes() == b""


@pytest.mark.parametrize(
    "path",
    [
        *("../x", "/etc/passwd", "a/../../x", "a//b", "", ".", "a/\0", "/".join("a" * 20), "x" * 600),
        *("telemetry.sqlite", "telemetry.sqlite-wal", "provenance.json", "operators.json", "config/base_config.json"),
    ],
)
def test_a_path_that_is_not_the_runs_is_refused(rundir, path):
    with pytest.raises(BadConfig):
        put(rundir, path=path, piece=DATA)


def test_no_link_is_followed(rundir, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (rundir.path / "linked").symlink_to(outside)
    (rundir.path / "name").symlink_to(outside / "file")

    with pytest.raises(BadConfig):
        put(rundir, path="linked/file", piece=DATA)
    put(rundir, path="name", piece=DATA)

    assert list(outside.iterdir()) == []
    assert not (rundir.path / "name").is_symlink()


def in_place_of_a_piece(rundir, tmp_path):
    """Where the next piece of a file is collected; what lies there is not the daemon's."""
    put(rundir, piece=DATA[:5000])
    (part,) = rundir.incoming.iterdir()
    part.unlink()
    return part


@pytest.mark.parametrize("kind", ["fifo", "folder", "link elsewhere", "link to /dev/zero", "link to itself"])
def test_what_is_in_place_of_a_piece_is_neither_followed_nor_waited_for(rundir, tmp_path, kind):
    part, outside = in_place_of_a_piece(rundir, tmp_path), tmp_path / "outside"
    outside.write_bytes(b"mine")
    match kind:
        case "fifo":
            os.mkfifo(part)
        case "folder":
            part.mkdir()
        case _:
            part.symlink_to({"link elsewhere": outside, "link to /dev/zero": "/dev/zero"}.get(kind, part.name))

    with pytest.raises(BadConfig, match="cannot be stored"):
        put(rundir, piece=DATA)

    assert outside.read_bytes() == b"mine"
    assert put(rundir, path="another", piece=DATA) == len(DATA)


def test_a_piece_that_is_larger_than_its_file_is_not_read(rundir, tmp_path, monkeypatch):
    part = in_place_of_a_piece(rundir, tmp_path)
    part.touch(0o600)
    os.truncate(part, 1 << 40)
    monkeypatch.setattr(incoming, "_sha256", lambda *_: pytest.fail("a terabyte is read"))

    assert put(rundir, offset=5000, piece=DATA[5000:]) == 0
    monkeypatch.undo()
    assert put(rundir, piece=DATA) == len(DATA)


def test_a_file_in_place_of_the_folder_of_pieces_is_an_error_of_this_run(rundir):
    rundir.incoming.write_bytes(b"")

    with pytest.raises(BadConfig, match="cannot be stored"):
        put(rundir, piece=DATA)


def test_a_run_with_its_folder_here_sends_no_files(rundir):
    write_json(rundir.launch, {"run_id": rundir.run_id, "attempt": 1})

    with pytest.raises(NotAllowed):
        put(rundir, piece=DATA)


class Heard:
    """What the dispatcher is told about a run's files."""

    def __init__(self):
        self.told = []

    def arriving(self, run_id):
        self.told.append("arriving")

    def storage_problem(self, run_id, text):
        self.told.append(text and "problem")


def test_only_pieces_that_are_kept_count_as_arriving(rundir):
    heard = Heard()
    files = IncomingFiles(heard)

    def send(**part):
        return asyncio.run(files.put(rundir, request(rundir, **part)))

    send()
    send(offset=9000, piece=DATA[9000:])
    assert heard.told == []

    send(piece=DATA[:5000])
    send()
    assert heard.told == ["arriving"]


def test_a_full_disk_is_told_until_there_is_room(rundir, monkeypatch):
    heard = Heard()
    files = IncomingFiles(heard)
    with monkeypatch.context() as full:
        full.setattr(incoming, "SPARE_BYTES", 1 << 80)
        for _ in range(2):
            with pytest.raises(StoreUnavailable):
                asyncio.run(files.put(rundir, request(rundir, piece=DATA)))

    asyncio.run(files.put(rundir, request(rundir, piece=DATA)))

    assert heard.told == ["problem", "problem", "", "arriving"]


def test_the_disk_keeps_a_reserve(rundir, monkeypatch):
    monkeypatch.setattr(incoming, "SPARE_BYTES", 1 << 60)

    with pytest.raises(StoreUnavailable, match="no room"):
        put(rundir, piece=DATA)


def test_a_run_whose_file_takes_long_uses_one_thread_of_its_own(rundir, monkeypatch):
    may_end, threads = threading.Event(), []

    def store(_, request, __):
        threads.append(threading.current_thread().name)
        if request.run_id == "large":
            may_end.wait(30)
        return 0

    monkeypatch.setattr(incoming, "put_file", store)

    async def scene():
        files = IncomingFiles(LiveRuns())
        put = [files.put(rundir, pb.PutFileRequest(run_id=run)) for run in ("large", "large", "other", "other")]
        first = asyncio.create_task(put[0])
        await asyncio.sleep(0)
        with pytest.raises(StoreUnavailable, match="still being stored"):
            await put[1]
        others = [await put[2], await put[3]]
        first.cancel()  # its caller leaves; the thread is still at work
        await asyncio.sleep(0)
        with pytest.raises(StoreUnavailable):
            await files.put(rundir, pb.PutFileRequest(run_id="large"))
        may_end.set()
        while files._busy:
            await asyncio.sleep(0.001)
        return others, await files.put(rundir, pb.PutFileRequest(run_id="large"))

    assert asyncio.run(scene()) == ([0, 0], 0)
    assert all(name.startswith("incoming") for name in threads)


class Arriving:
    """What the daemon is told of files that arrive."""

    def __init__(self):
        self.runs, self.problems = [], []

    def arriving(self, run_id):
        self.runs.append(run_id)

    def storage_problem(self, run_id, text):
        self.problems.append(text)


def send(rundir, **fields):
    digest = hashlib.sha256(DATA).digest()
    return pb.PutFileRequest(run_id=rundir.run_id, path="a", size=len(DATA), sha256=digest, **fields)


def test_a_file_for_which_there_is_no_room_is_not_waited_for(rundir, monkeypatch):
    monkeypatch.setattr(incoming, "SPARE_BYTES", 1 << 60)
    told = Arriving()
    files = IncomingFiles(told)

    for _ in range(2):
        with pytest.raises(StoreUnavailable, match="no room"):
            asyncio.run(files.put(rundir, send(rundir, data=DATA)))
    assert told.runs == []
    assert "no room" in told.problems[-1]

    monkeypatch.undo()
    assert asyncio.run(files.put(rundir, send(rundir, data=DATA))) == len(DATA)
    assert told.runs == [rundir.run_id]
    assert told.problems[-1] == ""


def test_a_file_that_takes_long_to_be_stored_is_waited_for(rundir, monkeypatch):
    told, may_end = Arriving(), threading.Event()
    monkeypatch.setattr(incoming, "STILL_ARRIVING_S", 0.01)
    monkeypatch.setattr(incoming, "put_file", lambda *_: may_end.wait(30) and 7)

    async def scene():
        putting = asyncio.create_task(IncomingFiles(told).put(rundir, send(rundir)))
        while len(told.runs) < 3:
            await asyncio.sleep(0.01)
        may_end.set()
        return await putting

    assert asyncio.run(scene()) == 7


def test_a_daemon_that_stops_does_not_wait_for_a_large_file(rundir):
    files = IncomingFiles(Arriving())
    asyncio.run(files.put(rundir, send(rundir, data=DATA[:5000])))
    files._is_closed.set()

    with pytest.raises(StoreUnavailable, match="is stopping"):
        asyncio.run(files.put(rundir, send(rundir, offset=5000, data=DATA[5000:])))
    files.close()

    assert put(rundir, path="a") == len(DATA)  # the next one continues
