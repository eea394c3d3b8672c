import numpy as np

from mosaic.present.curve_table import as_tsv
from mosaic.present.curves import Series
from mosaic.present.prepared import LeftOut, PreparedCurve, isolated
from mosaic.present.ranges import x_range, y_range
from mosaic.present.run_labels import distinct_labels
from mosaic.present.settings_diff import as_tsv as settings_tsv
from mosaic.present.settings_diff import compare_settings


def series(y, x=None):
    y = np.array(y, float)
    return Series("k", "loss", np.arange(len(y), dtype=float) if x is None else np.array(x, float), y)


def test_what_cannot_be_drawn_is_counted_and_said():
    curve = PreparedCurve(series([1, np.nan, np.inf, -1, 0]), 0.0, is_log=True)

    assert curve.left_out == LeftOut(1, 1, 2)
    assert LeftOut(3, 1).text() == "3 values are NaN, 1 value is infinite"
    assert LeftOut().text() == ""


def test_a_log_scale_reads_back_the_values():
    curve = PreparedCurve(series([1, 10, 100]), 0.0, is_log=True)

    assert curve.y.tolist() == [0, 1, 2]
    assert curve.at(1.2).value == 10
    assert curve.at(7) is None


def test_a_curve_of_nan_has_no_range():
    curve = PreparedCurve(series([np.nan, np.nan]), 0.9, is_log=False)

    assert curve.y_span(0, 1) is None
    assert y_range(None) == (0, 1)


def test_a_constant_gets_a_range_of_its_own_size():
    low, high = y_range((2.5e-4, 2.5e-4 + 1e-15))

    assert 0 < low < 2.5e-4 < high < 1e-3
    assert y_range((0.0, 0.0)) == (-1, 1)


def test_a_single_point_lies_in_the_middle():
    low, high = x_range((1000.0, 1000.0))

    assert (low + high) / 2 == 1000


def test_points_without_neighbours_are_found():
    assert isolated(np.array([1, np.nan, 2, 3, np.nan, 4])).tolist() == [True, False, False, False, False, True]
    assert isolated(np.array([1.0])).tolist() == [True]


def test_copied_curves_have_a_column_each():
    first, second = series([1, 2.5]), Series("j", "a\tb", np.array([1.0]), np.array([np.nan]))

    assert as_tsv([first, second], "env steps") == "env steps\tloss\ta b\n0\t1\t\n1\t2.5\tnan\n"


def test_only_settings_that_differ_are_marked():
    rows = compare_settings([{"lr": 1e-3, "seed": 1, "steps": 1e6}, {"lr": 1e-3, "seed": 2, "steps": 1000000}, None])

    assert [(row.key, row.differs) for row in rows] == [("lr", False), ("seed", True), ("steps", False)]
    assert rows[1].values == ("1", "2", "-")


def test_a_setting_that_only_one_run_has_differs():
    assert compare_settings([{"a": 1}, {}])[0].differs


def test_copied_settings_are_tab_separated():
    rows = compare_settings([{"a": "x\ty"}, {"a": None}])

    assert settings_tsv(rows, ["one", "two"]) == "setting\tone\ttwo\na\tx y\tnull\n"


def test_equal_names_are_told_apart_by_their_ids():
    labels = distinct_labels({"01JCAAAA": "cartpole", "01JCBBBB": "cartpole", "01JCCCCC": "", "01JCDDDD": "x\x1b[1m"})

    assert list(labels.values()) == ["cartpole (…AAAA)", "cartpole (…BBBB)", "01JCCCCC", "x"]
