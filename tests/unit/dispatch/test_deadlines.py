import pytest

from mosaic.dispatch.deadlines import Vitals
from mosaic.model.run import Limits

LIMITS = Limits(heartbeat_s=300)


def silent_since(now):
    vitals = Vitals(since=0.0)
    vitals.heartbeat(now, progress=1)
    return vitals


def test_a_worker_that_never_sent_a_heartbeat_is_not_killed():
    assert Vitals(since=0.0).verdict(1e6, LIMITS) == ""


def test_heartbeats_that_stop_with_an_idle_tree_are_a_hang():
    vitals = silent_since(100.0)
    vitals.note_cpu_time(260.0, cpu_s=5.0)

    assert vitals.verdict(399.0, LIMITS) == ""
    assert vitals.verdict(411.0, LIMITS).startswith("hang: no heartbeat for")


def spinning_since(start, until):
    """Heartbeats up to `start`; after that, CPU time and no output."""
    vitals = silent_since(start)
    spin(vitals, start, until, printed=1000)
    return vitals


def spin(vitals, start, until, printed):
    for now in range(int(start), int(until) + 1, 2):
        vitals.note_output(float(now), printed)
        vitals.note_cpu_time(float(now), cpu_s=float(now))


def test_a_silent_tree_that_uses_cpu_is_shown_after_the_first_limit_and_ended_after_the_second():
    vitals = spinning_since(100.0, until=1900.0)

    assert vitals.describe(460.0, LIMITS) == "no heartbeat 6 min"
    assert vitals.verdict(1899.0, LIMITS) == ""
    assert vitals.verdict(1901.0, LIMITS) == "hang: no heartbeat and no other output for 30 min"


def test_the_config_sets_the_second_limit_and_0_means_never():
    vitals = spinning_since(100.0, until=9000.0)

    assert vitals.verdict(161.0, Limits(spin_s=60)) == "hang: no heartbeat and no other output for 61 s"
    assert vitals.verdict(9000.0, Limits(spin_s=0)) == ""


@pytest.mark.parametrize("sign", ["a line", "half a line"])
def test_any_output_of_a_spinning_tree_restarts_the_second_limit(sign):
    vitals = spinning_since(100.0, until=1698.0)

    if sign == "a line":
        vitals.activity(1700.0)
    spin(vitals, 1700.0, until=3500.0, printed=1000 if sign == "a line" else 1001)

    assert vitals.verdict(3499.0, LIMITS) == ""
    assert vitals.describe(3499.0, LIMITS) == "no heartbeat 57 min"
    assert vitals.verdict(3501.0, LIMITS).startswith("hang: no heartbeat and no other output for 30 min")


def test_the_second_limit_does_not_apply_to_a_worker_that_never_sent_a_heartbeat():
    vitals = Vitals(since=0.0)
    vitals.activity(10.0)

    assert vitals.verdict(1e6, LIMITS) == ""


def test_silence_alone_without_a_cpu_measurement_proves_nothing():
    assert silent_since(100.0).verdict(1_800.0, LIMITS) == ""


def test_time_in_which_the_cpu_time_of_another_machine_was_unknown_is_not_idle_time():
    vitals = silent_since(100.0)
    vitals.note_cpu_time(260.0, cpu_s=5.0)

    vitals.note_cpu_time(270.0, cpu_s=None)  # its node does not answer …
    vitals.note_cpu_time(401.0, cpu_s=5.0)  # … until now
    at_once = vitals.verdict(420.0, LIMITS)
    vitals.note_cpu_time(551.0, cpu_s=5.0)

    assert at_once == ""
    assert vitals.verdict(552.0, LIMITS).startswith("hang: no heartbeat for")


def test_heartbeats_without_progress_are_shown_and_killed_only_if_the_config_asks_for_it():
    vitals = Vitals(since=0.0)
    for now in range(0, 1000, 30):
        vitals.heartbeat(float(now), progress=7)

    assert vitals.verdict(1000.0, LIMITS) == ""
    assert vitals.describe(1000.0, LIMITS) == "no progress 17 min"
    assert vitals.verdict(1000.0, Limits(no_progress_s=900)).startswith("hang: heartbeats without progress")


def test_quiet_is_shown_and_killed_only_if_the_config_asks_for_it():
    vitals = Vitals(since=0.0)
    vitals.activity(40.0)

    assert vitals.describe(400.0, LIMITS) == "quiet 6 min"
    assert vitals.verdict(400.0, LIMITS) == ""
    assert vitals.verdict(400.0, Limits(quiet_s=300)).startswith("hang: no output for")


def test_no_run_is_ended_while_its_lines_are_still_unread():
    vitals = silent_since(100.0)
    vitals.note_cpu_time(260.0, cpu_s=5.0)
    vitals.behind_bytes = 10

    assert vitals.verdict(9999.0, LIMITS) == ""


def test_time_in_which_the_daemon_was_stopped_does_not_count_as_silence():
    vitals = silent_since(100.0)
    vitals.note_cpu_time(120.0, cpu_s=5.0)

    vitals.shift(10_000.0)

    assert vitals.verdict(10_150.0, LIMITS) == ""
