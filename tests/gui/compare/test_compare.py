"""The Compare page with a real daemon and toy runs."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication

from mosaic.gui.compare.page import ComparePage


@pytest.fixture
def page(qtbot, context):
    page = ComparePage(context)
    qtbot.addWidget(page)
    page.resize(1100, 680)
    page.show()
    return page


def has_curves(page, count):
    charts = page.grid.charts.values()
    return bool(charts) and all(
        len(chart.canvas.curves) == count and all(len(curve.x) for curve in chart.canvas.curves) for chart in charts
    )


def compare(page, qtbot, hub, runs):
    ids = [run.run_id for run in runs]
    qtbot.waitUntil(lambda: set(ids) <= set(hub.runs), timeout=20_000)
    page.set_runs(ids)
    qtbot.waitUntil(lambda: has_curves(page, len(ids)), timeout=20_000)


def test_without_runs_it_says_what_to_do(page, context, qtbot):
    assert page.empty.isVisible()
    assert page.empty.title.text() == "Choose two or more runs."

    qtbot.mouseClick(page.empty.button, Qt.MouseButton.LeftButton)

    assert context.go.visits[0][0] == "show_runs"


def test_curves_and_settings_of_two_runs(page, lab, hub, context, qtbot):
    runs = [lab.submit(name="cartpole", seed=seed, steps=600) for seed in (1, 2)]
    for run in runs:
        lab.wait_until_over(run)

    compare(page, qtbot, hub, runs)
    qtbot.waitUntil(lambda: len(page.settings.table.settings.rows) == 1)

    assert next(iter(page.grid.charts)) == "episode/return"
    assert [row.key for row in page.settings.table.settings.rows] == ["seed"]
    assert [curve.series.label for curve in page.grid.charts["episode/return"].canvas.curves] == [
        f"cartpole (…{run.run_id[-4:]})" for run in runs
    ]
    page.settings.table.copy()
    assert QGuiApplication.clipboard().text().splitlines()[1] == "seed\t1\t2"
    page.settings.all.click()
    assert len(page.settings.table.settings.rows) > 10
    # Remembered by the next page.
    assert ComparePage(context).run_ids() == [run.run_id for run in runs]


def test_a_live_run_keeps_moving_and_a_deleted_one_stays_in_grey(page, lab, hub, qtbot, tmp_path):
    live = lab.submit(name="live", steps=100_000, rate=300)
    over = lab.submit(name="over", steps=600)
    lab.wait_until_over(over)
    lab.wait_until_run(live, lambda run: run.summary.episodes > 0, "an episode")
    compare(page, qtbot, hub, [live, over])
    chart = page.grid.charts["episode/return"]

    before = chart.canvas.curves[0].x[-1]
    qtbot.waitUntil(lambda: chart.canvas.curves[0].x[-1] > before, timeout=20_000)
    lab.client.delete_run(over.run_id)
    qtbot.waitUntil(lambda: chart.canvas.curves[1].series.is_faded, timeout=20_000)

    assert chart.canvas.curves[1].series.label == "over (deleted)"
    assert len(chart.canvas.curves[1].x)
    steps = chart.canvas.curves[0].x
    assert len(set(steps.tolist())) == len(steps)  # nothing is doubled
    page.save(tmp_path / "all.svg")
    assert (tmp_path / "all.svg").stat().st_size > 1000
    qtbot.mouseClick(page.chips.findChild(object, f"compare.chip.{over.run_id}"), Qt.MouseButton.LeftButton)
    assert page.run_ids() == [live.run_id]
    lab.client.cancel_run(live.run_id)


def test_a_run_is_added_by_typing_its_name(page, lab, hub, qtbot):
    run = lab.submit(name="walker", steps=200)
    lab.wait_until_over(run)
    qtbot.waitUntil(lambda: run.run_id in hub.runs, timeout=20_000)

    qtbot.keyClicks(page.field, "walk")
    qtbot.keyClick(page.field, Qt.Key.Key_Return)

    qtbot.waitUntil(lambda: page.run_ids() == [run.run_id])
    qtbot.waitUntil(lambda: has_curves(page, 1), timeout=20_000)


def test_metrics_are_chosen_and_options_reach_the_charts(page, lab, hub, qtbot):
    run = lab.submit(name="toy", steps=600)
    lab.wait_until_over(run)
    compare(page, qtbot, hub, [run])

    shown = list(page.grid.charts)
    names = page.picker.view.model()
    (place,) = names.match(names.index(0, 0), Qt.ItemDataRole.DisplayRole, shown[0], 1, Qt.MatchFlag.MatchExactly)

    names.setData(place, 0, Qt.ItemDataRole.CheckStateRole)
    page.options._log.click()

    assert list(page.grid.charts) == shown[1:]
    assert all(chart.is_log for chart in page.grid.charts.values())
    assert page.source.store.names(run.run_id)


def test_a_zoom_reads_the_range_in_detail(page, lab, hub, qtbot):
    run = lab.submit(name="toy", steps=600)
    lab.wait_until_over(run)
    compare(page, qtbot, hub, [run])
    chart = page.grid.charts["episode/return"]
    version = page.source.store.version(run.run_id, "episode/return")

    qtbot.keyClick(chart.canvas, Qt.Key.Key_Plus)

    qtbot.waitUntil(lambda: page.source.store.version(run.run_id, "episode/return") > version)
    assert not chart.is_following
