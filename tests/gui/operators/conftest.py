"""A daemon for a module, with a conductor that plays a corridor as the worker `eval`."""

import shutil
import tempfile
from pathlib import Path

import pytest
from corridor import install_corridor
from lab import Lab

from mosaic.gui.operators.page import OperatorsPage


@pytest.fixture(scope="module")
def lab():
    home = Path(tempfile.mkdtemp(prefix="mosaic-"))
    lab = Lab(home)
    install_corridor(home)
    yield lab
    lab.close()
    shutil.rmtree(home, ignore_errors=True)


@pytest.fixture
def page(qtbot, context):
    page = OperatorsPage(context)
    qtbot.addWidget(page)
    page.resize(1100, 660)
    page.show()
    qtbot.waitUntil(lambda: context.hub.connection.state == "ok", timeout=20_000)
    return page


@pytest.fixture
def open_lanes(qtbot, lab, page):
    """Opens an evaluation of the corridor; returns its view when every lane is there."""
    made = []

    def start(operators, manual=True, **more):
        evaluation = lab.client.evaluate(
            {"env": "Corridor", "operators": operators, "seeds": "3-5", **more}, manual=manual
        )
        made.append(evaluation)
        page.show_evaluation(evaluation.run_id)
        view = page.evaluation
        qtbot.waitUntil(lambda: len(view.session.evaluation.lanes) == len(operators), timeout=30_000)
        if manual:
            qtbot.waitUntil(lambda: all(lane.seed == 3 for lane in view.session.evaluation.lanes), timeout=30_000)
        return view

    yield start
    for evaluation in made:
        if not lab.client.get_run(evaluation.run_id).state.is_over:  # not by the handle: the daemon may be another one
            lab.client.cancel_run(evaluation.run_id)
