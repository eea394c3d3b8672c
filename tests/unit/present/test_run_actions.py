"""What can be done with the selected runs, and why not."""

import pytest

from mosaic.present.run_actions import ACTIONS, cancel_question, delete_question

ACTION = {action.key: action for action in ACTIONS}


@pytest.fixture
def runs(make_run):
    return {
        "live": make_run(name="live"),
        "over": make_run("TERMINATED", name="over"),
        "ending": make_run(cancel_requested=True),
        "eval": make_run("TERMINATED", area="evals"),
    }


@pytest.mark.parametrize(
    ("key", "selected", "host", "reason"),
    [
        ("cancel", "", "", "Select a run first."),
        ("cancel", "live", "", ""),
        ("cancel", "live over", "", ""),
        ("cancel", "over", "", "The run is over."),
        ("cancel", "over eval", "", "The selected runs are over."),
        ("cancel", "ending", "", "It is already being cancelled."),
        ("delete", "over", "", ""),
        ("delete", "live over", "", ""),
        ("delete", "live", "", "A live run cannot be deleted. Cancel it first."),
        ("duplicate", "live", "", ""),
        ("duplicate", "live over", "", "Select only one run."),
        ("resume", "over", "", ""),
        ("resume", "live", "", "The run is still live."),
        ("resume", "eval", "", "An evaluation cannot be resumed."),
        ("evaluate", "live", "", ""),
        ("evaluate", "eval", "", "This is an evaluation. Select the run that was trained."),
        ("folder", "over", "", ""),
        ("folder", "over", "user@box", "The folder is on user@box, not on this machine."),
        ("compare", "over", "", "Select two or more runs to compare them."),
        ("compare", "over live", "", ""),
        ("copy_id", "over live", "", ""),
    ],
)
def test_an_action_applies_or_says_why_not(runs, key, selected, host, reason):
    assert ACTION[key].why_not([runs[name] for name in selected.split()], host) == reason


def test_one_question_for_all(runs, make_run):
    both = [runs["live"], runs["over"]]

    assert cancel_question(both[:1]) == 'Cancel "live"? What it has stored is kept.'
    assert cancel_question(both) == "Cancel 1 of the 2 selected runs? What it has stored is kept."
    assert cancel_question([runs["live"], make_run()]) == "Cancel 2 runs? What they have stored is kept."
    assert delete_question(both[1:], 41_200_000).startswith(
        'Delete "over" with telemetry, logs and checkpoints? This frees 41.2 MB.'
    )
    assert "frees" not in delete_question(both[1:], None)


def test_a_long_name_does_not_fill_the_question(make_run):
    assert len(cancel_question([make_run(name="n" * 500)])) < 120
