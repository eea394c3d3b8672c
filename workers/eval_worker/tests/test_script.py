"""Script mode with real children: lock-step, failures of one lane, determinism, stopping."""

import os
import signal

from conftest import players

SCRIPT = {"env": "troupe", "operators": players("a", "b"), "seeds": "0-3"}
TOLD = {"a": {}, "b": {"length": 6}}


def test_every_operator_plays_every_seed(evaluate):
    run = evaluate(SCRIPT, operators=TOLD)

    assert run.finish() == 0

    assert [(row["operator"], row["seed"], row["length"]) for row in run.summary["rows"] if row["operator"] == "a"] == [
        ("a", 0, 4),
        ("a", 1, 5),
        ("a", 2, 4),
        ("a", 3, 5),
    ]
    assert len(run.episodes("b")) == 4
    assert run.lines[-1]["event"] == "run_completed"
    assert run.summary["operators"]["a"]["about"] == {"worker": "troupe"}


def test_lanes_step_together_and_are_printed_in_their_order(evaluate):
    run = evaluate({**SCRIPT, "seeds": [0]}, operators={"a": {}, "b": {"pause_s": 0.02}})

    run.finish()

    assert [(step["step_index"], step["env_index"]) for step in run.steps()] == [
        (index, lane) for index in range(4) for lane in (0, 1)
    ]


def test_two_runs_of_one_script_print_equal_lines(evaluate):
    first = evaluate(SCRIPT, operators=TOLD)
    second = evaluate(SCRIPT, operators={"a": {"pause_s": 0.003}, "b": {"length": 6}})

    first.finish()
    second.finish()

    assert first.results() == second.results()


def test_a_crash_ends_the_episode_of_its_lane_alone(evaluate):
    calm = evaluate(SCRIPT, operators=TOLD)
    run = evaluate(SCRIPT, operators={**TOLD, "a": {"crash": [1, 2]}})

    calm.finish()
    assert run.finish() == 0

    failure = run.events("lane_failed")[0]
    assert (failure["lane"], failure["seed"]) == (0, 1)
    assert failure["reason"] == "operator a: exited with code 7: asked to crash"
    assert [row["failed"] for row in run.episodes("a")] == [False, True, False, False]
    assert run.summary["operators"]["a"]["failed"] == 1
    assert [len(run.steps(1)), run.episodes("b")[-1]["total_reward"]] == [
        len(calm.steps(1)),
        calm.episodes("b")[-1]["total_reward"],
    ]


def test_a_hang_ends_the_episode_of_its_lane_alone(evaluate):
    script = {**SCRIPT, "operators": {**players("a", timeout_s=1), **players("b")}}
    run = evaluate(script, operators={**TOLD, "a": {"hang": [2, 1]}})

    assert run.finish() == 0

    assert [failure["reason"] for failure in run.events("lane_failed")] == ["operator a: no answer in 1 s"]
    assert [row["steps"] for row in run.episodes("a")] == [4, 5, 1, 5]
    assert len(run.episodes("b")) == 4


def test_a_lane_that_never_begins_is_given_up_with_its_childs_own_words(evaluate):
    run = evaluate(SCRIPT, operators={**TOLD, "a": {"refuse": "The spaces do not match."}})

    assert run.finish() == 0

    reasons = [failure["reason"] for failure in run.events("lane_failed")]
    assert reasons == ["operator a: The spaces do not match."] * 3
    assert [failure.get("given_up", False) for failure in run.events("lane_failed")] == [False, False, True]
    assert len(run.episodes("b")) == 4
    assert any("The lane a was given up" in warning for warning in run.summary["warnings"])


def test_a_run_in_which_nothing_was_played_fails_with_the_reason(evaluate):
    script = {"env": "troupe", "operators": players("a"), "seeds": "0-9"}
    run = evaluate(script, operators={"a": {"refuse": "The checkpoint cannot be loaded."}})

    assert run.finish() == 1

    failure = run.lines[-1]
    assert failure["event"] == "run_failed"
    assert failure["payload"]["error"].endswith("operator a: The checkpoint cannot be loaded.")


def test_max_steps_cuts_an_episode(evaluate):
    run = evaluate({**SCRIPT, "max_steps": 2, "seeds": [0]}, operators=TOLD)

    run.finish()

    assert [(row["steps"], row["terminated"], row["truncated"]) for row in run.episodes()] == [(2, False, True)] * 2


def test_copies_share_the_seeds(evaluate):
    run = evaluate({**SCRIPT, "operators": players("a"), "parallel": 2}, operators={"a": {}})

    run.finish()

    seeds = {row["lane"]: [] for row in run.episodes()}
    for row in run.episodes():
        seeds[row["lane"]].append(row["episode_seed"])
    assert seeds == {"a.1": [0, 2], "a.2": [1, 3]}
    assert [row["episode_index"] for row in run.episodes("a.2")] == [1, 3]


def test_first_observations_that_differ_are_reported_once_for_each_seed(evaluate):
    run = evaluate({**SCRIPT, "seeds": [5, 6]}, operators={"a": {}, "b": {"digest": "another"}})

    run.finish()

    assert [one["seed"] for one in run.events("observations_differ")] == [5, 6]
    assert run.events("observations_differ")[0]["lanes"] == {"a": f"{5:016x}", "b": "another"}
    assert sum("first observations differ" in warning for warning in run.summary["warnings"]) == 2


def test_equal_first_observations_are_not_reported(evaluate):
    run = evaluate(SCRIPT, operators=TOLD)

    run.finish()

    assert not run.events("observations_differ")


def test_a_stopped_evaluation_ends_its_children_and_keeps_what_is_finished(evaluate, tmp_path):
    gate = {"at": [1, 1], "file": str(tmp_path / "never")}
    run = evaluate(SCRIPT, operators={**TOLD, "a": {"gate": gate}})
    run.until("lane_done", lane=0, seed=0)
    children = run.children()

    run.process.send_signal(signal.SIGTERM)

    assert run.finish(limit_s=10) == 143
    assert run.lines[-1]["event"] == "run_cancelled"
    assert [(row["operator"], row["seed"]) for row in run.summary["rows"]] == [("a", 0)]
    assert any("stopped before its end" in warning for warning in run.summary["warnings"])
    assert children
    assert "Traceback" not in run.stderr
    assert not [pid for pid in children if os.path.exists(f"/proc/{pid}")]


def test_a_script_that_waits_after_each_episode_is_refused(evaluate):
    run = evaluate({**SCRIPT, "on_done": "wait"}, operators=TOLD)

    assert run.finish() == 2
    assert "on_done: wait is for manual evaluations" in run.stderr


def test_heartbeats_tell_how_far_it_is(evaluate):
    run = evaluate(SCRIPT, operators={**TOLD, "a": {"pause_s": 0.05}}, heartbeat_s=0.1)

    run.finish()

    beats = run.events("heartbeat")
    counts = [beat["progress"] for beat in beats]
    assert counts == sorted(counts)
    assert 0 < counts[-1] <= len(run.steps())
    assert counts[-1] <= beats[-1]["total"] <= 2 * len(run.steps())
