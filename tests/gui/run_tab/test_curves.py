"""The curves of a run: very many names, values that are not finite, and very many events."""

import json

import pytest
from PySide6.QtCore import Qt

from mosaic.gui.run_tab.tab import RunTab

WAIT_MS = 30_000
WORKER = """
import json
for step in range(1, 40):
    values = {f"metric_{number:03}": step * number for number in range(500)}
    values["odd/loss"] = [1.0, float("nan"), float("inf"), float("-inf")][step % 4]
    print(json.dumps({"type": "metric", "step": step, "values": values}), flush=True)
"""


def is_listed(hub, run):
    """Whether the hub knows the run as it is by now, or newer."""
    return run.run_id in hub.runs and hub.runs[run.run_id].revision >= run.revision


@pytest.fixture
def open_curves(qtbot, context):
    tabs = []  # qtbot keeps only weak references

    def open_it(run):
        qtbot.waitUntil(lambda: is_listed(context.hub, run), timeout=WAIT_MS)
        tab = RunTab(context, run.run_id, "curves")
        qtbot.addWidget(tab)
        tab.resize(1280, 720)
        tab.show()
        tabs.append(tab)
        return tab.section_widget("curves")

    return open_it


def length(curves, run, name):
    return len(curves.store.series(run.run_id, name, "env steps").x)


def test_five_hundred_names_and_values_that_are_not_finite(qtbot, lab, context, open_curves, tmp_path):
    script = tmp_path / "many.py"
    script.write_text(WORKER)
    run = lab.wait_until_over(lab.submit_worker({"script": str(script)}))
    curves = open_curves(run)

    qtbot.waitUntil(lambda: len(curves.grid.charts) == 6, timeout=WAIT_MS)
    qtbot.waitUntil(lambda: length(curves, run, "odd/loss") == 39, timeout=WAIT_MS)
    picker = curves.bar.picker
    assert len(picker.names.shown) == 501
    picker.search.setText("metric 499")
    assert picker.names.shown == ["metric_499"]
    index = picker.names.index(0)
    picker.names.setData(index, Qt.CheckState.Checked, Qt.ItemDataRole.CheckStateRole)

    assert list(curves.grid.charts)[-1] == "metric_499"
    qtbot.waitUntil(lambda: length(curves, run, "metric_499") == 39, timeout=WAIT_MS)
    remembered = context.memory.value(f"curves/metrics/{run.worker_name}", "")
    assert json.loads(remembered)[-1] == "metric_499"


def test_a_hundred_thousand_events_arrive(qtbot, lab, open_curves):
    run = lab.submit("burst", steps=10, burst=100_000)
    curves = open_curves(run)
    lab.wait_until_over(run)

    qtbot.waitUntil(lambda: curves.source.run.state.is_over, timeout=WAIT_MS)
    qtbot.waitUntil(lambda: len(curves.grid.charts) > 1, timeout=WAIT_MS)
    name = next(iter(curves.grid.charts))
    qtbot.waitUntil(lambda: length(curves, run, name) > 0, timeout=WAIT_MS)


def test_a_zoom_asks_the_store_for_detail(qtbot, lab, open_curves):
    run = lab.wait_until_over(lab.submit("detail", steps=30_000, metrics_every=1))
    curves = open_curves(run)
    qtbot.waitUntil(lambda: "toy/loss" in curves.grid.charts, timeout=WAIT_MS)
    qtbot.waitUntil(lambda: length(curves, run, "toy/loss") > 100, timeout=WAIT_MS)
    chart = curves.grid.charts["toy/loss"]

    def between(left, right):
        x = curves.store.series(run.run_id, "toy/loss", "env steps").x
        return int(((x >= left) & (x <= right)).sum())

    coarse = between(1000, 2000)
    chart.canvas.chosen_x = (1000.0, 2000.0)
    chart.zoomed.emit(1000.0, 2000.0)

    qtbot.waitUntil(lambda: between(1000, 2000) > 2 * coarse, timeout=WAIT_MS)
    chart.follow()
    qtbot.waitUntil(lambda: between(1000, 2000) == coarse, timeout=WAIT_MS)
