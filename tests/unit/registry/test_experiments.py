"""Experiments in the registry: created, extended, compared, deleted, and kept by an upgrade and a rebuild."""

import shutil
import sqlite3

import pytest

from mosaic.model.errors import (
    BadConfig,
    ExperimentDiffers,
    ExperimentHasRuns,
    ExperimentTaken,
    UnknownExperiment,
)
from mosaic.model.experiment import merged, read_document
from mosaic.model.run import Membership
from mosaic.model.states import RunState
from mosaic.registry.condition import problem_of
from mosaic.registry.file import STEPS, open_file
from mosaic.registry.rebuild import rebuild
from mosaic.registry.registry import Registry
from mosaic.wire.convert import experiment_from_wire, experiment_to_wire

GRID = {"worker": "toy", "base": {"steps": 10}, "axes": {"rate": [1, 2]}, "seeds": [0, 1]}


def member(make_config, name="sweep", **axes):
    return make_config(membership=Membership(name, axes))


def rebuilt(path):
    path.unlink()
    return rebuild(path, path.parent / "backups", "it is lost", lambda registry, done: None)


def test_an_experiment_is_stored_with_the_numbers_of_its_runs(registry, make_config):
    registry.experiments.put("sweep", GRID, "a note")
    registry.add(member(make_config, rate=1, seed=0))
    done = registry.add(member(make_config, rate=1, seed=1))[0]
    registry.move(done.run_id, RunState.FAULTED, "why")

    found = registry.experiments.get("sweep")

    assert found.document["axes"] == {"rate": [1, 2]}
    assert found.note == "a note"
    assert found.counts == {"INIT": 1, "FAULTED": 1}
    assert not found.is_reconstructed
    assert [each.name for each in registry.experiments.list()] == ["sweep"]
    assert registry.count(experiment="sweep") == len(registry.list(experiment="sweep")) == 2


def test_further_seeds_and_axis_values_extend_it_and_fewer_take_none_away(registry, make_config):
    registry.experiments.put("sweep", GRID)
    registry.add(member(make_config, rate=1, seed=0))

    registry.experiments.put("sweep", {**GRID, "axes": {"rate": [2.0, 3]}, "seeds": [5], "max_parallel": 2})

    found = registry.experiments.get("sweep").document
    assert found["axes"] == {"rate": [1, 2, 3]}
    assert found["seeds"] == [0, 1, 5]
    assert registry.experiments.limits() == {"sweep": 2}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"worker": "cleanrl"}, "its worker is toy, not cleanrl"),
        ({"base": {"steps": 20}}, "its steps is 10, not 20"),
        ({"base": {"steps": 10, "extras": {"a": 1}}}, "it does not set extras.a, which is 1 now"),
        ({"base": {}}, "it sets steps to 10, which is not set now"),
        ({"axes": {"rate": [1], "agents": [1]}}, "it varies rate, and now agents, rate would vary"),
        ({"seeds": []}, "it has seeds, and now there are none"),
    ],
)
def test_another_experiment_with_its_name_is_refused_with_what_differs(registry, change, said):
    before = registry.experiments.put("sweep", GRID)

    with pytest.raises(ExperimentDiffers, match=said):
        registry.experiments.put("sweep", {**GRID, **change})

    assert registry.experiments.get("sweep") == before


def test_a_name_that_must_be_new_is_refused_if_only_runs_have_it(registry, make_config):
    registry.add(member(make_config, "lost", seed=1))

    with pytest.raises(ExperimentTaken, match="'lost' already"):
        registry.experiments.put("lost", GRID, is_new=True)


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({"wroker": "toy"}, "Did you mean 'worker'"),
        ({**GRID, "axes": {"rate": 3}}, "axes.rate: must be a list of values"),
        ({**GRID, "axes": {"rate": [1, 1.0]}}, "1.0 is given twice"),
        ({**GRID, "axes": {"steps": [1]}}, "base.steps: varies in this experiment"),
        ({**GRID, "axes": {"seed": [1]}}, "List the seeds in `seeds`"),
        ({**GRID, "seeds": [-1]}, "must be a list of integers from 0"),
        ({**GRID, "seeds": list(range(9999))}, "has 19,998 runs; the maximum is 10,000"),
        ({**GRID, "max_parallel": -1}, "must be a number of runs"),
    ],
)
def test_a_document_that_is_not_valid_is_refused_and_nothing_is_stored(registry, document, said):
    with pytest.raises(BadConfig, match=said):
        registry.experiments.put("sweep", document)

    assert registry.experiments.list() == []


def test_runs_and_experiment_are_added_together_or_not_at_all(registry, make_config):
    registry.experiments.put("sweep", GRID)
    good, other = member(make_config, rate=1, seed=0), {**GRID, "worker": "other"}

    with pytest.raises(ExperimentDiffers):
        registry.add_all([(good, "")], ("sweep", other, None, False))
    with pytest.raises(BadConfig, match="has been used before"):
        registry.add_all([(good, ""), (good, "")], ("new", GRID, None, True))

    assert registry.count() == 0
    assert [each.name for each in registry.experiments.list()] == ["sweep"]


def test_an_experiment_with_runs_is_not_deleted(registry, make_config):
    registry.experiments.put("sweep", GRID)
    run = registry.add(member(make_config, rate=1, seed=0))[0]

    with pytest.raises(ExperimentHasRuns, match=r"still has its run\. Delete both with: mosaic experiment rm sweep"):
        registry.experiments.delete("sweep")
    registry.move(run.run_id, RunState.CANCELLED)
    registry.delete(run.run_id)
    registry.experiments.delete("sweep")

    with pytest.raises(UnknownExperiment, match="There is no experiment 'sweep'"):
        registry.experiments.get("sweep")


def test_an_experiment_that_only_its_runs_name_is_listed_as_they_show_it(registry, make_config):
    for rate, seed in ((1, 0), (1, 1), (2, 0)):
        registry.add(member(make_config, "lost", rate=rate, seed=seed))

    (found,) = registry.experiments.list()

    assert found.is_reconstructed
    assert found.document["worker"] == "toy"
    assert found.document["axes"] == {"rate": [1, 2]}
    assert found.document["seeds"] == [0, 1]
    assert registry.experiments.get("lost") == found


def test_a_search_is_shown_as_its_trials_show_it_and_no_grid_takes_its_name(registry, make_config):
    driver, _ = registry.add(make_config(membership=Membership("lr"), worker_name="search"))
    registry.add(member(make_config, "lr", rate=1))

    found = registry.experiments.get("lr")

    assert found.document["worker"] == "toy"
    assert found.document["axes"] == {"rate": [1]}
    assert found.document["search"] == {"driver": driver.run_id}
    grid = read_document({"worker": "toy", "axes": {"rate": [1]}})
    with pytest.raises(ExperimentDiffers, match="it is a search, whose driver adds the runs"):
        merged("lr", found.document, grid)


def test_a_rebuild_keeps_experiments_and_their_deletion(tmp_path, make_config):
    path = tmp_path / "registry.db"
    registry = Registry.open(path)
    registry.experiments.put("kept", GRID, "a note")
    registry.experiments.put("kept", {**GRID, "seeds": [9]})
    registry.experiments.put("deleted", GRID)
    registry.experiments.delete("deleted")
    registry.add(member(make_config, "kept", rate=1, seed=0))
    before = registry.experiments.list()
    registry.close()

    rebuilt(path)

    registry = Registry.open(path)
    (found,) = registry.experiments.list()
    assert (found.document, found.note, found.counts) == (before[0].document, "a note", {"INIT": 1})
    registry.close()
    assert problem_of(path, has_traces=True) == ""


def test_a_daemon_killed_before_it_recorded_an_experiment_is_caught_up(tmp_path):
    path = tmp_path / "registry.db"
    registry = Registry.open(path)
    registry.experiments.put("first", GRID)
    registry.close()
    shutil.copytree(tmp_path / "control", tmp_path / "old")
    registry = Registry.open(path)
    registry.experiments.delete("first")
    registry.experiments.put("second", GRID)
    registry.close()
    shutil.rmtree(tmp_path / "control")
    shutil.move(tmp_path / "old", tmp_path / "control")

    Registry.open(path).close()
    rebuilt(path)

    registry = Registry.open(path)
    assert [each.name for each in registry.experiments.list()] == ["second"]
    registry.close()


def test_a_root_of_version_5_is_upgraded_with_its_runs_and_takes_experiments(tmp_path):
    path = tmp_path / "registry.db"
    db = open_file(path, STEPS[:5])
    row = {
        "id": "01JCQ0000000000000000000AA",
        "name": "old",
        "area": "runs",
        "worker_name": "toy",
        "state": "TERMINATED",
    }
    needed = [
        (name, kind)
        for _, name, kind, is_needed, default, _ in db.execute("PRAGMA table_info(runs)")
        if is_needed and default is None and name not in row
    ]
    row |= {name: {"TEXT": "{}", "REAL": 1.0}.get(kind, 1) for name, kind in needed}
    db.execute(f"INSERT INTO runs ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})", tuple(row.values()))
    db.execute("UPDATE clock SET revision = 1")
    db.close()
    assert problem_of(path, has_traces=True) == ""

    registry = Registry.open(path)
    registry.experiments.put("sweep", GRID)

    old = registry.get("01JCQ0000000000000000000AA")
    assert (old.name, old.membership) == ("old", Membership())
    assert [each.name for each in registry.experiments.list()] == ["sweep"]
    registry.close()
    assert (tmp_path / "registry.db.backup-v5").exists()


def test_a_registry_without_its_table_of_experiments_is_damaged(tmp_path):
    path = tmp_path / "registry.db"
    Registry.open(path).close()
    with sqlite3.connect(path) as db:
        db.execute("DROP TABLE experiments")

    assert "it has no table experiments" in problem_of(path, has_traces=True)


DAMAGE = {
    "a note that is a blob": "note = x'00ff'",
    "a time that is text": "created_at = 'yesterday'",
    "an infinite time": "created_at = 9e999",
    "a name that is a blob": "name = x'00ff'",
    "a name that is not UTF-8": "name = CAST(x'fffe41' AS TEXT)",
    "no JSON": "document = '{'",
    "another object": """document = '{"worker": "toy", "axes": 7}'""",
    "a document nested too deep": f"""document = '{{"worker": "toy", "base": {"[" * 100_000}'""",
}


@pytest.mark.parametrize("change", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_experiment_costs_no_other_one(registry, make_config, change):
    registry.experiments.put("good", GRID)
    registry.experiments.put("bad", GRID)
    for name in ("good", "bad"):
        registry.add(member(make_config, name, rate=1, seed=0))
    registry._db.execute(f"UPDATE experiments SET {change} WHERE name = 'bad'")

    shown = {found.name: found for found in registry.experiments.list()}

    assert not shown["good"].is_reconstructed
    assert shown["bad"].is_reconstructed
    assert shown["bad"].document["axes"] == {"rate": [1]}
    assert [experiment_from_wire(experiment_to_wire(found)) for found in shown.values()]
    assert {"good", "bad"} <= set(registry.experiments.names())


@pytest.mark.parametrize("value", ["x'00ff'", "7", "CAST(x'fffe41' AS TEXT)"])
def test_a_run_with_a_damaged_experiment_costs_no_other_one(registry, make_config, value):
    registry.experiments.put("good", GRID)
    ids = [registry.add(member(make_config, "good", rate=1, seed=0))[0].run_id for _ in range(2)]
    registry._db.execute(f"UPDATE runs SET experiment = {value} WHERE id = ?", (ids[0],))

    assert "good" in [found.name for found in registry.experiments.list()]
    assert registry.experiments.get("good").runs == 1
    assert "good" in registry.experiments.names()
    assert registry.experiments.limits() == {}
    assert len(registry.list()) == 2
