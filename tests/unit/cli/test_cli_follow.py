"""Following a run: its lines, its live view, its summary."""

import pytest

from mosaic.cli.follow import Pace, exit_code, live_view, progress_line, summary
from mosaic.present.scores import describe_score, score, score_cell, trace

EVIL = "\x1b[2J\x1b]0;owned\x07evil\r"


def test_the_summary_of_a_failed_run_points_to_its_log(make_run):
    failed = make_run(state="FAULTED", reason="exit code 3")
    fine = make_run(state="TERMINATED", reason="exit code 0", summary={"events": 4})

    assert "exit code 3" in summary(failed)
    assert f"mosaic logs {failed.run_id}" in summary(failed)
    assert "mosaic logs" not in summary(fine)
    assert (exit_code(failed), exit_code(fine), exit_code(make_run(state="CANCELLED"))) == (1, 0, 1)


def test_the_summary_distinguishes_env_steps_from_stored_rows(make_run):
    counts = {"env_steps": 20_480, "steps": 4_096, "episodes": 87, "metrics": 40, "rejects": 2}

    output = summary(make_run("TERMINATED", summary=counts)).splitlines()[1]

    assert output.startswith("20,480 env steps in 1m00s · 4,096 step rows, 87 episodes, 40 metric rows stored")
    assert output.endswith("2 lines rejected (see: mosaic logs 01JCQ5W2ZK8M3N4P5Q6R7S8T9V --rejects)")


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ({"env_steps": 13, "steps": 3}, "13 env steps in 1m00s · 3 step rows stored"),
        ({"env_steps": 100, "steps": 100}, "100 env steps in 1m00s · 100 step rows stored"),
        ({"env_steps": 3000, "episodes": 1}, "3,000 env steps in 1m00s · 1 episode stored"),
        # The steps of curves may be epochs; a known total says that they are not.
        ({"env_steps": 199, "metrics": 400}, "199 steps in 1m00s · 400 metric rows stored"),
        ({"last_step": -1}, "took 1m00s, no env steps reported · nothing stored"),
    ],
)
def test_only_what_was_stored_is_reported_as_stored(make_run, counts, expected):
    assert summary(make_run("TERMINATED", summary=counts)).splitlines()[1] == expected


def test_a_run_that_stored_nothing_points_to_its_output(make_run):
    assert "See its output with: mosaic logs" in summary(make_run("TERMINATED"))


def test_a_resumed_run_does_not_count_the_steps_of_its_parent_as_its_own(make_run):
    resumed = make_run("TERMINATED", relation="resume", summary={"env_steps": 18_000, "events": 9})

    assert "reached env step 18,000 in 1m00s" in summary(resumed)


def test_an_unknown_rate_is_left_out(make_run):
    first = make_run("EXECUTING", total_steps=100, summary={"env_steps": 60})

    assert "steps/s" not in progress_line(first, "EXECUTING") + live_view(first).plain


def test_missing_telemetry_is_reported_in_the_summary(make_run):
    assert "telemetry: incomplete" in summary(make_run("FAULTED", telemetry="incomplete"))


@pytest.mark.parametrize(
    ("fields", "figures", "expected", "cell"),
    [
        ({}, {"mean_return": 412.34, "mean_over": 100}, "mean return 412.3 over the last 100 episodes", "412.3"),
        ({}, {"mean_return": 9, "mean_over": 1}, "mean return 9 over the last 1 episode", "9"),
        ({}, {"last_return": 7}, "last return 7", "7"),
        (
            {"area": "evals"},
            {"eval_mean": 250.5, "eval_interval": 12.34, "eval_episodes": 20, "last_return": 9},
            "mean return 250.5 ± 12 over 20 episodes",
            "250.5 ±12",
        ),
        (
            {"area": "evals"},
            {"eval_mean": 453, "eval_interval": 128.4, "eval_episodes": 5},
            "mean return 453 ± 128 over 5 episodes",
            "453 ±128",
        ),
        (
            {},
            {"mean_return": 134, "mean_over": 100, "eval_mean": 250, "eval_interval": 5},
            "mean return 134 over the last 100 episodes, newest evaluation 250 ± 5",
            "134",
        ),
        ({}, {}, "", ""),
    ],
)
def test_a_return_is_a_mean_with_its_number_of_episodes(make_run, fields, figures, expected, cell):
    run = make_run(summary={"last_step": 1, **figures}, **fields)

    assert (describe_score(run), score_cell(run)) == (expected, cell)
    assert expected in summary(run)
    assert (score(run) is None) == (not expected)


def test_the_sparkline_shows_the_whole_run(make_run):
    run = make_run(summary={"last_step": 1, "return_trace": [0] * 50 + [8] * 50, "recent_returns": [8] * 60})

    assert trace(run, 4) == "▁▁██"
    assert trace(make_run(summary={"last_step": 1, "recent_returns": [1, 2]}), 4) == "▁█"


def test_a_run_is_shown_as_one_line_and_as_a_live_view(make_run):
    run = make_run(
        total_steps=200, summary={"last_step": 99, "steps_per_s": 50, "last_return": 3, "recent_returns": [1, 2, 3]}
    )

    output = progress_line(run, "EXECUTING").split("  ")

    assert {"EXECUTING", "50%", "100 env steps", "50 steps/s", "2s left", "last return 3"} <= set(output)
    assert "▁" in live_view(run).plain
    assert "100/200" in live_view(run).plain
    assert "READY: started, no telemetry yet" in live_view(make_run("READY")).plain


def test_the_steps_of_a_search_are_trials(make_run):
    driver = make_run(
        worker_name="search", experiment="lr", total_steps=8, summary={"env_steps": 2, "steps_per_s": 0.5}
    )

    output = progress_line(driver, "EXECUTING") + live_view(driver).plain

    assert "2 trials" in output
    assert "steps/s" not in output
    assert "env step" not in output


def test_a_line_is_printed_for_each_change_and_not_for_each_answer(make_run):
    pace = Pace()

    first = pace.line(make_run("READY"))
    same = pace.line(make_run("READY"))
    quiet = pace.line(make_run("READY", life="quiet 3 min"))
    quieter = pace.line(make_run("READY", life="quiet 4 min"))
    over = pace.line(make_run("TERMINATED"))

    assert "READY: started, no telemetry yet" in first
    assert "quiet 3 min" in quiet
    assert (same, quieter) == ("", "")
    assert "TERMINATED" in over


def test_a_run_that_still_waits_is_said_to_wait(make_run, monkeypatch):
    monkeypatch.setattr("mosaic.cli.follow.QUIET_LINE_EVERY_S", -1.0)
    pace = Pace()

    first, later = (pace.line(make_run("INIT", waiting_for="2 CPUs")) for _ in range(2))

    assert "INIT: waiting for 2 CPUs" in first
    assert "INIT: still waiting" in later


def test_a_worker_cannot_move_the_cursor(make_run):
    run = make_run("FAULTED", name=EVIL, reason=f"first\n{EVIL}", telemetry=EVIL, run_dir="/x")
    waiting = make_run("INIT", waiting_for=EVIL)

    for output in (
        summary(run),
        Pace().line(run),
        Pace().line(waiting),
        live_view(run).plain,
        live_view(waiting).plain,
    ):
        assert "\x1b" not in output
        assert "\r" not in output
        assert "owned" not in output
