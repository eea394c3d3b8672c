"""Manual mode: commands on stdin decide when a step is taken."""

from conftest import players
from eval_worker.conductor import Conductor
from eval_worker.orders import Orders

SCRIPT = {"env": "troupe", "operators": players("a", "b"), "seeds": "0-3"}
TOLD = {"a": {"length": 2}, "b": {"length": 6}}


def manual(evaluate, script=SCRIPT, **more):
    run = evaluate(script, mode="manual", operators=TOLD, **more)
    assert run.until("evaluation_state")["state"] == "waiting"
    return run


def test_steps_are_taken_when_they_are_asked_for(evaluate):
    run = manual(evaluate)

    started = run.command("start")
    run.command("step")
    run.command("step", lanes=[1], count=2)

    assert (started["ok"], started["message"]) == (True, "2 of 2 lanes are ready.")
    assert [(step["env_index"], step["step_index"]) for step in run.steps()] == [(0, 0), (1, 0), (1, 1), (1, 2)]
    assert [state["state"] for state in run.events("evaluation_state")] == ["waiting", "paused"]


def test_a_lane_that_finished_waits_and_the_others_are_not_reset(evaluate):
    run = manual(evaluate)
    run.command("start")

    run.command("step", count=4)

    assert [row["lane"] for row in run.episodes()] == ["a"]
    assert [step["step_index"] for step in run.steps(1)] == [0, 1, 2, 3]
    refused = run.command("step", lanes=["a"])
    assert (refused["ok"], refused["message"]) == (
        False,
        "step: the episode of a is over. Send start for the next seed, or reset.",
    )
    run.command("start")
    assert run.events("lane_ready")[-1]["seed"] == 1
    run.command("step")
    assert run.steps(1)[-1]["step_index"] == 4


def test_a_lane_goes_on_to_its_next_seed_if_the_script_says_so(evaluate):
    run = manual(evaluate, {**SCRIPT, "on_done": "next"})
    run.command("start")

    run.command("step", count=4)

    assert [step["episode_seed"] for step in run.steps(0)] == [0, 0, 1, 1]
    assert [step["step_index"] for step in run.steps(1)] == [0, 1, 2, 3]


def test_one_lane_can_be_reset(evaluate):
    run = manual(evaluate)
    run.command("start")
    run.command("step")

    run.command("reset", lanes=["b"], seed=77)
    run.command("step")

    assert [(step["episode_seed"], step["step_index"]) for step in run.steps(1)] == [(0, 0), (77, 0)]
    assert [step["step_index"] for step in run.steps(0)] == [0, 1]
    ended = run.episodes("b")[0]
    assert (ended["reason"], ended["steps"]) == ("ended by a command", 1)
    run.command("finish")
    run.finish()
    assert all(row["reason"] == "" for row in run.summary["rows"])


def test_a_reset_without_a_seed_plays_the_same_seed_again(evaluate):
    run = manual(evaluate)
    run.command("start")
    run.command("step")

    run.command("reset")

    assert [(one["lane"], one["seed"]) for one in run.events("lane_ready")] == [(0, 0), (1, 0), (0, 0), (1, 0)]
    assert len({(one["lane"], one["episode_index"]) for one in run.events("lane_ready")}) == 4


def test_play_goes_on_until_pause(evaluate):
    run = manual(evaluate, {**SCRIPT, "on_done": "next", "seeds": {"first": 0, "count": 100}})
    run.command("start")

    played = run.command("play", rate=200)
    run.until("step", step_index=3, env_index=1)
    refused = run.command("step")
    run.command("pause")

    assert played["message"] == "200 steps per second."
    assert (refused["ok"], refused["message"]) == (False, "step: the lanes are playing. Send pause first.")
    assert run.events("evaluation_state")[-1]["state"] == "paused"
    before = len(run.steps())
    run.command("step")
    assert len(run.steps()) == before + 2


def test_commands_are_answered_in_order(evaluate):
    run = manual(evaluate)
    for cmd in ("start", "step", "step", "pause", "finish"):
        run.send(cmd)

    assert run.finish() == 0

    answers = run.events("command_done")
    assert [answer["seq"] for answer in answers] == [1, 2, 3, 4, 5]
    assert [answer["ok"] for answer in answers] == [True, True, True, False, True]
    assert len(run.steps(1)) == 2


def test_bad_commands_get_clear_answers(evaluate):
    run = manual(evaluate)

    answers = [
        run.command("step"),
        run.command("jump"),
        run.command("step", lanes=[7]),
        run.command("start"),
        run.command("step", count=0),
        run.command("play", rate="fast"),
        run.command("reset", seed=-1),
        run.command("act", lane=0, request=1, action=0),
    ]

    assert [answer["message"] for answer in answers if not answer["ok"]] == [
        "step: the lanes have not been started. Send start first.",
        "cmd: there is no command 'jump'. Choose from: start, step, play, pause, reset, act, finish.",
        "lanes: there is no lane 7. Choose from: 0 (a), 1 (b).",
        "count: must be an integer from 1 to 1000000, not 0.",
        "rate: must be a number of steps per second up to 1000, not 'fast'.",
        "seed: must be an integer from 0 to 2147483647, not -1.",
        "lane: lane 0 does not wait for an action.",
    ]


def test_finish_writes_the_results_of_what_is_finished(evaluate):
    run = manual(evaluate)
    run.command("start")
    run.command("step", count=3)

    run.command("finish")

    assert run.finish() == 0
    assert [(row["lane"], row["length"]) for row in run.summary["rows"]] == [("a", 2)]
    assert run.events("evaluation_state")[-1]["state"] == "done"


def test_the_end_of_the_input_ends_a_manual_evaluation(evaluate):
    run = manual(evaluate)
    run.command("start")
    run.command("step", count=3)

    run.process.stdin.close()

    assert run.finish() == 0
    assert [row["lane"] for row in run.summary["rows"]] == ["a"]


def test_a_manual_evaluation_can_be_resumed(evaluate):
    run = manual(evaluate)
    run.command("start")
    run.command("step", count=3)
    run.kill()

    resumed = manual(evaluate, resume_from=run.journal)

    assert [row["lane"] for row in resumed.episodes()] == ["a"]
    resumed.command("start")
    assert [(one["name"], one["seed"]) for one in resumed.events("lane_ready")[-2:]] == [("a", 1), ("b", 0)]


def test_a_script_takes_pause_and_finish_but_no_reset(evaluate):
    run = evaluate({**SCRIPT, "pace": 50, "seeds": {"first": 0, "count": 1000}}, operators=TOLD)
    run.until("step", step_index=1)

    answers = [run.command("reset"), run.command("pause"), run.command("finish")]

    assert [answer["ok"] for answer in answers] == [False, True, True]
    assert answers[0]["message"] == "reset: this evaluation follows its script. Use manual mode for it."
    assert run.finish() == 0


def test_a_rate_of_nearly_nothing_waits_and_ends_nothing(evaluate):
    run = manual(evaluate)
    run.command("start")

    played = run.command("play", rate=1e-300)
    run.until("step", env_index=1)
    paused = run.command("pause")

    assert (played["ok"], paused["ok"]) == (True, True)
    run.command("finish")
    assert run.finish() == 0


def test_a_command_does_not_overtake_those_that_wait():
    conductor = Conductor([], None, None, None)
    conductor.deferred.append({"seq": 1, "cmd": "step"})

    Orders(conductor)({"seq": 2, "cmd": "step"})

    assert [command["seq"] for command in conductor.deferred] == [1, 2]
