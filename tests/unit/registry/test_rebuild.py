"""A lost or damaged registry comes back with every run, from its records and backups."""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys

import pytest

from mosaic.model.run import GpuRequest, Lineage, ResourceRequest, Settings
from mosaic.model.states import RunState
from mosaic.model.ulid import new_ulid
from mosaic.registry.backups import KEPT, back_up
from mosaic.registry.condition import problem_of
from mosaic.registry.rebuild import rebuild
from mosaic.registry.records import Records
from mosaic.registry.registry import Registry

S = RunState


@pytest.fixture
def path(tmp_path):
    return tmp_path / "registry.db"


@pytest.fixture
def filled(path, make_config):
    """A registry with a run in every kind of state; returns what it says of them."""
    registry = Registry.open(path)
    parent = new_ulid()
    settings = Settings({"algo": "ppo", "seed": 3, "lr": float("nan")}, "not checked")
    ids = [registry.add(make_config(name=f"run {n}", tags=("a", "b"), settings=settings))[0].run_id for n in range(7)]
    ids.append(
        registry.add(
            make_config(
                parent,
                gpus=GpuRequest(2, True),
                resources=ResourceRequest(2.5, 100),
                lineage=Lineage(ids[0], "resume"),
                idempotency_key="once",
                config_hash="hash",
            ),
            "a note",
        )[0].run_id
    )
    registry.claim(parent, ["GPU-fake-1", "GPU-fake-0"])
    registry.set_session(parent, "token's hash", {"can": ["a", "b"]})
    registry.move(parent, S.READY)
    registry.note(parent, held_by="a pid namespace")
    registry.note_heartbeat_calls(parent)
    registry.claim(ids[1], ["GPU-fake-2"])
    registry.drain_gpus(ids[1], "unkillable")
    registry.move(ids[1], S.FAULTED, "unkillable\nlast line")
    registry.request_cancel(ids[2])
    registry.claim(ids[3], [])
    registry.raise_attempt(ids[3])
    registry.move(ids[4], S.CANCELLED, "by request")
    registry.delete(ids[4])
    known = everything(registry)
    registry.close()
    return known


def everything(registry):
    runs = registry.list()
    return {
        "runs": [{**vars(run), "waiting_for": ""} for run in runs],
        "history": {run.run_id: registry.history(run.run_id) for run in runs},
        "settings": {run.run_id: repr(registry.settings(run.run_id)) for run in runs},
        "sessions": {run.run_id: registry.session(run.run_id) for run in runs},
        "capabilities": {run.run_id: registry.capabilities(run.run_id) for run in runs},
        "beats": {run.run_id: registry.calls_heartbeat(run.run_id) for run in runs},
        "gpus": registry.gpu_owners(),
        "drained": registry.drained(),
        "deleted": registry._db.execute("SELECT * FROM deleted").fetchall(),
        "keys": registry._db.execute("SELECT id, number, idempotency_key, config_hash FROM runs").fetchall(),
    }


def rebuilt(path, why="a test"):
    return rebuild(path, path.parent / "backups", why, lambda registry, done: None)


def read(path):
    registry = Registry.open(path)
    try:
        return everything(registry)
    finally:
        registry.close()


def lose(path):
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


DAMAGES = {
    "missing": lose,
    "empty": lambda path: path.write_bytes(b""),
    "garbage": lambda path: path.write_bytes(b"no database, but long enough to be one " * 300),
    "header": lambda path: overwrite(path, 0, bytes(100)),
    "schema page": lambda path: overwrite(path, 100, b"\xff" * 3000),
    "truncated": lambda path: os.truncate(path, path.stat().st_size // 2 // 4096 * 4096),
    "folder": lambda path: (path.unlink(), path.mkdir()),
    "link": lambda path: (path.unlink(), path.symlink_to("/dev/zero")),
    "fifo": lambda path: (path.unlink(), os.mkfifo(path)),
    "other program": lambda path: (path.unlink(), foreign(path)),
    "an id of another type": lambda path: change(path, "UPDATE runs SET id = x'ff' WHERE number = 1"),
    "an empty id": lambda path: change(path, "UPDATE runs SET id = '' WHERE number = 2"),
    "an id that is a path": lambda path: change(path, "UPDATE runs SET id = '../' || id WHERE number = 3"),
}


def overwrite(path, offset, data):
    with open(path, "r+b") as file:
        file.seek(offset)
        file.write(data)


def change(path, sql):
    db = sqlite3.connect(path)
    with db:
        db.execute(sql)
    db.close()


def foreign(path):
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE runs (x)")
    db.close()


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_registry_is_noticed_kept_and_rebuilt_with_every_run(path, filled, damage):
    DAMAGES[damage](path)

    why = problem_of(path, has_traces=True)
    done = rebuilt(path, why)

    assert why
    assert read(path) == filled
    assert done.problems == []
    assert problem_of(path, has_traces=True) == ""
    kept = [file.name for file in path.parent.iterdir() if ".damaged-" in file.name]
    assert [name for name in kept if not name.endswith(("-wal", "-shm"))] == [done.damaged_file][damage == "missing" :]


def test_every_page_that_is_overwritten_is_noticed_or_changes_no_row(path, filled):
    pages = path.stat().st_size // 4096
    whole = path.read_bytes()
    for page in range(pages):
        path.write_bytes(whole)
        overwrite(path, page * 4096, b"\xff" * 4096)

        noticed = problem_of(path, has_traces=True)

        assert noticed or read(path) == filled, page
        lose(path)
        path.write_bytes(whole)


@pytest.mark.parametrize("damage", ["'not a number'", "1", "x'ff'"])
def test_a_revision_that_is_damaged_under_an_open_registry_is_noticed_at_the_next_start(path, filled, damage):
    """The next change must not count on from the damaged value: that would hide the damage, and shorten the records."""
    registry = Registry.open(path)
    before, runs = registry.revision(), registry.list([S.INIT])
    change(path, f"UPDATE clock SET revision = {damage}")

    registry.move(runs[0].run_id, S.CANCELLED, "by request")

    assert (registry.revision(), registry.get(runs[0].run_id).revision) == (before + 1, before + 1)
    known = everything(registry)
    registry.close()
    why = problem_of(path, has_traces=True)
    assert why
    assert rebuilt(path, why).problems == []
    assert read(path) == known


def test_a_new_root_has_no_problem(path):
    assert problem_of(path, has_traces=False) == ""
    path.write_bytes(b"")
    assert problem_of(path, has_traces=False) == ""


def test_a_lost_wal_is_noticed_and_its_changes_are_restored(path, make_config, tmp_path):
    registry = Registry.open(path)
    first = registry.add(make_config())[0].run_id
    registry.close()
    registry = Registry.open(path)
    second = registry.add(make_config())[0].run_id
    registry.claim(first, ["GPU-fake-0"])
    known = everything(registry)
    # What a copy without the WAL shows: the file as it was at the last checkpoint.
    old = path.read_bytes()
    registry.close()
    lose(path)
    path.write_bytes(old)

    why = problem_of(path, has_traces=True)
    done = rebuilt(path, why)

    assert "older than the records" in why
    assert (done.started_from, done.from_records) == ("registry.db", 2)
    assert read(path) == known
    assert {run["run_id"] for run in known["runs"]} == {first, second}


def test_a_daemon_killed_between_commit_and_record_is_caught_up(path, make_config, tmp_path):
    code = (
        "import os, signal, sys; from pathlib import Path; from mosaic.registry.registry import Registry\n"
        "from mosaic.registry.change import Changes; from mosaic.model.states import RunState\n"
        "registry = Registry.open(Path(sys.argv[1]))\n"
        "Changes._record = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
        "registry.move(sys.argv[2], RunState.CANCELLED, 'x')\n"
    )
    registry = Registry.open(path)
    run = registry.add(make_config())[0].run_id
    registry.close()
    child = subprocess.run([sys.executable, "-c", code, str(path), run])

    known = read(path)
    lose(path)
    rebuilt(path)

    assert child.returncode == -signal.SIGKILL
    assert known["runs"][0]["state"] is S.CANCELLED
    assert read(path) == known


def test_the_lost_control_folder_of_a_live_run_is_not_made_again_before_its_end(path, make_config):
    registry = Registry.open(path)
    live, other = (registry.add(make_config())[0].run_id for _ in range(2))
    registry.claim(live, [])
    shutil.rmtree(path.parent / "control" / live)

    registry.request_cancel(live)
    registry.note(live, telemetry="incomplete")
    was_made = (path.parent / "control" / live).exists()
    registry.move(live, S.CANCELLED, "its folder was deleted")
    known = everything(registry)
    registry.close()
    lose(path)
    rebuilt(path)

    assert not was_made
    assert read(path) == known
    assert {run["run_id"] for run in known["runs"]} == {live, other}


def link_elsewhere(place):
    elsewhere = place.parents[1] / "elsewhere"
    place.rename(elsewhere)
    place.symlink_to(elsewhere)


@pytest.mark.parametrize("spoil", [shutil.rmtree, link_elsewhere])
def test_a_control_folder_that_cannot_be_written_delays_no_other_record(path, make_config, spoil):
    registry = Registry.open(path)
    victim, other = (registry.add(make_config())[0].run_id for _ in range(2))
    registry.claim(victim, [])
    spoil(path.parent / "control" / victim)

    registry.note(victim, telemetry="incomplete")
    registry.move(other, S.CANCELLED, "by request")
    known, revision = registry.get(other), registry.revision()
    registry.close()
    records = Records(path.parent / "control")

    assert records.revision() == revision
    assert records.read(other).row["state"] == known.state.value


def test_a_line_that_a_kill_cut_costs_only_itself(path, filled):
    run = filled["runs"][0]["run_id"]
    record = path.parent / "control" / run / "records.jsonl"
    with record.open("ab") as file:
        file.write(b'\n{"revision":99999,"row":{"state":"TERMIN')
    registry = Registry.open(path)
    registry.note(run, telemetry="afterwards")
    known = everything(registry)
    registry.close()

    lose(path)
    rebuilt(path)

    assert read(path) == known


@pytest.mark.parametrize("lie", ["not json", '{"revision":"x","row":{},"gpus":[],"history":[]}', "whole"])
def test_a_record_that_lies_affects_only_its_run(path, filled, lie):
    victim, *others = [run["run_id"] for run in filled["runs"] if not run["granted"]]
    record = path.parent / "control" / victim / "records.jsonl"
    record.write_text('{"revision":5,"row":{"id":"' + victim + '","state":7},"gpus":[],"history":[]}\n' + lie)
    lose(path)

    done = rebuilt(path)

    now = read(path)
    assert {run["run_id"] for run in now["runs"]} == {run["run_id"] for run in filled["runs"]} - {victim}
    assert [run for run in now["runs"] if run["run_id"] in others] == [
        run for run in filled["runs"] if run["run_id"] in others
    ]
    assert any(victim in problem for problem in done.problems)


def test_without_records_the_newest_intact_backup_is_used(path, filled, tmp_path):
    backups = tmp_path / "backups"
    assert back_up(path, backups)
    (backups / "registry-999999999999.db").write_bytes(b"damaged backup" * 500)
    shutil.rmtree(tmp_path / "control")
    lose(path)

    done = rebuilt(path)

    assert done.started_from.startswith("registry-0000")
    assert read(path) == filled


def test_backups_are_made_after_changes_only_and_the_newest_are_kept(path, filled, tmp_path, make_config):
    backups = tmp_path / "backups"
    registry = Registry.open(path)
    made = []
    for _ in range(KEPT + 2):
        registry.add(make_config())
        made += [back_up(path, backups), back_up(path, backups)]
    registry.close()

    assert [made.index(file) % 2 for file in made if file] == [0] * (KEPT + 2)
    assert sorted(backups.iterdir()) == [file for file in made if file][-KEPT:]


def test_a_backup_does_not_take_the_last_of_the_disk(path, filled, tmp_path, monkeypatch):
    monkeypatch.setattr("mosaic.registry.backups.free_bytes", lambda folder: 1 << 20)

    assert back_up(path, tmp_path / "backups") is None


def test_a_second_rebuild_changes_nothing(path, filled):
    lose(path)

    rebuilt(path)
    again = rebuilt(path)

    assert read(path) == filled
    assert again.from_records == 0


KILLED = """
import os, signal, sys
from pathlib import Path
from mosaic.registry import backups, rebuild

path, at = Path(sys.argv[1]), int(sys.argv[2])
calls = 0

def counted(call):
    def wrapper(*args, **kwargs):
        global calls
        calls += 1
        if calls == at:
            os.kill(os.getpid(), signal.SIGKILL)
        return call(*args, **kwargs)
    return wrapper

for name in ("rename", "replace", "unlink", "fsync", "open", "pwrite", "write"):
    setattr(os, name, counted(getattr(os, name)))
if sys.argv[3] == "backup":
    backups.back_up(path, path.parent / "backups")
else:
    rebuild.rebuild(path, path.parent / "backups", "x", lambda registry, done: None)
"""


@pytest.mark.parametrize("what", ["backup", "rebuild"])
def test_a_kill_at_any_step_costs_nothing(path, filled, tmp_path, what):
    backup = back_up(path, tmp_path / "backups")
    if what == "backup":
        backup.unlink()
    else:
        overwrite(path, 100, b"\xff" * 3000)
    kills = 0
    while True:
        kills += 1
        child = subprocess.run([sys.executable, "-c", KILLED, str(path), str(kills), what], capture_output=True)
        if child.returncode == 0:
            break
        assert child.returncode == -signal.SIGKILL, child.stderr
        if problem_of(path, has_traces=True):
            rebuilt(path)
        assert read(path) == filled
        if what == "rebuild":
            overwrite(path, 100, b"\xff" * 3000)

    assert kills > 3
    if problem_of(path, has_traces=True):
        rebuilt(path)
    assert read(path) == filled
