"""WatchRuns: first all that match, then what changed, against the real daemon."""

import pytest
from lab import wait_until

from mosaic.client import TrainerClient
from mosaic.model.errors import UnknownRun
from mosaic.model.states import RunState


def test_one_run_can_be_watched_to_its_end_and_no_other_is_told(lab):
    lab.wait_until_over(lab.submit(steps=5))
    run = lab.submit(steps=200, rate=400)
    seen, ids = [], set()

    for answer in lab.client.watch_runs(run_ids=[run.run_id[:24]], interval_ms=50):
        ids |= {told.run_id for told in answer.runs}
        seen += [told.state for told in answer.runs]
        if seen and seen[-1].is_over:
            break

    assert ids == {run.run_id}
    assert answer.total == 1
    assert seen[-1] is RunState.TERMINATED
    assert answer.runs[0].summary.steps == 200


def test_a_deleted_run_is_named(lab):
    first, second = (lab.wait_until_over(lab.submit(steps=5)) for _ in range(2))
    answers = lab.client.watch_runs(interval_ms=50)
    whole = next(answers)

    lab.client.delete_run(first.run_id)
    while not (answer := next(answers)).deleted:
        pass

    assert (whole.is_whole, {run.run_id for run in whole.runs}) == (True, {first.run_id, second.run_id})
    assert (answer.deleted, answer.total) == ((first.run_id,), 1)


def test_a_run_that_nobody_knows_is_an_error(lab):
    with pytest.raises(UnknownRun, match="01ZZZ"):
        next(lab.client.watch_runs(run_ids=["01ZZZ"]))


def test_a_restart_of_the_daemon_is_told_and_the_whole_list_follows(lab):
    run = lab.wait_until_over(lab.submit(steps=5))
    answers = lab.client.watch_runs(interval_ms=50)
    next(answers)

    lab.stop_daemon()
    while not (broken := next(answers)).trouble:
        pass
    TrainerClient.connect(lab.root).close()
    again = next(answers)

    assert "mosaic daemon start" in broken.trouble
    assert (again.is_whole, [told.run_id for told in again.runs]) == (True, [run.run_id])


def test_a_view_can_listen_without_waiting_and_stop(lab):
    run = lab.submit(steps=1_000_000, rate=50)
    heard = []
    stop = lab.client.listen(lambda inner: inner.watch_runs(run_ids=[run.run_id], interval_ms=50), heard.append)
    wait_until(lambda: any(told.summary.steps for answer in heard for told in answer.runs), words="steps")

    stop()

    count = len(heard)
    lab.client.cancel_run(run.run_id)
    lab.wait_until_over(run)
    assert len(heard) == count


def test_a_stream_that_fails_is_heard_as_its_error(lab):
    heard = []

    stop = lab.client.listen(lambda inner: inner.watch_runs(run_ids=["01ZZZ"]), heard.append)
    wait_until(lambda: heard, words="the error")
    stop()

    assert isinstance(heard[0], UnknownRun)
