import os
import shutil
import signal
import sqlite3
import subprocess
import sys

import pytest

from mosaic.model.errors import BadRoot, SchemaTooNew
from mosaic.model.run import Lineage, ResourceRequest
from mosaic.model.states import RunState
from mosaic.model.task import Task
from mosaic.registry.file import STEPS
from mosaic.registry.registry import Registry

COLOURED = (*STEPS, "ALTER TABLE runs ADD COLUMN colour TEXT NOT NULL DEFAULT 'grey'")


def user_version(path):
    db = sqlite3.connect(path)
    try:
        return db.execute("PRAGMA user_version").fetchone()[0]
    finally:
        db.close()


def test_a_newer_schema_is_refused_and_left_alone(tmp_path):
    path = tmp_path / "registry.db"
    Registry(path, steps=COLOURED).close()
    before = path.read_bytes()

    with pytest.raises(SchemaTooNew, match=f"has schema {len(COLOURED)}; this MOSAIC knows up to {len(STEPS)}"):
        Registry.open(path)

    assert path.read_bytes() == before


def test_an_older_file_is_backed_up_and_upgraded_with_all_its_rows(tmp_path, make_config):
    path = tmp_path / "registry.db"
    old = Registry.open(path)
    run = old.add(make_config())[0]
    old.close()

    new = Registry(path, steps=COLOURED)

    assert new.get(run.run_id) == run
    assert new._db.execute("SELECT colour FROM runs").fetchall() == [("grey",)]
    new.close()
    copy = tmp_path / f"registry.db.backup-v{len(STEPS)}"
    assert user_version(path) == len(COLOURED)
    assert user_version(copy) == len(STEPS)
    assert copy.stat().st_mode & 0o777 == 0o600
    restored = Registry.open(copy)
    assert restored.get(run.run_id) == run
    restored.close()


def test_a_step_that_fails_leaves_the_old_file_usable(tmp_path, make_config):
    path = tmp_path / "registry.db"
    old = Registry.open(path)
    run = old.add(make_config())[0]
    old.close()

    with pytest.raises(BadRoot):
        Registry(path, steps=(*STEPS, "ALTER TABLE runs ADD COLUMN colour TEXT; ALTER TABLE nothing ADD COLUMN x"))

    again = Registry.open(path)
    assert again.get(run.run_id) == run
    again.close()


def test_opening_a_current_file_makes_no_backup(tmp_path):
    path = tmp_path / "registry.db"

    for _ in range(2):
        Registry.open(path).close()

    assert [file.name for file in tmp_path.glob("*backup*")] == []


def test_a_log_that_is_a_fifo_is_refused_because_nothing_could_be_stored(tmp_path):
    Registry(tmp_path / "registry.db").close()
    os.mkfifo(tmp_path / "registry.db-wal")

    with pytest.raises(BadRoot, match=r"registry\.db-wal is not a regular file"):
        Registry(tmp_path / "registry.db")


@pytest.mark.parametrize("damage", ["garbage", "middle", "folder", "other tables"])
def test_a_damaged_file_is_refused_with_advice(tmp_path, make_config, damage):
    path = tmp_path / "registry.db"
    if damage == "garbage":
        path.write_bytes(b"not a database at all, but long enough to be looked at" * 100)
    elif damage == "folder":
        path.mkdir()
    elif damage == "other tables":
        db = sqlite3.connect(path)
        db.execute("CREATE TABLE runs (x)")
        db.close()
    else:
        registry = Registry.open(path)
        for _ in range(50):
            registry.add(make_config())
        registry.close()
        with open(path, "r+b") as file:
            file.seek(4096)
            file.write(b"\xff" * 8192)

    with pytest.raises(BadRoot, match=r"registry\.db cannot be used .*mosaic registry rebuild.*MOSAIC_HOME"):
        Registry.open(path)


MOVER = """
import sys
from pathlib import Path
from mosaic.model.run import RunConfig, WorkerSpec
from mosaic.model.run import Lineage, ResourceRequest
from mosaic.model.states import RunState
from mosaic.model.ulid import new_ulid
from mosaic.registry.registry import Registry

registry = Registry.open(Path(sys.argv[1]))
while True:
    run, _ = registry.add(RunConfig(new_ulid(), "n", "runs", "toy", WorkerSpec(module="toy.cli")))
    print(run.run_id, run.state, flush=True)
    for new in (RunState.HANDSHAKE, RunState.READY, RunState.EXECUTING, RunState.TERMINATED):
        registry.move(run.run_id, new)
        print(run.run_id, new, flush=True)
"""


def test_every_answered_move_is_in_the_file_after_kill_9(tmp_path):
    path = tmp_path / "registry.db"
    child = subprocess.Popen([sys.executable, "-c", MOVER, str(path)], stdout=subprocess.PIPE, text=True)
    answered = [child.stdout.readline() for _ in range(60)]
    child.send_signal(signal.SIGKILL)
    answered += child.stdout.readlines()
    child.stdout.close()
    assert child.wait() == -signal.SIGKILL

    # A power loss leaves the file without the shared-memory index: the WAL alone must be enough.
    copy = tmp_path / "copy.db"
    shutil.copy(path, copy)
    shutil.copy(f"{path}-wal", f"{copy}-wal")
    registry = Registry.open(copy)
    moves = [line.split() for line in answered if line.endswith("\n")]
    lost = [(run, new) for run, new in moves if RunState(new) not in [move.new for move in registry.history(run)]]
    registry.close()

    assert len(moves) >= 60
    assert lost == []


def test_a_run_of_schema_version_1_survives_the_upgrade(tmp_path, make_config):
    path = tmp_path / "registry.db"
    db = sqlite3.connect(path)
    db.executescript(f"{STEPS[0]};PRAGMA user_version = 1;")
    db.execute(
        "INSERT INTO runs (id, name, area, worker_name, state, created_at, updated_at, gpus_requested, gpus_mandatory, "
        "limits, tags, revision) VALUES ('01OLD', 'old', 'runs', 'toy', 'TERMINATED', 1, 2, 0, 0, '{}', '[]', 1)"
    )
    db.commit()
    db.close()

    registry = Registry.open(path)

    run = registry.get("01OLD")
    assert (run.name, run.resources, run.lineage, run.settings_note) == ("old", ResourceRequest(), Lineage(), "")
    assert registry.settings("01OLD") == {}
    assert run.task == Task()
    registry.close()


@pytest.mark.parametrize(
    ("settings", "task"),
    [
        ('{"algo": "ppo", "env_id": "CartPole-v1", "seed": 3}', Task("ppo", "CartPole-v1", 3)),
        ('{"algo": "dqn", "lr": NaN}', Task("dqn")),
        ("{", Task()),
        ("[1]", Task()),
    ],
)
def test_the_upgrade_reads_the_task_of_older_runs_from_their_settings(tmp_path, make_config, settings, task):
    path = tmp_path / "registry.db"
    older = sqlite3.connect(path)
    for number, sql in enumerate(STEPS[:4], start=1):
        older.executescript(f"{sql};PRAGMA user_version = {number};")
    older.execute(
        "INSERT INTO runs (id, name, area, worker_name, state, created_at, updated_at, gpus_requested, gpus_mandatory, "
        "limits, tags, revision, settings) VALUES ('01OLD', 'old', '', 'toy', 'INIT', 1, 2, 0, 0, '{}', '[]', 1, ?)",
        (settings,),
    )
    older.commit()
    older.close()

    registry = Registry.open(path)

    assert registry.get("01OLD").task == task
    assert user_version(path) == len(STEPS)
    registry.close()
