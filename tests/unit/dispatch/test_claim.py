from mosaic.dispatch.claim import Start, Wait, decide
from mosaic.model.run import GpuRequest, RunRecord
from mosaic.model.states import RunState


def waiting(name, requested=0, mandatory=False):
    return RunRecord(name, name, "runs", "toy", RunState.INIT, gpus=GpuRequest(requested, mandatory))


def test_runs_start_in_the_order_they_came_until_all_places_are_taken():
    decisions = list(decide([waiting("a"), waiting("b"), waiting("c")], running=1, max_runs=3, free_gpus=[]))

    assert decisions[:2] == [Start("a", ()), Start("b", ())]
    assert decisions[2] == Wait("c", "one of the 3 places to run in")


def test_a_mandatory_request_waits_and_says_for_what():
    (decision,) = decide([waiting("a", 2, mandatory=True)], 0, 8, ["GPU-1"])

    assert decision == Wait("a", "2 GPUs (1 free)")


def test_a_request_that_is_not_mandatory_takes_what_there_is():
    (decision,) = decide([waiting("a", 2)], 0, 8, ["GPU-1"])

    assert decision == Start("a", ("GPU-1",))


def test_nobody_overtakes_a_run_that_waits_for_gpus_but_runs_without_gpus_go_on():
    runs = [
        waiting("big", 2, mandatory=True),
        waiting("small", 1, mandatory=True),
        waiting("none"),
        waiting("maybe", 1),
    ]

    decisions = list(decide(runs, 0, 8, ["GPU-1"]))

    assert [type(decision) for decision in decisions] == [Wait, Wait, Start, Start]
    assert decisions[3] == Start("maybe", ())


def test_one_gpu_is_never_granted_twice():
    decisions = list(decide([waiting("a", 1), waiting("b", 1), waiting("c", 1)], 0, 8, ["GPU-1", "GPU-2"]))

    assert [decision.gpus for decision in decisions] == [("GPU-1",), ("GPU-2",), ()]
