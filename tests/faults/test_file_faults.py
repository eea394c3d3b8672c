"""Files that the platform trusts because it once wrote them, changed while a run and a bystander live."""

import os

import pytest
import watch
from file_faults import FILE_FAULTS
from live_copy import copy_live
from schedule import FAULTS, HABITS, Fault, Schedule, ToyRun
from trial import run_trial

CALM = next(habit for habit in HABITS if habit.name == "calm")
ENDLESS = next(habit for habit in HABITS if habit.name == "endless")


@pytest.mark.parametrize("kind", FILE_FAULTS)
def test_a_changed_file_breaks_no_promise(kind):
    runs = (ToyRun(CALM, 1_500, 250.0), ToyRun(CALM, 1_600, 250.0))
    schedule = Schedule(0, 0, 0, runs, (Fault(kind, 0, 0.5),), "", over_within_s=30.0)

    report = run_trial(schedule)

    assert report.violations == []
    assert report.done[kind] == 1


def test_an_endless_run_with_a_special_file_as_its_exit_file_is_still_cancelled():
    faults = (Fault("special files", 0, 0.5), Fault("cancel", 0, 0.1))

    report = run_trial(Schedule(0, 0, 0, (ToyRun(ENDLESS, 1_000, 300.0),), faults, "", over_within_s=15.0))

    assert report.violations == []
    assert report.done["cancel"] == 1


def test_a_copy_of_a_live_root_follows_no_link_and_opens_no_pipe(tmp_path):
    (tmp_path / "a" / "folder").mkdir(parents=True)
    (tmp_path / "a" / "folder" / "file").write_text("text")
    (tmp_path / "a" / "zero").symlink_to("/dev/zero")
    (tmp_path / "a" / "etc").symlink_to("/etc")
    (tmp_path / "a" / "ballast").write_text("much")
    os.mkfifo(tmp_path / "a" / "pipe")

    copy_live(tmp_path / "a", tmp_path / "b", leave_out=("ballast",))

    assert (tmp_path / "b" / "folder" / "file").read_text() == "text"
    assert (tmp_path / "b" / "zero").is_symlink()
    assert (tmp_path / "b" / "etc").is_symlink()
    assert {path.name for path in (tmp_path / "b").iterdir()} == {"folder", "zero", "etc"}


def test_a_full_disk_of_the_machine_itself_is_named(monkeypatch):
    monkeypatch.setattr(watch, "LEAST_ROOM", 1 << 60)

    report = run_trial(Schedule(0, 0, 0, (ToyRun(CALM, 100, 100.0),), (), ""))

    assert len(report.violations) == 1
    assert "itself was full" in report.violations[0]


def test_random_schedules_contain_them():
    assert FILE_FAULTS.keys() <= FAULTS.keys()
