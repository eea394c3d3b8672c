"""Evaluations by script, by lines and by the client, with a real daemon and a conductor that plays a corridor."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from corridor import install_corridor

from mosaic.client import AsyncTrainerClient, TrainerClient
from mosaic.model.errors import MosaicError
from mosaic.model.states import RunState

MOSAIC = Path(sys.executable).with_name("mosaic")
TOGETHER = ("--operator", "random", "--operator", "me=human")
SCRIPT = {"env": "Corridor", "operators": {"chance": "random", "me": "human"}, "seeds": "3-5"}


@pytest.fixture(scope="module")
def lab(shared_lab):
    install_corridor(shared_lab.root.path)
    return shared_lab


@pytest.fixture
def mosaic(lab, tmp_path):
    """Runs `mosaic` with lines on stdin; returns its output."""

    def run(*words, lines=(), code=0):
        env = {**os.environ, "MOSAIC_HOME": str(lab.root.path)}
        text = "".join(f"{line}\n" for line in lines)
        done = subprocess.run(
            [MOSAIC, *map(str, words)], input=text, capture_output=True, text=True, env=env, cwd=tmp_path, timeout=60
        )
        assert done.returncode == code, done.stdout + done.stderr
        run.stderr = done.stderr
        return done.stdout if code == 0 else done.stderr

    return run


@pytest.fixture
def manual(lab):
    """A manual evaluation of a random operator and a person."""
    evaluation = lab.client.evaluate(SCRIPT, manual=True)
    evaluation.wait_until(lambda lanes: lanes and all(lane.seed == 3 for lane in lanes), 30)
    yield evaluation
    if not evaluation.state.is_over:
        evaluation.cancel()
        evaluation.wait(30)


# ---- a script


def test_one_command_plays_operators_on_the_same_seeds(lab, mosaic):
    said = mosaic("eval", "--env", "Corridor", "--operator", "random", "--operator", "two=passive", "--seeds", "0-2")

    assert "6/6 episodes" in said
    run = lab.client.get_run("last")
    assert (run.area, run.state, run.name) == ("evals", RunState.TERMINATED, "eval of Corridor")
    played = {(event["agent_id"], event["episode_seed"]) for event in lab.events(run, "episode")}
    assert played == {(name, seed) for name in ("random", "two") for seed in range(3)}


def test_a_yaml_file_a_json_file_and_a_program_give_the_same_script(mosaic, tmp_path):
    (tmp_path / "a.yaml").write_text("env: Corridor\noperators: {chance: random}\nseeds: 0-2\nmax_steps: 10\n")
    document = {"env": "Corridor", "operators": {"chance": "random"}, "seeds": "0-2", "max_steps": 10}
    (tmp_path / "b.json").write_text(json.dumps(document))
    (tmp_path / "c.py").write_text(f"import json\nprint(json.dumps({document!r}))\n")

    plans = [json.loads(mosaic("eval", name, "--dry-run")) for name in ("a.yaml", "b.json", "c.py")]

    assert plans[0] == plans[1] == plans[2]
    assert plans[0]["script"]["seeds"] == [0, 1, 2]
    assert plans[0]["config"]["metadata"]["worker"]["config"]["script"] == plans[0]["script"]


def test_options_take_precedence_over_the_file(lab, mosaic, tmp_path):
    (tmp_path / "a.yaml").write_text("env: Corridor\noperators: {chance: random}\nseeds: 0-9\n")

    mosaic("eval", "a.yaml", "--seeds", "4,8", "--operator", "passive", "--name", "mine", "--tag", "t")

    run = lab.client.get_run("last")
    assert (run.name, run.tags) == ("mine", ("t",))
    assert {event["episode_seed"] for event in lab.events(run, "episode")} == {4, 8}
    assert {event["agent_id"] for event in lab.events(run, "episode")} == {"chance", "passive"}


def test_detached_it_can_be_attached_later(lab, mosaic):
    words = ("--env", "Corridor", "--operator", "random", "--pace", "50", "--detach", "--json")

    run = json.loads(mosaic("eval", *words))
    said = mosaic("eval", "attach", run["run_id"])

    assert "TERMINATED" in said
    assert "TERMINATED" in mosaic("eval", "attach", run["run_id"])  # one that is over shows how it ended


def test_json_waits_and_prints_the_run(mosaic):
    said = mosaic("eval", "--env", "Corridor", "--operator", "random", "--episodes", "2", "--json")

    assert json.loads(said)["state"] == "TERMINATED"


# ---- lines


def test_a_manual_evaluation_takes_one_command_per_line(lab, mosaic):
    lines = ["step", "act right", "step 1 lane=0", "reset 0 seed=7", "act left", "finish"]

    said = mosaic("eval", "--env", "Corridor", *TOGETHER, "--manual", lines=lines)

    assert "lane 1 asks me for an action: left, right" in said
    assert "1 me  playing  seed 1000000  step 1  right" in said
    assert "0 random  playing  seed 7  step 0" in said
    assert "error: No lane asks for an action now." in said
    assert lab.client.get_run("last").state is RunState.TERMINATED


def test_without_finish_it_is_left_running_and_attached_again(lab, mosaic):
    words = ("--env", "Corridor", "--operator", "random", "--manual", "--json")

    said = mosaic("eval", *words, lines=["step 2"])
    left = mosaic.stderr
    run_id = json.loads(said.splitlines()[0])["run_id"]
    again = mosaic("eval", "attach", run_id, "--json", lines=["step 1", "finish"])

    assert f"Attach to it again with: mosaic eval attach {run_id}" in left
    answers = [json.loads(line) for line in again.splitlines()]
    assert [answer["type"] for answer in answers] == ["started", "answer", "answer", "end"]
    assert answers[1]["lanes"][0]["step_index"] == 2
    assert answers[-1]["state"] == "TERMINATED"


def test_a_refused_command_says_why_and_the_next_one_works(mosaic):
    lines = ["reset 5", "step 0", "hop", "play fast", "finish now", "finish"]

    said = mosaic("eval", "--env", "Corridor", "--operator", "random", "--manual", lines=lines)

    assert "error: lane: there is no lane '5'. Choose from: 0 (random)." in said
    assert "error: count: must be at least 1." in said
    assert "error: 'hop' is not a command. Choose from: step, play, reset, act" in said
    assert "error: rate: must be a number of steps per second above 0, not 'fast'." in said
    assert "error: finish: takes no arguments, not 'now'." in said


def test_a_person_who_walks_away_loses_only_that_episode(mosaic):
    words = ("--operator", "me=human", "--operator", "random", "--set", "me.time_limit_s=0.2", "--episodes", "1")

    said = mosaic("eval", "--env", "Corridor", *words)

    assert "lane 0 failed: seed 1000000: operator me: no action in 0.2 s" in said
    assert "TERMINATED" in said


# ---- bad input


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("", "name a run, a script file, or an environment with --env"),
        ("--env Corridor", "name at least one --operator"),
        ("--env Corridor --operator nobody", "operators.nobody: must be random, passive, human"),
        ("--env Corridor --operator a=random --operator a=human", "two operators with the name 'a'"),
        ("--env Corridor --operator random --seeds 5-1", "seeds"),
        (
            "--env Corridor --operator random --set llm.temperature=0",
            "there is no operator 'llm'. Choose from: random.",
        ),
        ("--env Corridor --operator random --seed 3", "--seed is for the evaluation of a run; write --seeds"),
        ("--env Corridor --operator random steps=3", "settings of an operator are given with --set"),
        ("--env Corridor --operator random --agent random", "write AGENT=NAME"),
        ("last --seeds 0-3", "--seeds needs a script file or --env, not a run"),
        ("missing.yaml", "Cannot read missing.yaml: No such file or directory."),
        ("attach", "the following arguments are required: RUN"),
    ],
)
def test_bad_input_gets_one_sentence(mosaic, words, sentence):
    code = 1 if "missing" in words or "nobody" in words or "5-1" in words else 2

    said = mosaic("eval", *words.split(), code=code)

    assert sentence in said
    assert len(said.strip().splitlines()) == 1


def test_another_name_is_refused(lab, mosaic, manual):
    said = mosaic("eval", "attach", manual.run_id, "--as", "mee", code=2)

    assert said.strip() == "mosaic: --as mee: there is no person 'mee'. Did you mean 'me'?"


def test_a_run_without_lanes_cannot_be_attached(lab, mosaic):
    run = lab.wait_until_over(lab.submit(steps=1))

    assert "has no lanes" in mosaic("eval", "attach", run.run_id, code=1)


# ---- the client


def test_the_client_steps_lanes_and_a_person_acts(manual):
    lanes = manual.step()
    assert lanes[1].request.operator == "me"
    assert [choice.name for choice in lanes[1].request.choices] == ["left", "right"]

    manual.act(1, "right")
    lanes = manual.wait_until(lambda lanes: all(lane.step_index == 0 for lane in lanes), 30)

    assert (lanes[1].action, lanes[1].action_name, lanes[1].view) == (1, "right", ".@..G")
    assert manual.step(2, lanes=[0])[0].step_index == 2
    assert manual.reset([0], seed=11)[0].seed == 11
    assert manual.finish().state is RunState.TERMINATED


def test_a_refused_command_raises_the_conductors_reason(manual):
    with pytest.raises(MosaicError, match="Lane 1 does not ask a person for an action"):
        manual.act(1, "right")
    manual.step()
    with pytest.raises(MosaicError, match="action: 'up' is not one of the actions"):
        manual.act(1, "up")
    manual.finish()
    with pytest.raises(MosaicError, match="it takes no more commands"):
        manual.step()


def test_two_clients_see_the_same_lanes(lab, manual):
    with TrainerClient.connect(lab.root) as other:
        watching = other.attach_evaluation(manual.run_id)
        manual.step(3, lanes=[0])

        seen = watching.wait_until(lambda lanes: lanes and lanes[0].step_index == 2, 30)

    assert seen[0] == manual.lanes[0]


def test_the_client_plays_and_pauses(manual):
    manual.play(200)
    lanes = manual.wait_until(lambda lanes: bool(lanes[1].request), 30)
    manual.act(1, 0)

    assert lanes[1].state == "asking"
    with pytest.raises(TimeoutError):
        manual.wait_until(lambda lanes: False, 0.05)


def test_a_killed_daemon_loses_no_command_and_repeats_none(lab, manual):
    manual.step(1, lanes=[0])
    lab.kill_daemon()

    with TrainerClient.connect(lab.root, options=lab.options):
        lanes = manual.step(1, lanes=[0])

    assert lanes[0].step_index == 1
    steps = [event["step_index"] for event in stored(manual) if event["type"] == "step"]
    assert steps == [0, 1]


def stored(evaluation):
    evaluation.finish()
    return [event.to_dict() for event in evaluation.events()]


def test_the_asyncio_client_does_the_same(lab):
    async def play():
        async with await AsyncTrainerClient.connect(lab.root) as client:
            evaluation = await client.evaluate({"env": "Corridor", "operators": {"a": "random"}}, manual=True)
            await evaluation.step(2)
            lanes = evaluation.lanes
            return lanes, await evaluation.finish()

    lanes, run = asyncio.run(play())

    assert lanes[0].step_index == 1
    assert run.state is RunState.TERMINATED
