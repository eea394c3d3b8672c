"""An operator whose process really dies, beside one that plays on: the real conductor and the toy worker."""

import shutil
import tempfile
from pathlib import Path

import pytest
from lab import Lab

REPO = Path(__file__).parents[3]
WAIT = 60_000


@pytest.fixture(scope="module")
def lab():
    home = Path(tempfile.mkdtemp(prefix="mosaic-"))
    assert (REPO / ".venv-eval/.ready").exists(), "the environment is missing: make .venv-eval/.ready"
    (home / "envs").mkdir()
    (home / "envs" / "eval").symlink_to(REPO / ".venv-eval")
    lab = Lab(home)
    yield lab
    lab.close()
    shutil.rmtree(home, ignore_errors=True)


def test_a_crash_stands_in_its_card_and_the_others_go_on(qtbot, lab, page):
    frail = {"kind": "worker", "worker": "toy", "settings": {"signal_at": 2, "kill_self": "SIGKILL"}}
    script = {
        "env": "toy",
        "operators": {"frail": frail, "sound": {"kind": "worker", "worker": "toy"}},
        "seeds": [0, 1],
        "max_steps": 5,
    }
    evaluation = lab.client.evaluate(script)
    page.show_evaluation(evaluation.run_id)
    view = page.evaluation

    qtbot.waitUntil(
        lambda: len(view.grid.cards) == 2 and "frail" in view.grid.cards[0]._problem.toPlainText(), timeout=WAIT
    )
    qtbot.waitUntil(lambda: view.session.evaluation.lanes[1].episodes_done == 2, timeout=WAIT)

    assert "SIGKILL" in view.grid.cards[0]._problem.toPlainText()
    assert view.grid.cards[0]._problem.isVisible()
    assert not view.grid.cards[1]._problem.isVisible()
