import contextlib
import math
import os
import sqlite3

import pytest

from mosaic.ingest import index as module
from mosaic.ingest.index import Index
from mosaic.model.run import RunSummary

SUMMARY = RunSummary(events=5, last_return=math.inf, recent_returns=[1.0, -math.inf], last_values={"x": 2.0})


@pytest.fixture
def path(tmp_path):
    return tmp_path / "index.sqlite"


@pytest.fixture
def index(path):
    index = Index(path)
    yield index
    index.close()


def test_a_summary_survives_a_restart(path, index):
    index.put("a", SUMMARY)
    index.put("b", RunSummary())
    index.close()

    assert Index(path).get(["a", "unknown"]) == {"a": SUMMARY}


def test_summaries_of_an_older_mosaic_are_derived_again_from_the_runs_files(path, index, monkeypatch):
    monkeypatch.setattr(module, "SCHEMA", 1)
    monkeypatch.setattr(module, "_SCHEMA", module._SCHEMA.replace("user_version = 2", "user_version = 1"))
    index.put("a", SUMMARY)
    index.close()
    monkeypatch.undo()

    assert Index(path).get(["a"]) == {}


def test_nan_is_kept(index):
    index.put("a", RunSummary(last_values={"x": math.nan}))

    assert math.isnan(index.get(["a"])["a"].last_values["x"])


def test_the_newest_summary_wins_and_a_deleted_one_is_gone(index):
    index.put("a", RunSummary(events=1))
    index.put("a", RunSummary(events=2))
    index.put("b", RunSummary(events=3))
    index.delete("b")

    assert {run: it.events for run, it in index.get(["a", "b"]).items()} == {"a": 2}


def test_figures_and_metrics_that_were_asked_for_follow_every_change(index):
    index.put("a", SUMMARY)
    assert index.figures(["a"])["a"].last_return == math.inf
    assert index.metric(["a"], "x") == {"a": 2.0}

    index.put("a", RunSummary(last_return=1.0, last_values={"y": 3.0}))

    assert index.figures(["a", "unknown"])["a"].last_return == 1.0
    assert index.metric(["a", "unknown"], "x") == {"a": None}
    assert index.metric(["a"], "y") == {"a": 3.0}
    index.delete("a")
    assert index.figures(["a"]) == index.metric(["a"], "y") == {}


def test_what_was_read_from_an_index_is_forgotten_with_it(index, monkeypatch):
    index.put("a", SUMMARY)
    index.put("b", SUMMARY)
    index.figures(["a"]), index.metric(["a"], "x")
    monkeypatch.setattr(index, "_some_rows", lambda run_ids: [("b", b"damaged")])

    assert index.figures(["a", "b"]) == {}

    monkeypatch.undo()
    assert index.figures(["a"]) == index.metric(["a"], "x") == {}


def test_only_the_newest_metrics_are_kept_in_memory(index):
    index.put("a", SUMMARY)

    for n in range(100):
        assert index.metric(["a"], f"metric {n}") == {"a": None}

    assert len(index._metrics) == module.MOST_METRICS
    assert index.metric(["a"], "x") == {"a": 2.0}


def test_thousands_are_read_at_once(index):
    for i in range(1200):
        index.put(f"run{i}", RunSummary(events=i))

    got = index.get([f"run{i}" for i in range(0, 1200, 2)])

    assert {run: it.events for run, it in got.items()} == {f"run{i}": i for i in range(0, 1200, 2)}


@pytest.mark.parametrize("damage", ["garbage", "newer", "bad blob", "wrong type"])
def test_an_index_that_cannot_be_used_is_rebuilt(path, damage):
    before = Index(path)
    before.put("a", SUMMARY)
    before.close()
    if damage == "garbage":
        path.write_bytes(b"no database at all, and long enough to be looked at" * 100)
    else:
        statements = {
            "newer": "PRAGMA user_version = 99",
            "bad blob": "UPDATE runs SET summary = x'c1'",
            "wrong type": "UPDATE runs SET summary = 'text'",
        }
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
            db.execute(statements[damage])
    index = Index(path)

    assert index.get(["a"]) == {}
    index.put("b", SUMMARY)
    assert index.get(["b"]) == {"b": SUMMARY}
    index.close()


@pytest.mark.parametrize("link", [os.symlink, os.link])
@pytest.mark.parametrize("suffix", ["", "-wal", "-shm"])
def test_another_programs_database_behind_a_link_is_never_written(tmp_path, path, index, link, suffix):
    foreign = tmp_path / "foreign.db"
    with contextlib.closing(sqlite3.connect(foreign)) as db:
        db.executescript("CREATE TABLE runs (precious); INSERT INTO runs VALUES (1)")
    before = foreign.read_bytes()
    link(foreign, f"{path}{suffix}")

    index.put("a", SUMMARY)

    assert index.get(["a"]) == {"a": SUMMARY}
    index.close()
    assert foreign.read_bytes() == before
    assert not (tmp_path / "foreign.db-wal").exists()


def test_a_dangling_link_creates_nothing(tmp_path, path, index):
    path.symlink_to(tmp_path / "new.db")

    index.put("a", SUMMARY)

    assert not (tmp_path / "new.db").exists()
    assert path.is_file()
