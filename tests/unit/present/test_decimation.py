import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from mosaic.present.decimation import decimate, decimate_band, shares, visible

VALUES = st.lists(st.floats(-1e6, 1e6) | st.just(float("nan")), min_size=1, max_size=600)


@given(VALUES, st.integers(1, 40))
@settings(max_examples=60, deadline=None)
def test_the_extremes_of_every_column_survive(values, columns):
    y = np.array(values)
    x = np.arange(len(y), dtype=float)

    short_x, short_y = decimate(x, y, columns)

    assert len(short_x) <= max(4 * columns, 2 * columns + 2)
    edges = np.linspace(x[0], x[-1], columns, endpoint=False) if len(x) > 4 * columns else x
    for left, right in zip(edges, [*edges[1:], np.inf], strict=True):
        part = y[(x >= left) & (x < right)]
        kept = short_y[(short_x >= left) & (short_x < right)]
        if np.isfinite(part).any():
            assert np.nanmin(kept) == np.nanmin(part)
            assert np.nanmax(kept) == np.nanmax(part)


def test_the_first_and_the_last_point_stay():
    x = np.arange(100_000.0)
    y = np.sin(x)

    short_x, short_y = decimate(x, y, 100)

    assert (short_x[0], short_y[0]) == (x[0], y[0])
    assert (short_x[-1], short_y[-1]) == (x[-1], y[-1])


def test_a_gap_stays_a_gap():
    x = np.arange(10_000.0)
    y = np.where((x > 4000) & (x < 6000), np.nan, 1.0)

    short_x, short_y = decimate(x, y, 100)

    assert np.isnan(short_y[(short_x > 4100) & (short_x < 5900)]).all()


def test_a_curve_of_nothing_but_nan_is_drawn_as_nothing():
    _, short = decimate(np.arange(1000.0), np.full(1000, np.nan), 10)

    assert np.isnan(short).all()


def test_the_visible_part_has_one_neighbour_on_either_side():
    x = np.arange(10.0)

    assert visible(x, 3.5, 5.5) == slice(3, 7)
    assert visible(x, -5, 50) == slice(0, 10)
    assert visible(np.empty(0), 0, 1) == slice(0, 0)


def test_a_band_keeps_its_widest_places():
    x = np.arange(1000.0)
    low, high = -x, x

    _, short_low, short_high = decimate_band(x, low, high, 10)

    assert (short_low.min(), short_high.max()) == (-999, 999)


def test_shares_are_means_without_what_is_not_a_number():
    x, y = shares(np.arange(6.0), np.array([1, 3, np.nan, 5, np.nan, np.nan]), 3)

    assert x.tolist() == [1, 3, 5]
    assert y[:2].tolist() == [2, 5]
    assert np.isnan(y[2])
