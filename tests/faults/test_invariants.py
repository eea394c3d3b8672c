"""The judge must find every kind of damage: a good run is damaged in one way at a time."""

import contextlib
import shutil
import sqlite3
import tempfile
from pathlib import Path

import pytest
from invariants import CANCEL, FAILURE, Witness, _check_commands, _check_record, violations_of
from lab import Lab

from mosaic.ingest.file import connect
from mosaic.model.rundir import RunDir, StateRoot
from mosaic.model.states import RunState

S = RunState


@pytest.fixture(scope="module")
def good():
    """A state root with one finished run of the toy worker."""
    home = Path(tempfile.mkdtemp(prefix="mosaic-"))
    lab = Lab(home)
    try:
        run = lab.submit(steps=60, text_every=7, stderr_lines=5, record=str(home / "record"), record_sync=True)
        lab.wait_until_over(run)
        lab.stop_daemon()
        yield home, run.run_id
    finally:
        lab.close()
        shutil.rmtree(home, ignore_errors=True)


@pytest.fixture
def copy(good, tmp_path):
    home, run_id = good
    shutil.copytree(home, tmp_path / "h", ignore=shutil.ignore_patterns("*.sock"))
    return StateRoot(tmp_path / "h"), run_id


def judge(copy, **witnessed):
    root, run_id = copy
    witnessed = {"may_end": {(S.TERMINATED, "")}, "record": root.path / "record"} | witnessed
    return list(violations_of(root, Witness(run_id, **witnessed)))


def change(path, sql):
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute(sql)
        db.commit()


def test_a_good_run_has_no_violation(copy):
    assert judge(copy, seen=[S.INIT, S.HANDSHAKE, S.EXECUTING, S.TERMINATED]) == []


def test_a_file_that_a_daemon_has_open_can_be_judged(copy):
    """Schedule 681 of seed 1711: EIO at its end left it in WAL mode, and the daemon that showed it had locked it."""
    root, run_id = copy
    with contextlib.closing(connect(root.run("runs", run_id).telemetry, read_only=False)):
        assert judge(copy) == []


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        ("DELETE FROM steps WHERE step_index = 30", "seqs are not"),
        ("UPDATE steps SET step_index = 31 WHERE step_index = 30", 'is ["step", 31] and should be ["step", 30]'),
        ("DELETE FROM lifecycle WHERE event = 'run_completed'", "lines of its spool"),
        (
            "INSERT INTO metrics SELECT 9999, ts_ns, step, name_set, value_list, extra FROM metrics LIMIT 1",
            "seqs are not",
        ),
        ("DELETE FROM logs WHERE stream = 0 AND offset > 100", "lines of its spool"),
        ("UPDATE logs SET text = x'00' WHERE stream = 1", "stderr has"),
        ("UPDATE cursor SET next_offset = next_offset - 1 WHERE stream = 0", "the store ends at"),
    ],
)
def test_a_damaged_store_is_found(copy, spoil, words):
    root, run_id = copy
    change(root.run("runs", run_id).telemetry, spoil)

    assert any(words in violation for violation in judge(copy))


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        ("UPDATE runs SET state = 'EXECUTING'", "it is still EXECUTING"),
        ("UPDATE runs SET state = 'FAULTED', reason = 'exit code 1'", "it ended as FAULTED"),
        ("DELETE FROM history WHERE new = 'READY'", "it moved from HANDSHAKE to"),
        ("DELETE FROM runs", "not in the registry"),
    ],
)
def test_a_damaged_registry_is_found(copy, spoil, words):
    change(copy[0].registry, spoil)

    assert any(words in violation for violation in judge(copy))


STEPS = [("step", number) for number in range(5)]


@pytest.mark.parametrize(
    ("stored", "noted", "is_good"),
    [
        ([*STEPS, CANCEL], [*STEPS, CANCEL], True),
        ([*STEPS, CANCEL], [*STEPS[:4], CANCEL], True),  # the SIGTERM arrived between the line and its note
        ([*STEPS, CANCEL], [*STEPS[:3], CANCEL], False),
        ([*STEPS[:3], CANCEL], [*STEPS[:4], CANCEL], False),
        ([*STEPS], [*STEPS[:4]], True),  # so did a SIGKILL
        ([*STEPS], [*STEPS[:3]], False),
        ([*STEPS[:4]], [*STEPS], False),
    ],
)
def test_the_record_of_a_worker_matches_the_store_except_for_one_interrupted_line(tmp_path, stored, noted, is_good):
    record = tmp_path / "record"
    record.write_text("".join(f"{number} {kind} {step}\n" for number, (kind, step) in enumerate(noted)))

    violations = list(_check_record(stored, RunDir(tmp_path), Witness("", set(), record=record)))

    assert (violations == []) == is_good


@pytest.mark.parametrize(("spool", "is_good"), [(b"xxx%b", True), (b"xxx\n%b", False), (b"", False)])
def test_a_cancel_that_ended_the_line_which_it_cut_is_no_line_of_its_own(tmp_path, spool, is_good):
    (tmp_path / "record").write_text("0 step 0\n1 lifecycle:run_cancelled 0\n")
    rundir = RunDir(tmp_path / "run")
    rundir.stdout.parent.mkdir(parents=True)
    rundir.stdout.write_bytes(spool.replace(b"%b", b'{"event":"run_cancelled"}\n'))

    witness = Witness("", set(), record=tmp_path / "record")

    assert (list(_check_record(STEPS[:1], rundir, witness)) == []) == is_good


@pytest.mark.parametrize(("may_lose_lines", "is_good"), [(True, True), (False, False)])
def test_a_line_that_print_wrote_late_is_good_only_if_the_disk_refused_lines(tmp_path, may_lose_lines, is_good):
    record = tmp_path / "record"
    record.write_text("0 step 0\n1 lifecycle:run_failed 0\n")
    witness = Witness("", set(), record=record, may_lose_lines=may_lose_lines)

    assert (list(_check_record([*STEPS[:2], FAILURE], RunDir(tmp_path), witness)) == []) == is_good


@pytest.mark.parametrize(
    ("carried_out", "words"),
    [
        ([1, 2, 3], ""),
        ([1, 2], "3 commands were acknowledged and its worker carried out 2"),
        ([1, 3], "its worker carried out the commands [1, 3]"),
        ([1, 2, 2, 3], "its worker carried out the commands [1, 2, 2, 3]"),
    ],
)
def test_a_command_that_is_lost_or_carried_out_twice_is_found(tmp_path, carried_out, words):
    rundir = RunDir(tmp_path / "runs" / "r")
    rundir.make()
    rundir.commands.write_text("".join(f'{{"seq": {seq}}}\n' for seq in (1, 2, 3)))
    record = tmp_path / "record"
    record.write_text("".join(f"{number} command {seq}\n" for number, seq in enumerate(carried_out)))
    witness = Witness("r", set(), takes_commands=True, acknowledged=[1, 2, 3], record=record)

    found = list(_check_commands(rundir, S.TERMINATED, witness))

    assert found[:1] == ([words] if words else [])


def test_a_reported_state_that_is_not_in_the_history_is_found(copy):
    assert "it was reported as CANCELLED" in judge(copy, seen=[S.INIT, S.CANCELLED])[0]


def test_an_acknowledged_cancel_that_did_not_happen_is_found(copy):
    assert "it ended as TERMINATED" in judge(copy, cancel_answered=True)[0]


def test_a_second_start_is_found(copy):
    with open(copy[0].path / "record", "a") as record:
        record.write("0 lifecycle:run_started 0\n")

    assert "its worker was started 2 times" in judge(copy)


def test_a_leftover_segment_is_found(copy):
    segment = Path(f"/dev/shm/mosaic.fastlane.{copy[1]}.judge")
    segment.touch()
    try:
        assert f"{segment} is left over" in judge(copy)
    finally:
        segment.unlink()


def test_a_deleted_run_that_still_exists_is_found(copy):
    assert judge(copy, is_deleted=True) == ["it was deleted and still exists"]
