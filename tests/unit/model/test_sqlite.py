import os
import sqlite3
import subprocess
import sys

import pytest

from mosaic.ingest.index import Index
from mosaic.ingest.store import RunStore
from mosaic.model import sqlite
from mosaic.model.errors import SchemaTooNew
from mosaic.model.run import RunSummary
from mosaic.registry.registry import Registry

STEPS = ("CREATE TABLE one (x)", "CREATE TABLE two (x)")


def open_registry(path):
    Registry.open(path).close()


def open_run_store(path):
    store = RunStore(path, "01RUN")
    store.cursor()
    store.close()


def open_index(path):
    index = Index(path)
    index.put("01RUN", RunSummary())
    index.close()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "some.db"


@pytest.mark.parametrize("create", [open_registry, open_run_store, open_index])
def test_every_database_is_created_for_its_owner_only_whatever_the_umask(path, create):
    before = os.umask(0)
    try:
        create(path)
    finally:
        os.umask(before)

    assert path.stat().st_mode & 0o777 == 0o600


def test_upgrade_runs_only_the_steps_that_a_file_has_not_had(path):
    first = sqlite.open_writable(path, "FULL")
    sqlite.upgrade(first, STEPS[:1])
    first.close()

    db = sqlite.open_writable(path, "FULL", newest=len(STEPS))
    sqlite.upgrade(db, STEPS)

    assert sqlite.version(db) == 2
    assert [row[0] for row in db.execute("SELECT name FROM sqlite_schema ORDER BY name")] == ["one", "two"]
    db.close()


def test_a_file_of_a_newer_schema_is_refused_and_not_changed(path):
    db = sqlite3.connect(path)
    db.execute("PRAGMA user_version = 3")
    db.close()
    before = path.read_bytes()

    for refused in (
        lambda: sqlite.open_writable(path, "FULL", newest=2),
        lambda: sqlite.open_read_only(path, newest=2),
    ):
        with pytest.raises(SchemaTooNew, match="has schema 3; this MOSAIC knows up to 2"):
            refused()

    assert path.read_bytes() == before


def test_a_read_only_connection_refuses_to_write(path):
    sqlite3.connect(path).execute("CREATE TABLE one (x)").connection.close()

    db = sqlite.open_read_only(path)

    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        db.execute("INSERT INTO one VALUES (1)")
    db.close()


WRITE = """
import sqlite3, sys
sqlite3.connect(sys.argv[1], timeout=0).execute("INSERT INTO one VALUES (1)")
"""


def test_a_second_connection_of_this_process_does_not_release_the_locks_of_the_first(path):
    first = sqlite.open_writable(path, "FULL")
    sqlite.upgrade(first, STEPS)
    first.execute("PRAGMA journal_mode = DELETE")  # in WAL mode the locks are in the -shm file
    first.execute("BEGIN IMMEDIATE")

    sqlite.create(path)

    other = subprocess.run([sys.executable, "-c", WRITE, str(path)], capture_output=True, text=True, timeout=60)
    assert "database is locked" in other.stderr
    first.close()


def test_an_index_in_a_missing_folder_is_empty_and_raises_no_error(tmp_path):
    index = Index(tmp_path / "missing" / "index.sqlite")

    index.put("01RUN", RunSummary())

    assert index.get(["01RUN"]) == {}
