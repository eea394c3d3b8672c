"""Evaluations on real terminals: the screen, its keys, and people who play."""

import re
import signal
import sys
from pathlib import Path

import pytest
from corridor import install_corridor
from terminal import Terminal

from mosaic.model.states import RunState

MOSAIC = Path(sys.executable).with_name("mosaic")
ALONE = ("eval", "--env", "Corridor", "--operator", "random", "--seeds", "3-5")
MANUAL = (*ALONE, "--manual")
WITH_ME = ("eval", "--env", "Corridor", "--operator", "me=human", "--operator", "random", "--seeds", "3-3")


@pytest.fixture(scope="module")
def lab(shared_lab):
    install_corridor(shared_lab.root.path)
    return shared_lab


@pytest.fixture
def open_terminal(lab):
    terminals = []

    def open_one(*words, **size):
        terminals.append(Terminal([MOSAIC, *words], {"MOSAIC_HOME": str(lab.root.path)}, **size))
        return terminals[-1]

    yield open_one
    for terminal in terminals:
        terminal.close()
    for run in lab.client.list_runs(["INIT", "HANDSHAKE", "READY", "EXECUTING"]).runs:
        lab.client.cancel_run(run.run_id)
        lab.wait_until_over(run)


def test_lanes_are_stepped_played_and_finished_by_keys(lab, open_terminal):
    terminal = open_terminal(*MANUAL)
    terminal.waits_for("@...G")
    terminal.waits_for("q quit")
    terminal.types(" ")
    terminal.waits_for("step 1")
    terminal.types("s")
    terminal.waits_for("step 2")
    terminal.types("++p")
    terminal.waits_for("20 steps/s")
    terminal.waits_for("done 1/3")
    terminal.types("n")
    terminal.waits_for("seed 4")
    terminal.types("q")
    terminal.waits_for("finish and show the results (f)")
    terminal.types("f")

    code, output = terminal.ends()

    assert code == 0
    assert "TERMINATED" in output
    assert re.search(r"random +1 ", output), output  # the table of results


def test_q_and_l_leave_the_evaluation_running(lab, open_terminal):
    terminal = open_terminal(*MANUAL)
    terminal.waits_for("q quit")
    terminal.types("q")
    terminal.waits_for("Leave it running (l)")
    terminal.types("l")

    code, output = terminal.ends()

    assert code == 0
    run = lab.client.get_run("last")
    assert f"mosaic eval attach {run.run_id}" in output
    again = open_terminal("eval", "attach", run.run_id)
    again.waits_for("@...G")
    again.types(":finish\r")
    assert again.ends()[0] == 0
    assert lab.state(run) is RunState.TERMINATED


def test_a_typed_command_and_its_refusal(open_terminal):
    terminal = open_terminal(*MANUAL)
    terminal.waits_for("q quit")
    terminal.types(":stpe\r")
    terminal.waits_for("Did you mean 'step'?")
    terminal.types(":reset 0 seed=77\r")
    terminal.waits_for("seed 77")
    terminal.types("?")
    terminal.waits_for("Press any key to go back.")
    terminal.types("xql")

    assert terminal.ends()[0] == 0


def test_a_person_plays_among_others(lab, open_terminal):
    terminal = open_terminal(*WITH_ME)
    terminal.waits_for("choose an action")
    terminal.waits_for("a ← left")
    for place in (".@..G", "..@.G", "...@G"):
        terminal.types("d")
        terminal.waits_for(place)
    terminal.types("d")

    code, output = terminal.ends()

    assert code == 0
    assert "TERMINATED" in output
    steps = [event for event in lab.events(lab.client.get_run("last"), "step") if event["agent_id"] == "me"]
    assert [step["action"] for step in steps] == [1, 1, 1, 1]


def test_arrow_keys_act_too(open_terminal, lab):
    terminal = open_terminal(*WITH_ME)
    terminal.waits_for("choose an action")
    terminal.types("\x1b[D")
    terminal.waits_for("step 1")
    terminal.types("\x1b")
    terminal.waits_for("cancel it (c)")
    terminal.types("c")

    assert terminal.ends()[0] == 1
    assert lab.client.get_run("last").state is RunState.CANCELLED


def test_the_time_left_is_shown(open_terminal):
    terminal = open_terminal(*WITH_ME, "--set", "me.time_limit_s=90")

    terminal.waits_for(" s left")


def test_each_person_has_a_terminal_of_their_own(lab, open_terminal):
    words = ("--operator", "ann=human", "--operator", "bob=human", "--seeds", "3-3", "--detach")
    terminal = open_terminal("eval", "--env", "Corridor", *words)
    assert terminal.ends()[0] == 0
    run = lab.client.get_run("last")
    ann, bob = (open_terminal("eval", "attach", run.run_id, "--as", name) for name in ("ann", "bob"))

    for _ in range(4):
        ann.waits_for("ann, lane 0: choose an action")
        ann.types("d")
        bob.waits_for("bob, lane 1: choose an action")
        bob.types("d")

    assert (ann.ends()[0], bob.ends()[0]) == (0, 0)
    assert "bob, lane 1: choose" not in ann.read.decode()


@pytest.mark.parametrize("answer", ["d", "c"])
def test_ctrl_c_asks_whether_to_detach_or_cancel(lab, open_terminal, answer):
    terminal = open_terminal(*MANUAL)
    terminal.waits_for("q quit")
    terminal.types("\x03")
    terminal.waits_for("Detach (the run continues) or cancel it? [d/c]")
    terminal.types(f"{answer}\r")

    code, _ = terminal.ends()

    assert code == 130
    assert (lab.client.get_run("last").state is RunState.CANCELLED) == (answer == "c")


def test_the_terminal_is_restored_after_a_signal(open_terminal):
    terminal = open_terminal(*MANUAL)
    terminal.waits_for("q quit")
    terminal.process.send_signal(signal.SIGTERM)

    code, output = terminal.ends()  # which checks the terminal's modes

    assert code == 143
    assert "\x1b[?1049l" in output
    assert "Traceback" not in output


def test_a_run_that_is_cancelled_elsewhere_ends_the_screen(lab, open_terminal):
    terminal = open_terminal(*MANUAL)
    terminal.waits_for("q quit")
    lab.client.cancel_run("last")

    code, output = terminal.ends()

    assert code == 1
    assert "CANCELLED" in output


def test_a_resized_terminal_is_drawn_anew(open_terminal):
    terminal = open_terminal(*MANUAL, columns=120, rows=30)
    terminal.waits_for("0-9 lane")
    terminal.resize(40, 12)
    terminal.process.send_signal(signal.SIGWINCH)
    terminal.waits_for("─" * 40 + "\x1b")
    terminal.types("ql")

    assert terminal.ends()[0] == 0


def test_a_script_is_followed_lane_by_lane(open_terminal):
    terminal = open_terminal(*ALONE, "--operator", "passive", "--pace", "40")
    terminal.waits_for("/6 episodes")
    terminal.waits_for("passive")
    terminal.waits_for("3/3")

    code, output = terminal.ends()

    assert code == 0
    assert "TERMINATED" in output
