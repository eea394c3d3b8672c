"""Names, notes and tags after the fact: durable, recorded for a rebuild, seen by watchers."""

import pytest

from mosaic.model.errors import UnknownRun
from mosaic.model.run import RunConfig, WorkerSpec
from mosaic.model.ulid import new_ulid
from mosaic.registry.rebuild import rebuild
from mosaic.registry.registry import Registry


@pytest.fixture
def path(tmp_path):
    return tmp_path / "registry.db"


def add(registry, name="first"):
    run_id = new_ulid()
    registry.add(RunConfig(run_id, name, "runs", "toy", WorkerSpec(module="toy"), tags=("old",)))
    return run_id


def facts(record):
    return record.name, record.note, record.tags


def test_an_edit_changes_only_what_is_given_and_survives_a_restart(path):
    registry = Registry.open(path)
    run_id = add(registry)
    before = registry.get(run_id)

    registry.edit({run_id: ("paper",)}, note="fine")
    registry.edit({run_id: ("paper", "b")}, name="renamed")
    registry.close()

    registry = Registry.open(path)
    after = registry.get(run_id)
    assert facts(after) == ("renamed", "fine", ("paper", "b"))
    assert after.revision > before.revision  # so a watcher receives it
    assert after.updated_at == before.updated_at  # which says when the run ended
    registry.edit({run_id: ()}, note="")
    assert facts(registry.get(run_id)) == ("renamed", "", ())
    registry.close()


def test_an_edit_is_in_a_registry_that_was_rebuilt_from_records(path, tmp_path):
    registry = Registry.open(path)
    run_id = add(registry)
    registry.edit({run_id: ("paper",)}, name="renamed", note="two\nlines")
    registry.close()
    path.unlink()

    rebuild(path, tmp_path / "backups", "lost", lambda *_: None)

    registry = Registry.open(path)
    assert facts(registry.get(run_id)) == ("renamed", "two\nlines", ("paper",))
    registry.close()


def test_of_several_runs_all_are_edited_or_none(path):
    registry = Registry.open(path)
    run_id = add(registry)

    with pytest.raises(UnknownRun):
        registry.edit({run_id: ("x",), new_ulid(): ("x",)})

    assert registry.get(run_id).tags == ("old",)
    registry.close()
