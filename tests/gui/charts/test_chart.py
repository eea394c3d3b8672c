"""A chart offscreen, with real mouse and keyboard events."""

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QGuiApplication, QWheelEvent

from mosaic.gui.charts.chart import Chart
from mosaic.gui.charts.picture import PictureError
from mosaic.gui.context import Context
from mosaic.gui.memory import Memory
from mosaic.gui.theme import Theme
from mosaic.present.curves import Series


class Words:
    def __init__(self):
        self.said, self.problems = [], []

    def say(self, text):
        self.said.append(text)

    def problem(self, sentence, details=""):
        self.problems.append(sentence)


@pytest.fixture
def chart(qtbot, tmp_path):
    chart = Chart(Context(None, Memory(tmp_path / "gui.ini"), Theme(), None, "", None, Words()), "loss")
    qtbot.addWidget(chart)
    chart.resize(600, 320)
    chart.show()
    qtbot.waitExposed(chart)
    return chart


def series(y, key="a", x=None, colour=0, **more):
    y = np.asarray(y, float)
    return Series(key, f"run {key}", np.arange(len(y), dtype=float) if x is None else x, y, colour=colour, **more)


def show(chart, *curves, **options):
    chart.set_options(**options)
    chart.set_series(curves)
    chart.refresh()


def shown_x(chart):
    return tuple(chart.canvas.view.viewRange()[0])


def shown_y(chart):
    return tuple(chart.canvas.view.viewRange()[1])


def test_without_values_it_says_so(chart):
    show(chart)

    assert chart.empty.isVisible()
    assert chart.empty.text() == "No values yet."
    assert "no values yet" in chart.accessibleName()


def test_ten_million_points_never_reach_qt(chart):
    y = np.random.default_rng(0).normal(size=10_000_000)

    show(chart, series(y), smoothing=0.9)

    lines = chart.canvas._lines[0]
    assert len(lines.line.getData()[0]) < 5000
    assert len(lines.raw.getData()[0]) < 5000
    assert shown_x(chart) == (0, 9_999_999)
    assert lines.raw.getData()[1].max() == y.max()


def test_nan_and_infinity_leave_gaps_and_a_note(chart):
    show(chart, series([1, np.nan, 2, np.inf, -np.inf, 3]))

    assert chart.note.isVisible()
    assert chart.note.text() == "1 value is NaN, 2 values are infinite."
    assert shown_y(chart)[1] < 4


@pytest.mark.parametrize("smoothing", [0.0, 0.9])
@pytest.mark.parametrize("log_y", [False, True])
def test_numbers_at_the_end_of_float64_are_left_out(chart, smoothing, log_y):
    show(chart, series([1, 1e308, -1e308, 2, 3] * 50), smoothing=smoothing, log_y=log_y)

    assert "100 values are too large to draw" in chart.note.text()
    assert np.isfinite(shown_y(chart)).all()
    assert not chart.grab().isNull()


def test_the_smallest_numbers_are_drawn_as_a_line(chart):
    show(chart, series([5e-324, 1e-323, 5e-324]))

    assert np.isfinite(shown_y(chart)).all()
    assert not chart.grab().isNull()


def test_nothing_but_nan_works(chart):
    show(chart, series([np.nan] * 5000), smoothing=0.9, log_y=True)

    assert chart.note.text() == "5,000 values are NaN."
    assert not chart.grab().isNull()


def test_a_single_point_is_a_dot(chart):
    show(chart, series([3.0]), smoothing=0.9)

    assert len(chart.canvas._lines[0].dots.points()) == 1


def test_a_constant_is_not_magnified(chart):
    show(chart, series([2.5e-4] * 100))

    bottom, top = shown_y(chart)
    assert bottom < 2.5e-4 < top
    assert top - bottom > 1e-4


def test_a_chosen_range_is_kept_while_data_arrives(chart, qtbot):
    show(chart, series(np.arange(100)))
    assert not chart.follow_button.isVisible()

    with qtbot.waitSignal(chart.zoomed) as zoomed:
        qtbot.keyClick(chart.canvas, Qt.Key.Key_Plus)
    chosen = shown_x(chart)
    show(chart, series(np.arange(200)))

    assert zoomed.args == list(chosen)
    assert shown_x(chart) == chosen
    assert chart.follow_button.isVisible()


def test_follow_shows_everything_again(chart, qtbot):
    show(chart, series(np.arange(100)))
    qtbot.keyClick(chart.canvas, Qt.Key.Key_Right)

    with qtbot.waitSignal(chart.followed):
        qtbot.keyClick(chart.canvas, Qt.Key.Key_0)

    assert shown_x(chart) == (0, 99)
    assert not chart.follow_button.isVisible()


def test_a_drag_chooses_a_range_and_a_double_click_follows(chart, qtbot):
    show(chart, series(np.arange(100)))
    view = chart.canvas.view.sceneBoundingRect()
    start, end = (QPoint(int(view.left() + view.width() * part), int(view.center().y())) for part in (0.25, 0.75))

    port = chart.canvas.viewport()
    qtbot.mousePress(port, Qt.MouseButton.LeftButton, pos=start)
    for step in range(1, 11):
        qtbot.mouseMove(port, start + (end - start) * step / 10)
    qtbot.mouseRelease(port, Qt.MouseButton.LeftButton, pos=end)
    left, right = shown_x(chart)
    qtbot.waitUntil(lambda: 20 < shown_x(chart)[0] < 30)
    assert 70 < right < 80
    assert left > 20

    qtbot.mouseDClick(port, Qt.MouseButton.LeftButton, pos=start)
    qtbot.waitUntil(lambda: chart.is_following)


def test_the_wheel_zooms_around_the_mouse(chart, qtbot):
    show(chart, series(np.arange(101)))
    place = chart.canvas.view.sceneBoundingRect().center()
    wheel = QWheelEvent(
        place,
        QPointF(chart.canvas.viewport().mapToGlobal(place.toPoint())),
        QPoint(),
        QPoint(0, 240),
        Qt.MouseButton.NoButton,
        Qt.KeyboardModifier.NoModifier,
        Qt.ScrollPhase.NoScrollPhase,
        False,
    )

    QGuiApplication.sendEvent(chart.canvas.viewport(), wheel)

    left, right = shown_x(chart)
    assert 0 < left < 50 < right < 100


def test_hovering_shows_the_values_of_all_curves(chart):
    show(chart, series([1, 2, 3]), series([4, 5], "b", colour=1), axis="env steps")

    chart.canvas.pointed.emit(0.9)
    here = chart.card.text()
    chart.canvas.pointed.emit(1.9)
    beyond = chart.card.text()
    chart.canvas.pointed.emit(None)

    assert here == "1 env steps\nrun a 2\nrun b 5"
    assert beyond == "2 env steps\nrun a 3\nrun b -"
    assert not chart.card.isVisible()


def test_the_legend_hides_a_curve(chart, qtbot):
    show(chart, series([1, 2]), series([100, 200], "b", colour=1))

    entry = chart.legend._entries["b"]
    assert chart.legend.height() >= entry.height() > 0
    qtbot.mouseClick(entry, Qt.MouseButton.LeftButton)

    assert shown_y(chart)[1] < 10
    assert [curve.series.key for curve in chart.canvas.shown()] == ["a"]


def test_a_log_scale_leaves_out_what_is_not_positive(chart):
    show(chart, series([0, 1, 10, 1000]), log_y=True)

    assert chart.note.text() == "1 value is not positive and left out on the log scale."
    assert shown_y(chart)[1] == pytest.approx(3.18)


def test_a_hidden_chart_does_not_draw(chart):
    show(chart, series([1, 2]))
    chart.hide()
    before = chart.canvas.curves

    chart.set_series([series([1, 2, 3])])
    assert chart.canvas.curves is before

    chart.show()
    assert len(chart.canvas.curves[0].x) == 3


def test_it_draws_at_most_five_times_a_second(chart, qtbot, monkeypatch):
    drawn = []
    show(chart, series([1, 2]))
    refresh = chart.refresh
    monkeypatch.setattr(chart, "refresh", lambda: (drawn.append(1), refresh()))

    for length in range(3, 200):
        chart.set_series([series(np.arange(length))])
    qtbot.waitUntil(lambda: len(chart.canvas.curves[0].x) == 199)

    assert len(drawn) < 20  # of 197


def test_pictures_are_written_and_a_bad_name_is_refused(chart, tmp_path):
    show(chart, series(np.arange(50)))

    chart.save(tmp_path / "loss.png")
    chart.save(tmp_path / "loss.svg")

    assert (tmp_path / "loss.png").read_bytes().startswith(b"\x89PNG")
    assert b"<svg" in (tmp_path / "loss.svg").read_bytes()
    with pytest.raises(PictureError, match=r"must end with .png or .svg"):
        chart.save(tmp_path / "loss.pdf")
    with pytest.raises(PictureError, match="could not be written"):
        chart.save(tmp_path / "no such folder" / "loss.svg")


def test_copying_gives_a_picture_or_tab_separated_text(chart):
    show(chart, series([1, 2]))

    chart.copy_data()
    assert QGuiApplication.clipboard().text() == "env steps\trun a\n0\t1\n1\t2\n"

    chart.copy_picture()
    assert not QGuiApplication.clipboard().image().isNull()


def test_a_change_of_the_theme_repaints(chart):
    show(chart, series([1, 2]))
    before = chart.canvas._lines[0].line.opts["pen"].color().name()

    chart._context.theme.choose("dark")

    assert chart.canvas._lines[0].line.opts["pen"].color().name() != before


def test_colours_repeat_with_dashes(chart):
    show(chart, *(series([1, 2], str(index), colour=index) for index in range(12)))

    pens = [lines.line.opts["pen"] for lines in chart.canvas._lines]
    assert pens[0].color() == pens[8].color()
    assert not pens[0].dashPattern()
    assert pens[8].dashPattern()


def test_markup_in_names_is_shown_as_text(chart):
    show(chart, Series("a", "<b>bold</b>\x1b[31m", np.arange(2.0), np.arange(2.0)), series([1, 2], "b"))

    entry = next(iter(chart.legend._entries.values()))
    assert entry.text() == "<b>bold</b>"
    assert "&lt;b&gt;" in entry.toolTip()


def test_a_legend_of_many_names_wraps(chart, qtbot):
    show(chart, *(series([1, 2], f"long name {index}", colour=index) for index in range(12)))

    qtbot.waitUntil(lambda: chart.legend.height() > 40)
    bottoms = [entry.geometry().bottom() for entry in chart.legend._entries.values()]
    assert max(bottoms) < chart.legend.height()
