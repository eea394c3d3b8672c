"""Groups, bands and statistics on the Compare page, with a real daemon and toy runs of an experiment."""

import pytest

from mosaic.gui.compare.page import ComparePage


def submit(lab, axes, **config):
    worker = {"module": "toy_worker.cli", "config": {"steps": 1500, **config, **axes}}
    metadata = {"worker": worker, "run_name": "toy", "experiment": {"name": "lengths", "axes": axes}}
    return lab.client.submit_run({"metadata": metadata, "payload": {}})


@pytest.fixture
def page(qtbot, context):
    page = ComparePage(context)
    qtbot.addWidget(page)
    page.resize(1300, 900)
    page.show()
    return page


def choose(page, key):
    page.by.setCurrentIndex(page.by.findData(key))
    page.by.activated.emit(page.by.currentIndex())


def test_an_experiment_is_added_grouped_and_judged(page, lab, hub, context, qtbot, tmp_path):
    runs = [submit(lab, {"episode_length": length, "seed": seed}) for length in (40, 50) for seed in range(4)]
    runs.append(submit(lab, {"episode_length": 50, "seed": 9}, crash_at=500))
    for run in runs:
        lab.wait_until_over(run)
    qtbot.waitUntil(lambda: {run.run_id for run in runs} <= set(hub.runs), timeout=20_000)

    qtbot.keyClicks(page.field, "experiment lengths")
    page.field.returnPressed.emit()
    qtbot.waitUntil(lambda: len(page.run_ids()) == 9, timeout=20_000)
    qtbot.waitUntil(lambda: page.by.findData("episode_length") > 0, timeout=20_000)
    qtbot.waitUntil(lambda: "episode/return" in page.grid.charts, timeout=20_000)
    choose(page, "episode_length")
    chart = page.grid.charts["episode/return"]
    qtbot.waitUntil(lambda: len(chart.canvas.curves) == 2, timeout=20_000)
    qtbot.waitUntil(lambda: "beats" in page.statistics.verdict.text(), timeout=20_000)

    assert [curve.series.label for curve in chart.canvas.curves] == ["episode_length=40", "episode_length=50"]
    assert all(curve.series.low is not None for curve in chart.canvas.curves)
    assert chart.canvas.curves[0].x[-1] > 1400  # the failed run does not end the curves
    assert not page.options._smoothing.isEnabled()
    rows = page.statistics.table.settings.rows
    assert [(row.key, row.values[0]) for row in rows] == [("episode_length=40", "4"), ("episode_length=50", "4 of 5")]
    assert page.statistics.verdict.text().startswith("episode_length=50 beats episode_length=40 by ")
    assert "seed 9" in page.statistics.warnings.text()
    assert "FAULTED" in page.statistics.warnings.text()
    assert page.statistics.isVisible()
    page.grab().save(str(tmp_path / "compare.png"))

    choose(page, "")
    qtbot.waitUntil(lambda: len(chart.canvas.curves) == 9, timeout=20_000)
    assert not page.statistics.isVisible()
