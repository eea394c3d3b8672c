"""Evaluations under faults: a lane that dies has a reason, no other lane notices, and nothing is lost or left over."""

import json
import shutil
import tempfile
from pathlib import Path

import pytest
from evaluation_judge import (
    violations_after_the_end,
    violations_of_lanes,
    violations_of_rows,
    violations_of_summary,
)
from evaluation_schedule import make_evaluation
from evaluation_trial import run_evaluation
from stage import WORLD, needs, stage, toy
from watch import descendants

from mosaic.model.states import RunState

pytestmark = needs("eval")
SEED = 2026
PLAYERS = {
    "env": "toy",
    "operators": {name: toy(episode_length=10, paint=name == "c") for name in "abc"},
    "seeds": "0-2",
    "pace": 25,
}
HOSTED = {
    "env": WORLD,
    "operators": {"a": "random", "b": "random", "c": toy(owns_env=False)},
    "seeds": "0-2",
    "pace": 25,
}


@pytest.fixture(scope="module")
def theatre():
    home = Path(tempfile.mkdtemp(prefix="mosaic-"))
    with stage(home, "eval") as opened:
        yield opened
    shutil.rmtree(home, ignore_errors=True)


@pytest.fixture(scope="module")
def calm(theatre):
    """What the players print when nobody disturbs them."""
    return theatre.told(theatre.play(PLAYERS))


def violations(theatre, run, calm, kills, tree=()):
    told = theatre.told(run)
    return [
        *violations_of_lanes(told, calm, kills),
        *violations_of_summary(run, told),
        *violations_after_the_end(run, dict(tree)),
    ]


def test_a_killed_operator_and_a_killed_host_cost_their_lanes_one_episode(theatre):
    calm = theatre.told(theatre.play(HOSTED))
    run = theatre.start(HOSTED)

    assert theatre.wait_for_steps(run, 15)
    tree = descendants(theatre.lab.rundir(run))
    assert theatre.kill(run, "operator", "a")
    assert theatre.wait_for_steps(run, 17, lane="b")
    assert theatre.kill(run, "host", "b")
    run = theatre.lab.wait_until_over(run)

    assert run.state is RunState.TERMINATED
    assert violations(theatre, run, calm, {0: 1, 1: 1}, tree) == []
    reasons = {row["lane"]: row["reason"] for row in theatre.told(run) if row["type"] == "episode" and row["reason"]}
    assert reasons == {"a": "operator a: was killed by SIGKILL", "b": "env host: was killed by SIGKILL"}


def test_a_killed_player_costs_its_lane_one_episode_and_other_kills_cost_nothing(theatre, calm):
    run = theatre.start({**PLAYERS, "pace": 10})

    assert theatre.wait_for_steps(run, 4)
    tree = descendants(theatre.lab.rundir(run))
    theatre.kill_daemon()
    assert theatre.wait_for_steps(run, 12)
    assert theatre.kill(run, "tailer")
    assert theatre.kill(run, "operator", "c")
    theatre.kill_daemon()
    run = theatre.lab.wait_until_over(run)

    assert run.state is RunState.TERMINATED
    assert violations(theatre, run, calm, {2: 1}, tree) == []


def test_operators_that_misbehave_disturb_nobody(theatre, calm):
    children = {"fork_children": 2, "double_fork": True, "setsid": True, "ignore_sigterm": True}
    odd = {
        "hangs": toy(episode_length=10, hang_at=3, timeout_s=1),
        "prints": toy(episode_length=10, garbage_every=2, long_line_bytes=1 << 20, stderr_lines=300),
        "forks": toy(episode_length=10, **children),
        "fails": toy(episode_length=10, crash_at=5),
        "dies": toy(episode_length=10, signal_at=7),
    }
    run = theatre.start({**PLAYERS, "operators": {**PLAYERS["operators"], **odd}})
    assert theatre.wait_for_steps(run, 5)
    tree = descendants(theatre.lab.rundir(run))
    run = theatre.lab.wait_until_over(run)

    assert run.state is RunState.TERMINATED
    assert violations(theatre, run, calm, {}, tree) == []
    rows = [row for row in theatre.told(run) if row["type"] == "episode"]
    reasons = {name: {row["reason"] for row in rows if row["lane"] == name} for name in odd}
    assert reasons == {
        "hangs": {"operator hangs: no answer in 1 s"},
        "prints": {""},
        "forks": {""},
        "fails": {"operator fails: RuntimeError: toy worker was asked to crash at step 5"},
        "dies": {"operator dies: was killed by SIGKILL"},
    }


@pytest.mark.parametrize(
    ("part", "end"),
    [
        ("conductor", (RunState.FAULTED, "killed by SIGKILL")),
        ("cancel", (RunState.CANCELLED, "cancelled")),
        pytest.param("holder", (RunState.FAULTED, "holder died"), marks=pytest.mark.slow),
    ],
)
def test_an_evaluation_that_is_killed_or_cancelled_is_resumed_where_it_was(theatre, calm, part, end):
    run = theatre.start(PLAYERS)
    assert theatre.wait_for_steps(run, 17)
    tree = descendants(theatre.lab.rundir(run))
    if part == "cancel":
        theatre.lab.client.cancel_run(run.run_id)
    else:
        assert theatre.kill(run, part)
    run = theatre.lab.wait_until_over(run)

    told = theatre.told(run)
    assert (run.state, run.reason.startswith(end[1])) == (end[0], True), run.reason
    found = [*violations_of_rows(told), *violations_of_summary(run, told), *violations_after_the_end(run, tree)]
    assert found == []
    resumed = theatre.resume(run)
    assert resumed.state is RunState.TERMINATED
    assert theatre.told(resumed) == calm
    assert violations(theatre, resumed, calm, {}) == []


def test_a_manual_evaluation_takes_each_acknowledged_step_once_while_the_daemon_is_killed(theatre, calm):
    evaluation = theatre.lab.client.evaluate({**PLAYERS, "on_done": "next"}, manual=True)
    run = theatre.lab.client.get_run(evaluation.run_id)
    evaluation.close()
    acknowledged = []
    for number in range(24):
        acknowledged.append(theatre.lab.client.command_run(run.run_id, {"cmd": "step"}, f"step {number}"))
        if number % 8 == 5:
            theatre.kill_daemon()
    assert theatre.lab.client.command_run(run.run_id, {"cmd": "step"}, "step 23") == acknowledged[-1]
    theatre.lab.client.command_run(run.run_id, {"cmd": "finish"})
    run = theatre.lab.wait_until_over(run)

    told = theatre.told(run)
    done = [row["payload"] for row in told if row.get("event") == "command_done"]
    assert [one["seq"] for one in done] == list(range(1, 27))  # start, the steps, finish
    assert all(one["ok"] for one in done), done
    assert list(violations_of_rows(told)) == []
    assert list(violations_of_summary(run, told)) == []
    assert list(violations_after_the_end(run, {})) == []
    for lane in range(3):
        steps = [row for row in told if row["type"] == "step" and row["env_index"] == lane]
        expected = [row for row in calm if row["type"] == "step" and row["env_index"] == lane]
        assert json.dumps(steps) == json.dumps(expected[: len(steps)])
        assert len(steps) in (22, 24)  # a tick in which a lane begins its next episode is no step


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("number", range(16))
def test_no_promise_is_broken_by_a_random_evaluation(number):
    schedule = make_evaluation(SEED, number)

    report = run_evaluation(schedule)

    again = f"benchmarks/faults.py --evaluations --seed {SEED} --first {number} --schedules 1"
    assert report.violations == [], f"{schedule}\nagain: {again}"


def test_the_same_seed_gives_the_same_evaluation():
    assert make_evaluation(1, 2) == make_evaluation(1, 2)
    assert len({str(make_evaluation(1, number)) for number in range(50)}) == 50
