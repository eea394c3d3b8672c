"""The terminal and the client with the real eval worker: a person plays MiniGrid among others."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from terminal import Terminal

from mosaic.model.states import RunState

REPO = Path(__file__).parents[2]
MOSAIC = Path(sys.executable).with_name("mosaic")
ENVIRONMENT = REPO / ".venv-eval"
pytestmark = pytest.mark.skipif(
    not (ENVIRONMENT / ".ready").exists(), reason="the worker's environment is missing: make .venv-eval/.ready"
)
GRID = "MiniGrid-Empty-5x5-v0"


@pytest.fixture(scope="module")
def lab(shared_lab):
    (shared_lab.root.path / "envs").mkdir(exist_ok=True)
    (shared_lab.root.path / "envs/eval").symlink_to(ENVIRONMENT)
    return shared_lab


def test_a_person_reaches_the_goal_in_a_terminal_among_random_agents(lab):
    words = ("eval", "--env", GRID, "--operator", "me=human", "--operator", "random", "--seeds", "7-7")
    terminal = Terminal([MOSAIC, *words, "--max-steps", "40"], {"MOSAIC_HOME": str(lab.root.path)}, 110, 40)
    try:
        for number, key in enumerate("wwdww"):  # ahead, ahead, turn right, ahead, ahead
            terminal.waits_for(f"step {number}")  # above the question on the same screen
            terminal.waits_for("me, lane 0: choose an action")
            terminal.types(key)
        code, output = terminal.ends()
    finally:
        terminal.close()

    assert code == 0
    assert re.search(r"me +1 .*100 %", output), output
    run = lab.client.get_run("last")
    rows = [event for event in lab.events(run, "episode") if event["operator"] == "me"]
    assert [(row["episode_seed"], row["steps"], row["terminated"]) for row in rows] == [(7, 5, True)]


def test_lanes_are_stepped_in_lock_step_by_the_client(lab):
    script = {"env": "FrozenLake-v1", "operators": {"a": "random", "b": "random", "me": "human"}, "seeds": "0-2"}
    evaluation = lab.client.evaluate(script, manual=True)
    lanes = evaluation.step()
    assert [choice.name for choice in lanes[2].request.choices] == ["left", "down", "right", "up"]

    evaluation.act(2, "down")
    lanes = evaluation.wait_until(lambda lanes: all(lane.step_index == 0 for lane in lanes), 60)

    assert [lane.seed for lane in lanes] == [0, 0, 0]
    assert "The lake" in lanes[0].view
    assert evaluation.reset([1], seed=9)[1].seed == 9
    assert evaluation.lanes[0].step_index == 0  # the others are not reset
    assert evaluation.finish().state is RunState.TERMINATED


def test_a_resumed_evaluation_shows_its_lanes_and_the_table(lab, tmp_path):
    words = [MOSAIC, "eval", "--env", "FrozenLake-v1", "--operator", "random", "--seeds", "0-1", "--max-steps", "5"]
    env = {**os.environ, "MOSAIC_HOME": str(lab.root.path)}
    subprocess.run([*words, "--name", "short"], env=env, check=True, capture_output=True)

    done = subprocess.run([MOSAIC, "resume", "short"], env=env, check=True, capture_output=True, text=True)

    assert re.search(r"^random +2 ", done.stdout, re.MULTILINE), done.stdout
