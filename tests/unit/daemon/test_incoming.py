"""Files from nodes: whole or not at all, resumable, and never outside the run's folder."""

import asyncio
import contextlib
import hashlib
from types import SimpleNamespace

import pytest

from mosaic.daemon import incoming
from mosaic.daemon.incoming import IncomingFiles, put_file
from mosaic.model.durable import write_json
from mosaic.model.errors import BadConfig, NotAllowed, StoreUnavailable
from mosaic.model.rundir import StateRoot
from mosaic.model.states import RunState
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
    assert list((rundir.control / "incoming").iterdir()) == []


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
    assert len(list((rundir.control / "incoming").iterdir())) == 1


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


class OneRun:
    """A registry with one run."""

    def __init__(self, state=RunState.EXECUTING, telemetry=""):
        self.record = SimpleNamespace(state=state, telemetry=telemetry)

    async def do(self, _):
        return self.record


@pytest.mark.parametrize(("telemetry", "is_taken"), [("incomplete", True), ("", False)])
def test_files_of_a_run_that_is_over_are_taken_until_they_are_complete(rundir, telemetry, is_taken):
    files = IncomingFiles(OneRun(RunState.FAULTED, telemetry), Heard())
    taken = contextlib.nullcontext() if is_taken else pytest.raises(BadConfig, match="is over")

    with taken:
        asyncio.run(files.put(rundir, request(rundir, piece=DATA)))

    assert (rundir.checkpoints / "a.pt").exists() == is_taken


def test_only_pieces_that_are_kept_count_as_arriving(rundir):
    heard = Heard()
    files = IncomingFiles(OneRun(), heard)

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
    files = IncomingFiles(OneRun(), heard)
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
