"""What a client of WatchRuns is told: each change once, and nothing is looked at that cannot have changed."""

from mosaic.daemon.watching import SETTLING_S, Selection, Told, Wanted
from mosaic.model.run import RunRecord
from mosaic.model.states import RunState
from mosaic.wire import mosaic_pb2 as pb

NOW = 1_000_000.0


def record(run_id="A", state=RunState.TERMINATED, revision=1, **fields):
    return RunRecord(run_id, "", "runs", "toy", state, revision=revision, updated_at=NOW - 2 * SETTLING_S, **fields)


def test_each_change_is_told_once():
    told, runs = Told(), [record("A"), record("B")]
    infos = [pb.RunInfo(run_id="A"), pb.RunInfo(run_id="B")]

    first = told.news(runs, infos)
    again = told.news(runs, [pb.RunInfo(run_id="A", reason="new"), pb.RunInfo(run_id="B")])

    assert [info.run_id for info in first[0]] == ["A", "B"]
    assert [info.run_id for info in again[0]] == ["A"]


def test_a_run_that_is_gone_is_named_once():
    told = Told()
    told.news([record("A"), record("B")], [pb.RunInfo(run_id="A"), pb.RunInfo(run_id="B")])

    assert told.news([record("B")], []) == ([], ["A"])
    assert told.news([record("B")], []) == ([], [])


def test_a_run_that_is_over_is_not_looked_at_again_until_its_row_changes():
    told = Told()
    told.news([record()], [pb.RunInfo(run_id="A")])

    assert not told.may_differ(record(), NOW)
    assert told.may_differ(record(revision=2), NOW)


def test_runs_that_live_drain_or_have_just_ended_are_looked_at_every_time():
    told = Told()
    told.news([record()], [pb.RunInfo(run_id="A")])

    assert told.may_differ(record(state=RunState.EXECUTING), NOW)
    assert told.may_differ(record(telemetry="incomplete"), NOW)
    assert told.may_differ(record(), NOW - 1.5 * SETTLING_S)


class Rows:
    """A registry that counts how often it is read."""

    def __init__(self):
        self.reads, self.at = 0, 1

    def revision(self):
        return self.at

    def list(self, states, limit):
        self.reads += 1
        return [record()]

    def count(self, states):
        return 1


def test_rows_are_read_again_only_when_one_of_them_has_changed():
    rows, selection = Rows(), Selection(Wanted())

    first = selection.read(rows)
    same = selection.read(rows)
    rows.at += 1
    selection.read(rows)

    assert first == same == ([record()], 1)
    assert rows.reads == 2
