"""One damaged row is shown with its problem; all others are as before."""

import pytest

from mosaic.model.errors import StoreFailed
from mosaic.model.states import RunState
from mosaic.registry.registry import Registry

ODD = {
    "unknown state": "state = 'DANCING'",
    "state is a number": "state = 7",
    "name is a blob": "name = x'00ff'",
    "time is text": "created_at = 'yesterday'",
    "time is infinite": "updated_at = 9e999",
    "limits are not JSON": "limits = '{'",
    "limits are another object": "limits = '{\"x\": 1}'",
    "limits are NaN": "limits = '{\"grace_s\": NaN}'",
    "tags are no list": "tags = '3'",
    "tags are nested too deep": f"tags = '{'[' * 100_000}'",
    "limits are nested too deep": f"limits = '{'[' * 100_000}'",
    "axes are nested too deep": f"axes = '{'[' * 100_000}'",
    "axes are no object": "axes = '[1]'",
    "note is a blob": "note = x'00ff'",
    "origin is a number": "origin = x'07'",
    "experiment is a blob": "experiment = x'00ff'",
    "attempt is text": "attempt = 'x'",
    "attempt is huge": "attempt = 9223372036854775807",
    "area leads elsewhere": "area = '../../etc'",
    "revision is negative": "revision = -1",
    "cpus are negative": "cpus = -1",
    "gpus are a blob": "gpus_requested = x'01'",
}


@pytest.fixture
def odd(registry, add, tmp_path):
    """Two good runs around one whose row is changed by the given SQL."""

    def make(change):
        ids = [add() for _ in range(3)]
        registry._db.execute(f"UPDATE runs SET {change} WHERE id = ?", (ids[1],))
        return ids

    return make


@pytest.mark.parametrize("change", ODD.values(), ids=ODD)
def test_an_odd_row_is_shown_with_its_problem_and_the_others_as_they_are(registry, odd, change):
    before, victim, after = odd(change)

    shown = {run.run_id: run for run in registry.list()}

    assert set(shown) == {before, victim, after}
    assert (shown[before].damage, shown[after].damage) == ("", "")
    assert "mosaic registry rebuild" in shown[victim].damage
    assert shown[victim].damage in (shown[victim].reason, shown[victim].telemetry)
    assert registry.get(victim).damage
    assert registry.history(victim)
    assert {run.run_id for run in registry.live()} >= {before, after}


def test_text_that_is_not_utf_8_is_shown_with_replacement_characters(registry, odd):
    ids = odd("name = CAST(x'fffe41' AS TEXT)")

    assert [run.name for run in registry.list()] == ["a run", "\ufffd\ufffdA", "a run"]
    assert {run.run_id for run in registry.live()} == set(ids)


@pytest.mark.parametrize(
    "change", ["settings = '{'", "settings = x'00'", "capabilities = '[1'", "seed = 'x'", "reason = x'00'"]
)
def test_odd_details_do_not_fail(registry, odd, change):
    _, victim, _ = odd(change)

    assert registry.settings(victim) in ({}, registry.settings(victim))
    assert registry.capabilities(victim) == {}
    assert registry.get(victim).run_id == victim


def test_odd_lines_of_history_are_left_out(registry, add):
    run = add()
    registry._db.execute("INSERT INTO history VALUES (?, 'X', 'Y', 'Z', x'00')", (run,))

    assert [move.new for move in registry.history(run)] == [RunState.INIT]


def test_a_run_of_unknown_state_is_not_deleted(registry, odd):
    _, victim, _ = odd("state = 'DANCING'")

    with pytest.raises(StoreFailed, match="rebuild"):
        registry.delete(victim)


@pytest.mark.parametrize("change", ODD.values(), ids=ODD)
def test_a_rebuild_repairs_an_odd_row(registry, odd, change, tmp_path):
    from mosaic.registry.rebuild import rebuild

    _, victim, _ = odd("reason = ''")
    known = registry.get(victim)
    registry._db.execute(f"UPDATE runs SET {change} WHERE id = ?", (victim,))
    registry.close()

    rebuild(tmp_path / "registry.db", tmp_path / "backups", "x", lambda registry, done: None)

    again = Registry.open(tmp_path / "registry.db")
    assert again.get(victim) == known
    again.close()
