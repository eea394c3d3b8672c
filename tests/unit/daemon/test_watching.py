"""What a client of WatchRuns receives: each change once. Runs that cannot have changed are not read."""

from mosaic.daemon.watching import SETTLING_S, Query, Selection, Sent
from mosaic.model.run import RunRecord
from mosaic.model.states import RunState
from mosaic.wire import mosaic_pb2 as pb

NOW = 1_000_000.0


def record(run_id="A", state=RunState.TERMINATED, revision=1, **fields):
    return RunRecord(run_id, "", "runs", "toy", state, revision=revision, updated_at=NOW - 2 * SETTLING_S, **fields)


def test_each_change_is_sent_once():
    sent, runs = Sent(), [record("A"), record("B")]
    infos = [pb.RunInfo(run_id="A"), pb.RunInfo(run_id="B")]

    first = sent.news(runs, infos)
    again = sent.news(runs, [pb.RunInfo(run_id="A", reason="new"), pb.RunInfo(run_id="B")])

    assert [info.run_id for info in first[0]] == ["A", "B"]
    assert [info.run_id for info in again[0]] == ["A"]


def test_a_deleted_run_is_sent_once():
    sent = Sent()
    sent.news([record("A"), record("B")], [pb.RunInfo(run_id="A"), pb.RunInfo(run_id="B")])

    assert sent.news([record("B")], []) == ([], ["A"])
    assert sent.news([record("B")], []) == ([], [])


def test_a_run_that_is_over_is_not_read_again_until_its_row_changes():
    sent = Sent()
    sent.news([record()], [pb.RunInfo(run_id="A")])

    assert not sent.may_differ(record(), NOW)
    assert sent.may_differ(record(revision=2), NOW)


def test_runs_that_are_live_draining_or_just_ended_are_read_every_time():
    sent = Sent()
    sent.news([record()], [pb.RunInfo(run_id="A")])

    assert sent.may_differ(record(state=RunState.EXECUTING), NOW)
    assert sent.may_differ(record(telemetry="incomplete"), NOW)
    assert sent.may_differ(record(), NOW - 1.5 * SETTLING_S)


class Rows:
    """A registry that counts how often it is read."""

    def __init__(self):
        self.reads, self.at = 0, 1

    def revision(self):
        return self.at

    def list(self, states, limit, experiment=""):
        self.reads += 1
        return [record()]

    def count(self, states, experiment=""):
        return 1


def test_rows_are_read_again_only_if_one_of_them_has_changed():
    rows, selection = Rows(), Selection(Query())

    first = selection.read(rows)
    same = selection.read(rows)
    rows.at += 1
    selection.read(rows)

    assert first == same == ([record()], 1)
    assert rows.reads == 2
