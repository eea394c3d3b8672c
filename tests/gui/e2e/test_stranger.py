"""The path of a stranger: real window, real keys and clicks, no test hook and no injected model."""

import signal

import pytest

from mosaic.model.states import RunState

CURVES = (160, 260, 840, 480)  # left, top, right, bottom: where the first charts of a run's tab are
FRAME = (870, 240, 1260, 660)
PERSON = 2  # the third lane, beside the policy and the random player


def test_from_an_empty_window_to_a_finished_run(screen, stranger, client):
    window = stranger()
    screen.wait_for("No runs yet", size_px=18, is_bold=True)
    screen.shoot("1-empty")

    screen.key("ctrl+n")
    screen.wait_for("Steps")
    screen.fill("Steps", "60")
    screen.fill("Name", "by hand")
    screen.wait_for("Checked. Ready to start.", size_px=12)
    screen.shoot("2-new-run")
    screen.key("Return")

    with client() as daemon:
        screen.wait_until(lambda: daemon.list_runs().runs, "no run appears")
        run = daemon.list_runs().runs[0]
        screen.wait_until(lambda: daemon.get_run(run.run_id).state.is_over, "the run does not end")
        run = daemon.get_run(run.run_id)
    assert (run.state, run.name, run.settings["steps"]) == (RunState.TERMINATED, "by hand", 60)
    screen.wait_for("by hand")
    screen.shoot("3-finished")

    window.send_signal(signal.SIGINT)
    assert window.wait(20) == 0
    with client() as daemon:
        assert daemon.health().healthy


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_train_cancel_evaluate_and_play_beside_the_policy(cleanrl, screen, stranger, client):
    stranger()
    with client_when_up(screen, client) as daemon:
        trained = train(screen, daemon)
        cancel_another(screen, daemon)
        evaluate(screen, daemon, trained)
        play_beside(screen, daemon)


def client_when_up(screen, client):
    screen.wait_for("Start PPO on CartPole (30 s)", timeout_s=120, is_bold=True)
    return client()


def newest(daemon):
    return max(daemon.list_runs().runs, key=lambda run: run.created_at)


def wait_for_state(screen, daemon, run, condition, complaint, timeout_s=300):
    screen.wait_until(lambda: condition(daemon.get_run(run.run_id).state), complaint, timeout_s)
    return daemon.get_run(run.run_id)


def submit(screen, daemon):
    """Press Enter in the sheet, and find the run that it starts."""
    before = len(daemon.list_runs().runs)
    screen.wait_for("Checked. Ready to start.", size_px=12, timeout_s=120)
    screen.key("Return")
    screen.wait_until(lambda: len(daemon.list_runs().runs) > before, "no run appears", 120)
    return newest(daemon)


def train(screen, daemon):
    screen.click_word("Start PPO on CartPole (30 s)", is_bold=True)
    screen.fill("Steps", "20000", is_bold=True)  # bold: not the default
    screen.fill("Name", "learner")
    screen.shoot("4-form")
    run = submit(screen, daemon)
    screen.wait_for("episode/return", timeout_s=240, is_bold=True)
    screen.wait_until_it_moves(CURVES, "the curves do not move", 120)
    screen.wait_until_it_moves(FRAME, "the frame does not move", 120)
    screen.shoot("5-training")
    run = wait_for_state(screen, daemon, run, lambda state: state.is_over, "it does not end")
    screen.wait_for("done")
    screen.shoot("6-trained")
    assert (run.state, run.worker_name, run.name) == (RunState.TERMINATED, "cleanrl", "learner")
    return run


def cancel_another(screen, daemon):
    screen.key("ctrl+n")
    screen.fill("Name", "other")
    run = submit(screen, daemon)
    wait_for_state(screen, daemon, run, lambda state: state is RunState.EXECUTING, "it does not run")
    screen.click_word("Cancel…")
    screen.click_word("Cancel run")
    run = wait_for_state(screen, daemon, run, lambda state: state.is_over, "it is not cancelled")
    assert (run.name, run.cancel_requested) == ("other", True)
    screen.wait_for("cancelled")
    screen.shoot("7-cancelled")


def evaluate(screen, daemon, trained):
    screen.click_word("learner")  # its tab is still open
    screen.wait_for("learner", is_bold=True)  # the title: only now the buttons are those of this run
    screen.click_word("Evaluate…")
    screen.wait_for("Checkpoint")
    before = len(daemon.list_runs().runs)
    screen.click_word("Start", is_bold=True)
    screen.wait_until(lambda: len(daemon.list_runs().runs) > before, "no evaluation appears", 120)
    run = newest(daemon)
    run = wait_for_state(screen, daemon, run, lambda state: state.is_over, "the evaluation does not end")
    screen.wait_for("done")
    screen.shoot("8-evaluated")
    assert (run.state, run.parent_run_id) == (RunState.TERMINATED, trained.run_id)


def play_beside(screen, daemon):
    screen.key("alt+3")
    screen.click_word("Set it up", is_bold=True)
    screen.click_word("+ Person")
    before = len(daemon.list_runs().runs)
    screen.click_word("Open and step by hand", is_bold=True)
    screen.wait_until(lambda: len(daemon.list_runs().runs) > before, "no evaluation appears", 120)
    run = newest(daemon)
    screen.wait_for("Play", timeout_s=240, is_bold=True)
    screen.shoot("9-lanes")
    screen.key("space")
    screen.wait_for("your turn", timeout_s=120)
    screen.shoot("10-your-turn")
    evaluation = daemon.attach_evaluation(run.run_id)
    screen.wait_until(lambda: len(evaluation.lanes) > PERSON, "the lanes are not known")
    # To the left until the pole falls: every key is one step of the person's lane.
    for _ in range(60):
        if evaluation.lanes[PERSON].episodes_done:
            break
        screen.key("a")
    screen.wait_until(lambda: evaluation.lanes[PERSON].episodes_done, "the person's episode does not end")
    screen.shoot("11-played")
    screen.key("f")
    screen.click_word("Finish")
    run = wait_for_state(screen, daemon, run, lambda state: state.is_over, "the evaluation does not finish")
    screen.wait_for("Results", is_bold=True)
    screen.shoot("12-results")
    evaluation.close()
    assert run.state is RunState.TERMINATED
