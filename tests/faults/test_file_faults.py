"""Files that the platform trusts because it once wrote them, changed while a run and a bystander live."""

import pytest
from file_faults import FILE_FAULTS
from schedule import FAULTS, HABITS, Fault, Schedule, ToyRun
from trial import run_trial

CALM = next(habit for habit in HABITS if habit.name == "calm")


@pytest.mark.parametrize("kind", FILE_FAULTS)
def test_a_changed_file_breaks_no_promise(kind):
    runs = (ToyRun(CALM, 1_500, 250.0), ToyRun(CALM, 1_600, 250.0))
    schedule = Schedule(0, 0, 0, runs, (Fault(kind, 0, 0.5),), "", over_within_s=30.0)

    report = run_trial(schedule)

    assert report.violations == []
    assert report.done[kind] == 1


def test_random_schedules_contain_them():
    assert FILE_FAULTS.keys() <= FAULTS.keys()
