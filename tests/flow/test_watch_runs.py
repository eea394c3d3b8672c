"""WatchRuns with the real daemon: first all matching runs, then changes."""

import pytest
from lab import wait_until

from mosaic.client import TrainerClient
from mosaic.model.errors import UnknownRun
from mosaic.model.states import RunState


def test_one_run_can_be_watched_to_its_end_without_the_others(lab):
    lab.wait_until_over(lab.submit(steps=5))
    run = lab.submit(steps=200, rate=400)
    seen, ids = [], set()

    for answer in lab.client.watch_runs(run_ids=[run.run_id[:24]], interval_ms=50):
        ids |= {run.run_id for run in answer.runs}
        seen += [run.state for run in answer.runs]
        if seen and seen[-1].is_over:
            break

    assert ids == {run.run_id}
    assert answer.total == 1
    assert seen[-1] is RunState.TERMINATED
    assert answer.runs[0].summary.steps == 200


def test_a_deleted_run_is_reported(lab):
    first, second = (lab.wait_until_over(lab.submit(steps=5)) for _ in range(2))
    answers = lab.client.watch_runs(interval_ms=50)
    whole = next(answers)

    lab.client.delete_run(first.run_id)
    while not (answer := next(answers)).deleted:
        pass

    assert (whole.is_whole, {run.run_id for run in whole.runs}) == (True, {first.run_id, second.run_id})
    assert (answer.deleted, answer.total) == ((first.run_id,), 1)


def test_an_unknown_run_is_an_error(lab):
    with pytest.raises(UnknownRun, match="01ZZZ"):
        next(lab.client.watch_runs(run_ids=["01ZZZ"]))


def test_a_restart_of_the_daemon_is_reported_and_the_whole_list_follows(lab):
    run = lab.wait_until_over(lab.submit(steps=5))
    answers = lab.client.watch_runs(interval_ms=50)
    next(answers)

    lab.stop_daemon()
    while not (broken := next(answers)).problem:
        pass
    TrainerClient.connect(lab.root).close()
    again = next(answers)

    assert "mosaic daemon start" in broken.problem
    assert (again.is_whole, [found.run_id for found in again.runs]) == (True, [run.run_id])


def test_a_view_can_subscribe_without_blocking_and_stop(lab):
    run = lab.submit(steps=1_000_000, rate=50)
    received = []
    stop = lab.client.listen(lambda inner: inner.watch_runs(run_ids=[run.run_id], interval_ms=50), received.append)
    wait_until(lambda: any(found.summary.steps for answer in received for found in answer.runs), words="steps")

    stop()

    count = len(received)
    lab.client.cancel_run(run.run_id)
    lab.wait_until_over(run)
    assert len(received) == count


def test_a_stream_that_fails_delivers_its_error(lab):
    received = []

    stop = lab.client.listen(lambda inner: inner.watch_runs(run_ids=["01ZZZ"]), received.append)
    wait_until(lambda: received, words="the error")
    stop()

    assert isinstance(received[0], UnknownRun)
