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
    vitals.saw_cpu(260.0, cpu_s=5.0)

    assert vitals.verdict(399.0, LIMITS) == ""
    assert vitals.verdict(411.0, LIMITS).startswith("hang: no heartbeat for")


def test_a_silent_tree_that_burns_cpu_is_left_alone():
    vitals = silent_since(100.0)
    for now in range(260, 2000, 2):
        vitals.saw_cpu(float(now), cpu_s=float(now))

    assert vitals.verdict(2000.0, LIMITS) == ""


def test_silence_without_a_look_at_the_cpu_is_no_proof():
    assert silent_since(100.0).verdict(10_000.0, LIMITS) == ""


def test_heartbeats_without_progress_are_shown_and_killed_only_if_the_config_says_so():
    vitals = Vitals(since=0.0)
    for now in range(0, 1000, 30):
        vitals.heartbeat(float(now), progress=7)

    assert vitals.verdict(1000.0, LIMITS) == ""
    assert vitals.shown(1000.0) == "no progress 17 min"
    assert vitals.verdict(1000.0, Limits(no_progress_s=900)).startswith("hang: heartbeats without progress")


def test_quiet_is_shown_and_killed_only_if_the_config_says_so():
    vitals = Vitals(since=0.0)
    vitals.activity(40.0)

    assert vitals.shown(400.0) == "quiet 6 min"
    assert vitals.verdict(400.0, LIMITS) == ""
    assert vitals.verdict(400.0, Limits(quiet_s=300)).startswith("hang: not a word for")


def test_nobody_is_judged_while_lines_are_still_on_their_way():
    vitals = silent_since(100.0)
    vitals.saw_cpu(260.0, cpu_s=5.0)
    vitals.behind_bytes = 10

    assert vitals.verdict(9999.0, LIMITS) == ""


def test_time_in_which_the_daemon_slept_is_nobodys_silence():
    vitals = silent_since(100.0)
    vitals.saw_cpu(120.0, cpu_s=5.0)

    vitals.shift(10_000.0)

    assert vitals.verdict(10_150.0, LIMITS) == ""
