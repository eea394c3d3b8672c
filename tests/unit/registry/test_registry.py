import itertools
import sqlite3

import pytest

from mosaic.model.errors import (
    BadConfig,
    GpuTaken,
    IllegalMove,
    KeyTaken,
    RunIsLive,
    StoreUnavailable,
    UnknownRun,
)
from mosaic.model.run import GpuRequest, Limits, Lineage, Membership, ResourceRequest, Settings
from mosaic.model.states import LIVE_STATES, MOVES, RunState
from mosaic.model.task import Task
from mosaic.registry.registry import Registry

S = RunState
PATHS = {
    S.INIT: [],
    S.HANDSHAKE: [S.HANDSHAKE],
    S.READY: [S.HANDSHAKE, S.READY],
    S.EXECUTING: [S.HANDSHAKE, S.READY, S.EXECUTING],
    S.TERMINATED: [S.HANDSHAKE, S.READY, S.TERMINATED],
    S.FAULTED: [S.FAULTED],
    S.CANCELLED: [S.CANCELLED],
}


def walk(registry, run_id, state):
    for step in PATHS[state]:
        registry.move(run_id, step)
    return run_id


@pytest.mark.parametrize(("old", "new"), list(itertools.product(RunState, RunState)))
def test_a_run_makes_only_the_moves_in_the_table(registry, add, old, new):
    run = walk(registry, add(), old)

    if new in MOVES.get(old, ()):
        registry.move(run, new)
        assert registry.state(run) is new
    else:
        with pytest.raises(IllegalMove, match=f"is {old}; it cannot become {new}"):
            registry.move(run, new)


def test_the_history_has_every_move_with_its_reason(registry, add):
    run = add()

    registry.move(run, S.HANDSHAKE)
    registry.move(run, S.FAULTED, "SIGSEGV")

    moves = [(move.old, move.new, move.reason) for move in registry.history(run)]
    assert moves == [(None, S.INIT, ""), (S.INIT, S.HANDSHAKE, ""), (S.HANDSHAKE, S.FAULTED, "SIGSEGV")]
    assert registry.get(run).reason == "SIGSEGV"


def test_a_refused_move_leaves_row_history_and_revision_as_they_were(registry, add):
    run = walk(registry, add(), S.TERMINATED)
    before = registry.get(run), registry.history(run), registry.revision()

    with pytest.raises(IllegalMove):
        registry.move(run, S.FAULTED, "too late")

    assert (registry.get(run), registry.history(run), registry.revision()) == before


def test_of_two_writers_that_end_a_run_one_wins(registry, add, tmp_path):
    run = add()
    other = Registry.open(tmp_path / "registry.db")

    other.move(run, S.CANCELLED)
    with pytest.raises(IllegalMove):
        registry.move(run, S.FAULTED)

    other.close()
    assert [move.new for move in registry.history(run)] == [S.INIT, S.CANCELLED]


def test_a_record_holds_what_was_submitted(registry, add, tmp_path):
    fields = {
        "name": "Name ü",
        "tags": ("a", "b"),
        "total_steps": 2**40,
        "gpus": GpuRequest(2, True),
        "limits": Limits(time_s=1.5, quiet_s=7.0),
    }
    run = add(**fields)

    registry.close()
    reopened = Registry.open(tmp_path / "registry.db")
    record = reopened.get(run)
    reopened.close()

    assert {name: getattr(record, name) for name in fields} == fields
    assert record.state is S.INIT


def test_a_record_names_algorithm_environment_and_seed(registry, add):
    run = add(settings=Settings({"algo": "ppo", "env_id": "CartPole-v1", "seed": 3}))

    assert registry.get(run).task == Task("ppo", "CartPole-v1", 3)
    assert registry.get(add()).task == Task()


def test_only_the_same_idempotency_key_makes_two_submits_one(registry, make_config):
    first, first_is_new = registry.add(make_config(idempotency_key="k"))
    second, second_is_new = registry.add(make_config(idempotency_key="k"))
    registry.add(make_config())
    registry.add(make_config())

    assert (first_is_new, second_is_new) == (True, False)
    assert second.run_id == first.run_id
    assert registry.with_key("k", "") == first
    assert registry.with_key("", "") is None
    assert registry.count() == 3


def test_an_idempotency_key_belongs_to_one_config(registry, make_config):
    first, _ = registry.add(make_config(idempotency_key="k", config_hash="one", name="first"))
    registry.add(make_config(idempotency_key="old"))  # as a MOSAIC without hashes wrote it

    with pytest.raises(KeyTaken, match=rf"'k' belongs to run {first.run_id} \(first\).*another config"):
        registry.add(make_config(idempotency_key="k", config_hash="two"))

    assert registry.add(make_config(idempotency_key="k", config_hash="one")) == (first, False)
    assert registry.add(make_config(idempotency_key="old", config_hash="two"))[1] is False
    assert registry.count() == 2


def test_a_run_id_is_used_once_even_after_its_run_was_deleted(registry, add):
    living, gone = add(), walk(registry, add(), S.FAULTED)
    registry.delete(gone)

    for run in (living, gone):
        with pytest.raises(BadConfig, match=r"metadata\.run_id: .* has been used before"):
            add(run)

    assert registry.count() == 1


def test_lists_are_newest_first_and_live_is_oldest_first(registry, add):
    # These ids do not sort by time: users may choose their own.
    first, second, third = add("02" + "0" * 24), add("01" + "0" * 24), add("03" + "0" * 24)
    registry.move(second, S.FAULTED)

    assert [run.run_id for run in registry.list()] == [third, second, first]
    assert [run.run_id for run in registry.list(limit=2)] == [third, second]
    assert [run.run_id for run in registry.list([S.INIT])] == [third, first]
    assert [run.run_id for run in registry.live()] == [first, third]
    assert (registry.count(), registry.count([S.FAULTED]), registry.count(LIVE_STATES)) == (3, 1, 2)


def test_listing_and_counting_states_use_an_index(registry):
    plans = [
        registry._db.execute(f"EXPLAIN QUERY PLAN {sql}").fetchall()
        for sql in (
            "SELECT name FROM runs ORDER BY number DESC LIMIT 50",
            "SELECT count(*) FROM runs WHERE state IN ('INIT', 'READY')",
            "SELECT name FROM runs WHERE revision > 5 ORDER BY revision",
            "SELECT name FROM runs WHERE id >= '01' AND id < '01~'",
        )
    ]

    assert not [plan for plan in plans if "TEMP B-TREE" in str(plan)]
    assert all("USING" in str(plan) for plan in plans[1:])


def test_runs_with_incomplete_telemetry_are_found(registry, add):
    _, unfinished = add(), walk(registry, add(), S.FAULTED)

    registry.note(unfinished, telemetry="incomplete")

    assert [run.run_id for run in registry.incomplete()] == [unfinished]


CHANGES = {
    "move": lambda registry, run: registry.move(run, S.READY),
    "raise_attempt": lambda registry, run: registry.raise_attempt(run),
    "request_cancel": lambda registry, run: registry.request_cancel(run),
    "note": lambda registry, run: registry.note(run, held_by="pid namespace"),
    "set_session": lambda registry, run: registry.set_session(run, "hash"),
    "set_session with capabilities": lambda registry, run: registry.set_session(run, "", {"max_agents": 2}),
    "note_heartbeat_calls": lambda registry, run: registry.note_heartbeat_calls(run),
    "free_gpus": lambda registry, run: registry.free_gpus(run),
    "drain_gpus": lambda registry, run: registry.drain_gpus(run, "unkillable"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_every_change_stamps_the_row_with_a_new_revision(registry, add, change):
    run = add()
    registry.claim(run, ["GPU-a"])
    before = registry.revision()

    CHANGES[change](registry, run)

    assert registry.get(run).revision == registry.revision() == before + 1


def test_repeating_a_call_changes_nothing(registry, add):
    run = add()
    registry.claim(run, [])
    registry.note(run, held_by="subreaper", telemetry="draining 3 MB")
    registry.request_cancel(run)
    registry.set_session(run, "hash", {"max_agents": 2})
    registry.note_heartbeat_calls(run)
    before = registry.revision()

    registry.note(run, held_by="subreaper")
    registry.note(run)
    registry.request_cancel(run)
    registry.set_session(run, "hash")
    registry.set_session(run, "hash", {"max_agents": 2})
    registry.note_heartbeat_calls(run)
    registry.free_gpus(run)

    assert registry.revision() == before
    assert registry.get(run).telemetry == "draining 3 MB"


def test_a_claim_raises_the_attempt_and_grants_the_gpus_in_their_order(registry, add):
    run = add()
    registry.note(run, waiting_for="2 GPUs")

    attempt = registry.claim(run, ["GPU-b", "GPU-a"])

    record = registry.get(run)
    assert (attempt, record.attempt, record.state) == (1, 1, S.HANDSHAKE)
    assert record.granted == ("GPU-b", "GPU-a")
    assert record.waiting_for == ""
    assert registry.gpu_owners() == {"GPU-b": run, "GPU-a": run}


def test_a_claim_with_a_taken_gpu_changes_nothing(registry, add):
    owner, drained, late = add(), add(), add()
    registry.claim(owner, ["GPU-a"])
    registry.claim(drained, ["GPU-d"])
    registry.drain_gpus(drained, "unkillable")

    for gpus in (["GPU-b", "GPU-a"], ["GPU-b", "GPU-d"], ["GPU-b", "GPU-b"]):
        with pytest.raises(GpuTaken):
            registry.claim(late, gpus)

    assert registry.get(late).state is S.INIT
    assert registry.get(late).attempt == 0
    assert registry.gpu_owners() == {"GPU-a": owner}


def test_a_run_is_claimed_once(registry, add):
    run = add()
    registry.claim(run, [])

    with pytest.raises(IllegalMove):
        registry.claim(run, [])

    assert registry.get(run).attempt == 1


def test_a_run_with_a_requested_cancel_is_not_claimed(registry, add):
    run = add()
    registry.request_cancel(run)

    with pytest.raises(IllegalMove, match="being cancelled"):
        registry.claim(run, [])


def test_an_attempt_is_raised_only_during_the_handshake_and_ends_the_session(registry, add):
    run = add()
    with pytest.raises(IllegalMove):
        registry.raise_attempt(run)
    registry.claim(run, [])
    registry.set_session(run, "hash")

    assert registry.raise_attempt(run) == 2
    assert registry.session(run) == ""


def test_cancelling_a_run_that_is_over_changes_nothing(registry, add):
    run = walk(registry, add(), S.TERMINATED)

    record = registry.request_cancel(run)

    assert record.state is S.TERMINATED
    assert not record.cancel_requested


def test_freed_gpus_are_free_and_drained_ones_wait_for_the_user(registry, add):
    first, second, third = add(), add(), add()
    registry.claim(first, ["GPU-a"])
    registry.free_gpus(first)
    registry.claim(second, ["GPU-a"])

    registry.drain_gpus(second, "run was unkillable")

    assert registry.gpu_owners() == {}
    assert registry.drained() == {"GPU-a": "run was unkillable"}
    registry.undrain("GPU-a")
    registry.claim(third, ["GPU-a"])
    assert registry.gpu_owners() == {"GPU-a": third}


def test_only_a_run_that_is_over_and_holds_no_gpu_is_deleted(registry, add):
    run = add()
    registry.claim(run, ["GPU-a"])

    with pytest.raises(RunIsLive):
        registry.delete(run)
    registry.move(run, S.FAULTED)
    with pytest.raises(GpuTaken):
        registry.delete(run)
    registry.free_gpus(run)
    registry.delete(run)

    assert not registry.has(run)
    assert registry.history(run) == []


def test_every_query_of_an_unknown_run_raises_unknown_run(registry):
    questions = (
        registry.get,
        registry.state,
        registry.session,
        registry.delete,
        registry.request_cancel,
        registry.raise_attempt,
        registry.note,
        lambda run: registry.move(run, S.READY),
        lambda run: registry.claim(run, []),
        lambda run: registry.set_session(run, "hash"),
        registry.capabilities,
        registry.note_heartbeat_calls,
    )

    for question in questions:
        with pytest.raises(UnknownRun, match="There is no run 'unknown'"):
            question("unknown")


def test_a_full_disk_is_reported_and_the_registry_works_again_afterwards(registry, add):
    run = add()
    pages = registry._db.execute("PRAGMA page_count").fetchone()[0]
    registry._db.execute(f"PRAGMA max_page_count = {pages}")

    with pytest.raises(StoreUnavailable, match="Nothing was changed"):
        registry.move(run, S.FAULTED, "x" * 100_000)

    registry._db.execute("PRAGMA max_page_count = 100000")
    assert registry.state(run) is S.INIT
    assert registry.move(run, S.FAULTED).state is S.FAULTED


def test_commits_wait_for_the_disk(registry):
    pragmas = [registry._db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("journal_mode", "synchronous")]

    assert pragmas == ["wal", 2]  # 2 is FULL


def test_only_the_owner_can_read_the_file(registry, tmp_path):
    modes = {path.name: oct(path.stat().st_mode & 0o777) for path in tmp_path.iterdir()}

    assert modes.pop("registry.db") == "0o600"
    assert set(modes.values()) <= {"0o600"}


def test_a_programming_error_is_not_reported_as_a_full_disk(registry):
    with pytest.raises(sqlite3.OperationalError, match="no such table"), registry._changes.change():
        registry._db.execute("DELETE FROM nowhere")

    assert registry.revision() == 0


def test_a_run_keeps_its_resources_its_parent_and_its_settings(registry, make_config):
    parent = registry.add(make_config())[0].run_id
    config = make_config(
        resources=ResourceRequest(2.5, 4096),
        lineage=Lineage(parent, "resume"),
        settings=Settings({"extras.seed": 3}, "the worker has no schema"),
    )

    record, _ = registry.add(config)

    assert (record.resources, record.lineage) == (ResourceRequest(2.5, 4096), Lineage(parent, "resume"))
    assert (registry.settings(record.run_id), record.settings_note) == ({"extras.seed": 3}, "the worker has no schema")
    assert [child.run_id for child in registry.children(parent)] == [record.run_id]


def test_a_run_keeps_its_experiment_and_its_origin(registry, make_config):
    membership = Membership("lr-sweep", {"learning_rate": 0.001})
    config = make_config(membership=membership, origin="tensorboard:runs/1")

    registry.add(config)

    found = registry.get(config.run_id)
    assert (found.membership, found.origin, found.note) == (membership, "tensorboard:runs/1", "")
