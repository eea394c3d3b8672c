import math
import random
import sqlite3

import pytest
from ingest_batches import RUN, Spool, episode, metric, step

from mosaic.ingest import rollup
from mosaic.ingest.rollup import Bucket
from mosaic.ingest.store import RunStore

NAN, INF = math.nan, math.inf


def feed(store, spool, events, size=997):
    for i in range(0, len(events), size):
        store.commit(spool.batch(*events[i : i + size]))


def rewards(n, seed=3):
    chance = random.Random(seed)
    return [round(chance.uniform(-1, 1), 3) for _ in range(n)]


def curve_rows(curve):
    return list(zip(curve.step, curve.mean, curve.min, curve.max, curve.count, strict=True))


def grouped(steps, values, width):
    """The expected curve of buckets of `width` points, computed the slow way."""
    cut = [(steps[i : i + width], values[i : i + width]) for i in range(0, len(values), width)]
    return [(s[-1], pytest.approx(sum(v) / len(v)), min(v), max(v), len(v)) for s, v in cut]


def test_a_curve_with_few_points_is_exact(store, spool):
    feed(store, spool, [metric(i * 10, loss=i / 3) for i in range(150)])

    curve = store.curve("loss", 200)

    assert curve_rows(curve) == [(i * 10, i / 3, i / 3, i / 3, 1) for i in range(150)]


@pytest.mark.parametrize("n", [63, 64, 65, 1023, 1024, 1025, 2500, 16384, 16385, 40_000])
@pytest.mark.parametrize("points", [1, 10, 100])
def test_a_curve_includes_every_point_exactly_once(store, spool, n, points):
    values = rewards(n)
    feed(store, spool, [step(i, value) for i, value in enumerate(values)])

    curve = store.curve("step/reward", points)

    assert 1 <= len(curve.step) <= points
    assert sum(curve.count) == n
    assert (min(curve.min), max(curve.max)) == (min(values), max(values))
    total = sum(mean * count for mean, count in zip(curve.mean, curve.count, strict=True))
    assert total == pytest.approx(sum(values))
    assert curve.step[-1] == n - 1


def test_between_points_and_rollups_the_packed_points_are_grouped(store, spool):
    values = rewards(1000)
    feed(store, spool, [step(i, value) for i, value in enumerate(values)])

    assert curve_rows(store.curve("step/reward", 100)) == grouped(range(1000), values, 10)


def test_a_long_curve_is_made_of_whole_buckets_in_order(store, spool):
    values = rewards(64 * 35)
    feed(store, spool, [step(i, value) for i, value in enumerate(values)])

    assert curve_rows(store.curve("step/reward", 10)) == grouped(range(64 * 35), values, 64 * 4)


@pytest.mark.parametrize("window", [(None, 500), (39_990, None), (20_000, 20_009), (1_000, 30_000), (50_000, 60_000)])
def test_a_window_has_all_its_points_and_no_others(store, spool, window):
    values = rewards(40_000)
    feed(store, spool, [step(i, value) for i, value in enumerate(values)])
    first, last = window[0] or 0, 39_999 if window[1] is None else window[1]
    inside = range(first, min(last, 39_999) + 1)

    curve = store.curve("step/reward", 100, *window)

    if len(inside) <= 100:
        assert curve_rows(curve) == [(i, values[i], values[i], values[i], 1) for i in inside]
    else:
        assert len(inside) <= sum(curve.count) <= len(inside) + 2 * 64
        assert min(curve.min) <= min(values[i] for i in inside)
        assert len(curve.step) <= 100


def test_a_window_of_a_curve_whose_steps_restart_filters_points(store, spool):
    feed(store, spool, [step(i % 100, float(i)) for i in range(1000)])

    curve = store.curve("step/reward", 100, 5, 6)

    assert sorted(curve.mean) == [float(i) for i in range(1000) if i % 100 in (5, 6)]


def test_episodes_have_two_curves_and_every_metric_its_own(store, spool):
    store.commit(spool.batch(episode(1, 2.5, steps=30), metric(4, a=1.0, b=2.0), metric(5, a=3.0), step(1)))

    assert store.curve_names() == ["a", "b", "episode/length", "episode/return"]
    assert list(store.curve("").known_names) == store.curve_names()
    assert curve_rows(store.curve("a")) == [(4, 1.0, 1.0, 1.0, 1), (5, 3.0, 3.0, 3.0, 1)]
    assert curve_rows(store.curve("episode/length")) == [(1, 30.0, 30.0, 30.0, 1)]
    assert curve_rows(store.curve("never logged")) == []


@pytest.mark.parametrize("points", [2, 2000])
def test_nan_is_counted_but_not_summed(store, spool, points):
    feed(store, spool, [metric(i, x=NAN if i % 2 else 3.0) for i in range(1024)] + [metric(2000, x=NAN)])

    curve = store.curve("x", points)

    assert sum(curve.count) == 1025
    assert {value for value in curve.mean if value == value} == {3.0}
    assert {value for value in curve.max if value == value} == {3.0}


def test_a_bucket_of_only_nan_is_nan(store, spool):
    feed(store, spool, [metric(i, x=NAN) for i in range(64 * 40)])

    curve = store.curve("x", 4)

    assert all(math.isnan(v) for column in (curve.mean, curve.min, curve.max) for v in column)
    assert sum(curve.count) == 64 * 40


def test_infinities_are_kept_and_opposite_ones_have_no_mean(store, spool):
    values = [INF if i == 70 else -INF if i in (75, 700) else 1.0 for i in range(1024)]
    feed(store, spool, [metric(i, x=value) for i, value in enumerate(values)])

    curve = store.curve("x", 4)

    assert math.isnan(curve.mean[0])
    assert (curve.min[0], curve.max[0]) == (-INF, INF)
    assert list(curve.mean[1:]) == [1.0, -INF, 1.0]


def test_batches_of_any_size_make_the_same_rollups(tmp_path):
    values = rewards(20_000)
    events = [metric(i, x=value) if i % 3 == 2 else step(i, value) for i, value in enumerate(values)]
    tables = []
    for size in (1, 64, 333, 20_000):
        path = tmp_path / f"{size}.sqlite"
        store = RunStore(path, RUN)
        feed(store, Spool(), events if size > 1 else events[:1500], size)
        store.close(final=True)
        with sqlite3.connect(path) as db:
            tables.append([set(db.execute(f"SELECT * FROM {table}")) for table in ("rollups", "chunks")])

    assert tables[1] == tables[2] == tables[3]
    assert all(few and few < all_ for few, all_ in zip(tables[0], tables[1], strict=True))


def test_names_beyond_the_limit_are_stored_without_a_curve(store, spool, monkeypatch):
    monkeypatch.setattr(rollup, "MOST_CURVES", 3)
    store.commit(spool.batch(*(metric(i, **{f"m{i}": 1.0}) for i in range(5))))

    assert store.curve_names() == ["m0", "m1", "m2"]
    assert len(store.tail(10).events) == 5


def test_a_bucket_of_two_halves_is_the_bucket_of_the_whole():
    values = [1.0, NAN, 5.0, -2.0, NAN, NAN]
    steps = [3, 9, 1, 4, 2, 7]
    whole = Bucket.of(steps, values)

    for cut in range(1, 6):
        half = Bucket.of(steps[:cut], values[:cut])
        half.add(Bucket.of(steps[cut:], values[cut:]))
        assert half == whole
