"""A few random schedules from a seed; benchmarks/faults.py runs any number of them."""

import os

import pytest
from preload import can_preload
from schedule import make_schedule
from trial import may_mount, run_trial

SEED = 2026
SHORT = 12
LONG = 120


@pytest.mark.parametrize("number", range(SHORT))
def test_no_promise_is_broken_by_a_random_schedule(number):
    survive(number)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(SHORT, LONG))
def test_no_promise_is_broken_by_many_random_schedules(number):
    survive(number)


def survive(number):
    schedule = make_schedule(SEED, number, may_mount(), can_preload())

    report = run_trial(schedule)

    assert report.violations == [], (
        f"{schedule}\nagain: benchmarks/faults.py --seed {SEED} --first {number} --schedules 1"
    )


def test_the_same_seed_gives_the_same_schedule_and_another_seed_another():
    assert make_schedule(1, 2) == make_schedule(1, 2)
    assert len({str(make_schedule(1, number)) for number in range(100)}) == 100


def test_a_trial_restores_the_environment():
    before = dict(os.environ)

    run_trial(make_schedule(SEED, 0))

    assert dict(os.environ) == before
