"""GPUs: granted by UUID, waited for, and freed when the run's processes are proven dead."""

import pytest

from mosaic.model.errors import BadConfig
from mosaic.model.states import RunState

S = RunState


def test_a_run_waits_for_mandatory_gpus_and_shows_it(make_lab):
    lab = make_lab("--gpus", "1")
    first = lab.submit(steps=1_000_000, rate=100, gpus={"requested": 1, "mandatory": True})
    lab.wait_for(first, S.EXECUTING)
    second = lab.submit(steps=10, gpus={"requested": 1, "mandatory": True})
    lab.wait_until_run(second, lambda run: run.waiting_for != "", "a note")

    assert lab.client.get_run(second.run_id).waiting_for == "1 GPU (0 free)"
    assert lab.client.get_run(first.run_id).granted == ("GPU-fake-0",)
    lab.client.cancel_run(first.run_id)

    assert lab.wait_until_over(second).state is S.TERMINATED


def test_a_run_with_optional_gpus_runs_without_them(make_lab):
    lab = make_lab("--gpus", "0")

    end = lab.wait_until_over(lab.submit(steps=10, gpus={"requested": 2, "mandatory": False}))

    assert (end.state, end.granted) == (S.TERMINATED, ())


def test_more_than_the_machine_has_is_a_submit_error(make_lab):
    lab = make_lab("--gpus", "2")

    with pytest.raises(BadConfig, match="gpus"):
        lab.submit(gpus={"requested": 3, "mandatory": True})


def test_no_gpu_is_granted_twice_when_many_submit_at_once(make_lab):
    lab = make_lab("--gpus", "2")
    runs = [lab.submit(steps=30, rate=60, gpus={"requested": 1, "mandatory": True}) for _ in range(6)]

    for run in runs:
        lab.wait_for(run, S.READY, S.EXECUTING, S.TERMINATED)
        held = [uuid for run in lab.client.list_runs().runs for uuid in run.granted]
        assert len(held) == len(set(held)) <= 2
    assert {lab.wait_until_over(run).state for run in runs} == {S.TERMINATED}
