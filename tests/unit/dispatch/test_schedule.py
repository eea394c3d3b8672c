import random
from dataclasses import replace

import pytest

from mosaic.dispatch.schedule import Start, Wait, decide, take_turns
from mosaic.model.machine import Machine
from mosaic.model.run import GpuRequest, Membership, ResourceRequest, RunRecord
from mosaic.model.states import RunState

LARGE = Machine(64.0, 65536)
SMALL = Machine(2.0, 4096)


def waiting(name, gpus=0, mandatory=False, cpus=1.0, memory_mb=0):
    asked = ResourceRequest(cpus, memory_mb)
    return RunRecord(name, name, "runs", "toy", RunState.INIT, gpus=GpuRequest(gpus, mandatory), resources=asked)


def decisions(runs, running=(), machine=LARGE, max_runs=8, free_gpus=(), gpu_count=8, limits=None):
    return list(decide(runs, running, machine, max_runs, free_gpus, gpu_count, limits))


def started(found):
    return [decision.run_id for decision in found if isinstance(decision, Start)]


def test_runs_start_in_the_order_of_submission_until_all_slots_are_taken():
    found = decisions([waiting("a"), waiting("b"), waiting("c")], [waiting("x")], max_runs=3)

    assert found[:2] == [Start("a", ()), Start("b", ())]
    assert found[2] == Wait("c", "a free slot: 3 runs are live, the most that are allowed")


def test_a_mandatory_request_waits_and_shows_for_what():
    (found,) = decisions([waiting("a", 2, mandatory=True)], free_gpus=["GPU-1"])

    assert found == Wait("a", "2 GPUs (1 free)")


def test_a_request_that_is_not_mandatory_gets_what_is_free():
    (found,) = decisions([waiting("a", 2)], free_gpus=["GPU-1"])

    assert found == Start("a", ("GPU-1",))


def test_a_run_that_waits_for_gpus_delays_runs_with_gpus_but_not_runs_without():
    runs = [
        waiting("big", 2, mandatory=True),
        waiting("small", 1, mandatory=True),
        waiting("none"),
        waiting("maybe", 1),
    ]

    found = decisions(runs, free_gpus=["GPU-1"])

    assert [type(decision) for decision in found] == [Wait, Wait, Start, Start]
    assert found[3] == Start("maybe", ())


def test_a_run_that_requests_more_gpus_than_the_machine_has_delays_no_other():
    # It was submitted when there were two; after a reboot, or with another driver, there may be one.
    runs = [waiting("big", 2, mandatory=True), waiting("small", 1, mandatory=True)]

    found = decisions(runs, free_gpus=["GPU-1"], gpu_count=1)

    assert found[0] == Wait("big", "2 GPUs, but this machine has 1. Cancel it, or restart the daemon with more")
    assert found[1] == Start("small", ("GPU-1",))


def test_one_gpu_is_never_granted_twice():
    found = decisions([waiting("a", 1), waiting("b", 1), waiting("c", 1)], free_gpus=["GPU-1", "GPU-2"])

    assert [decision.gpus for decision in found] == [("GPU-1",), ("GPU-2",), ()]


def test_as_many_runs_start_as_there_are_cpus_and_the_next_shows_who_uses_them():
    found = decisions([waiting("a"), waiting("b"), waiting("c")], machine=SMALL)

    assert started(found) == ["a", "b"]
    assert found[2] == Wait("c", "1 CPU: 2 of 2 in use by a a, b b")


def test_of_many_runs_that_use_the_cpus_a_few_are_named():
    running = [waiting(f"r{number}", cpus=0.4) for number in range(5)]

    (found,) = decisions([waiting("a")], running, machine=SMALL)

    assert found.waiting_for == "1 CPU: 2 of 2 in use by r0 r0, r1 r1, r2 r2 and 2 more"


def test_fractions_of_cpus_add_up():
    found = decisions([waiting(name, cpus=0.1) for name in "abcdefghij"] + [waiting("k")], machine=SMALL, max_runs=99)

    assert len(started(found)) == 11


def test_runs_wait_for_memory_as_they_do_for_cpus():
    found = decisions([waiting("a", memory_mb=3072), waiting("b", memory_mb=2048)], machine=SMALL)

    assert started(found) == ["a"]
    assert found[1] == Wait("b", "2 GB of memory: 3 GB of 4 GB are requested by other runs")


def test_a_small_run_does_not_overtake_a_large_one_that_waits():
    running = [waiting("x")]
    found = decisions([waiting("large", cpus=2.0), waiting("small")], running, machine=SMALL)

    assert found[0] == Wait("large", "2 CPUs: 1 of 2 in use by x x")
    assert found[1] == Wait("small", "its turn: large large is ahead of it and needs more than is free")


def test_a_run_that_requests_nothing_waits_only_for_a_slot():
    busy = [waiting("x", cpus=2.0, memory_mb=4096), waiting("first", cpus=0.0)]
    drivers = [waiting("driver", cpus=0.0), waiting("another", cpus=0.0)]

    found = decisions([waiting("large", cpus=2.0), *drivers], busy, machine=SMALL, max_runs=2)

    assert started(found) == ["driver"]
    assert found[2] == Wait("another", "a free slot: 2 runs are live, the most that are allowed")


def test_drivers_leave_the_slots_to_the_runs_that_they_wait_for():
    found = decisions([waiting("trial"), waiting("second")], [waiting("driver", cpus=0.0)], max_runs=1)

    assert started(found) == ["trial"]
    assert found[1] == Wait("second", "a free slot: 1 runs are live, the most that are allowed")


def test_a_run_that_requests_nothing_starts_even_when_more_is_in_use_than_allowed():
    busy = [waiting("x", cpus=8.0, memory_mb=9000)]

    assert started(decisions([waiting("driver", cpus=0.0)], busy, machine=SMALL)) == ["driver"]


def test_a_run_that_waits_for_cpus_keeps_its_gpus():
    runs = [waiting("first", 1, mandatory=True), waiting("second", 1, cpus=0.0)]

    found = decisions(runs, [waiting("x", cpus=2.0)], machine=SMALL, free_gpus=["GPU-1"])

    assert isinstance(found[0], Wait)
    assert found[1] == Start("second", ())


def test_a_request_larger_than_the_machine_delays_no_other_run():
    found = decisions([waiting("huge", cpus=8.0), waiting("vast", memory_mb=9216), waiting("a")], machine=SMALL)

    assert found[0].waiting_for.startswith("8 CPUs, but runs may use 2")
    assert found[1].waiting_for.startswith("9 GB of memory, but runs may use 4 GB")
    assert started(found) == ["a"]


@pytest.mark.parametrize("seed", range(20))
def test_no_run_starves_and_the_machine_is_never_overcommitted(seed):
    """Runs arrive and end at random times; all start in the order of submission."""
    dice = random.Random(seed)
    queue, running, number = [], [], 0
    for _ in range(300):
        if dice.random() < 0.7:
            number += 1
            asked = {"cpus": dice.choice([0.5, 1.0, 2.0]), "memory_mb": dice.choice([0, 1024, 4096])}
            queue.append(waiting(str(number), **asked))
        if running and dice.random() < 0.8:
            running.pop(dice.randrange(len(running)))
        begun = started(decisions(queue, running, machine=SMALL))
        # In the order of submission: a run that starts overtakes no earlier one.
        assert begun == [run.run_id for run in queue[: len(begun)]]
        running += queue[: len(begun)]
        queue = queue[len(begun) :]
        assert sum(run.resources.cpus for run in running) <= SMALL.cpus
        assert sum(run.resources.memory_mb for run in running) <= SMALL.memory_mb


def member(name, experiment="sweep", axes=True, **asked):
    return replace(waiting(name, **asked), membership=Membership(experiment, {"seed": name} if axes else {}))


def test_an_experiment_has_at_most_as_many_runs_at_a_time_as_it_allows_and_delays_no_others():
    runs = [member("a"), member("b"), member("other", "free"), waiting("none")]

    found = decisions(runs, [member("x")], limits={"sweep": 2})

    assert started(found) == ["a", "other", "none"]
    assert found[1] == Wait("b", "another run of the experiment sweep (at most 2 at a time)")


def test_a_run_that_waits_for_its_experiment_keeps_no_gpus_and_no_place_in_the_queue():
    runs = [member("a", gpus=1, mandatory=True, cpus=2.0), waiting("b", 1, mandatory=True)]

    found = decisions(runs, [member("x", cpus=1.0)], machine=SMALL, free_gpus=["GPU-1"], limits={"sweep": 1})

    assert found[1] == Start("b", ("GPU-1",))


def test_on_a_cluster_runs_in_its_queue_count_for_the_limit_of_their_experiment():
    waiting_ones = [member("b"), member("c"), member("d", "other"), member("driver", axes=False)]

    ready, waits = take_turns(waiting_ones, [member("a")], {"sweep": 2})

    assert [run.run_id for run in ready] == ["b", "d", "driver"]
    assert waits == [Wait("c", "another run of the experiment sweep (at most 2 at a time)")]


def test_the_driver_of_a_search_does_not_count_as_a_run_of_its_experiment():
    driver = member("driver", axes=False, cpus=0.0)

    assert started(decisions([member("a")], [driver], limits={"sweep": 1})) == ["a"]
    assert started(decisions([driver], [member("x")], limits={"sweep": 1})) == ["driver"]
