"""The statistics in a listing: a mean and its number of episodes, a trace of the run, evaluations apart."""

import math
import random
import sqlite3
import statistics

import msgspec
import pytest
from ingest_batches import RUN, Spool, episode, lifecycle, metric, step

from mosaic.ingest import file, memory
from mosaic.ingest.returns import Spread, Trace
from mosaic.ingest.store import RunStore
from mosaic.model.interval import t_quantile
from mosaic.model.run import RunSummary

NAN, INF = math.nan, math.inf


def feed(store, spool, events, size=97):
    for i in range(0, len(events), size):
        store.commit(spool.batch(*events[i : i + size]))


def noisy(n, seed=5):
    chance = random.Random(seed)
    return [chance.gauss(i / 10, 20) for i in range(n)]


def axis_and_steps(store, name):
    curve = store.curve(name)
    return curve.axis, list(curve.step)


@pytest.mark.parametrize("played", [1, 99, 100, 101, 1000])
def test_the_return_of_a_run_is_a_mean_with_its_number_of_episodes(store, spool, played):
    returns = noisy(played)
    feed(store, spool, [episode(i, value) for i, value in enumerate(returns)])

    got = store.summary()

    assert got.mean_over == min(100, played)
    assert got.mean_return == pytest.approx(statistics.fmean(returns[-100:]))
    assert (got.last_return, got.recent_returns) == (returns[-1], returns[-60:])


@pytest.mark.parametrize("played", [1, 63, 64, 65, 1000, 12_345])
def test_the_trace_covers_the_whole_run_in_at_most_64_means(played):
    trace, returns = Trace(), noisy(played)

    for i in range(0, played, 7):
        trace.extend(returns[i : i + 7])

    width = trace.width
    cut = [returns[i : i + width] for i in range(0, played, width)]
    assert trace.means() == [pytest.approx(statistics.fmean(values)) for values in cut]
    assert min(played, 33) <= len(cut) <= 64


def test_a_nan_leaves_a_gap_in_the_trace_only_in_a_bucket_without_numbers():
    few, many = Trace(), Trace()
    few.extend([1.0, NAN, 3.0])
    many.extend([NAN, 2.0] * 64)

    assert math.isnan(few.means()[1])
    assert many.means() == [2.0] * 64


@pytest.mark.parametrize("value", [NAN, INF, -INF, 1.7e308])
def test_unusual_returns_do_no_harm(store, spool, value):
    feed(store, spool, [episode(i, value if i % 2 else -value, agent_id="eval" if i % 3 else "") for i in range(300)])

    got = store.summary()

    assert (got.episodes, got.mean_over, got.eval_episodes) == (300, 100, 200)
    assert len(got.return_trace) <= 64


# 97.5 % quantiles of Student's t, from a statistical table.
@pytest.mark.parametrize(
    ("freedom", "expected"),
    [(1, 12.706), (2, 4.303), (9, 2.262), (19, 2.093), (30, 2.042), (31, 2.0395), (40, 2.0211), (100, 1.9840)],
)
def test_intervals_use_students_t(freedom, expected):
    assert t_quantile(freedom) == pytest.approx(expected, abs=5e-4)


def test_the_interval_is_that_of_the_mean():
    spread = Spread()
    for value in (480.0, 500.0, 500.0, 460.0, 490.0):
        spread.add(value)

    error = statistics.stdev([480, 500, 500, 460, 490]) / math.sqrt(5)
    assert spread.mean == pytest.approx(486.0)
    assert spread.interval == pytest.approx(2.7764 * error)


def test_one_episode_has_no_interval(store, spool):
    store.commit(spool.batch(episode(0, 7.0, agent_id="eval", global_step=10)))

    got = store.summary()

    assert (got.eval_mean, got.eval_interval, got.eval_over, got.eval_episodes) == (7.0, None, 1, 1)
    assert (got.mean_return, got.mean_over, got.return_trace, got.last_return) == (None, 0, [], None)


def test_the_newest_evaluation_has_the_episodes_of_one_env_step(store, spool):
    first = [episode(i, 10.0, agent_id="eval", global_step=1000) for i in range(5)]
    second = [episode(i, 20.0 + i, agent_id="eval", global_step=2000) for i in range(5)]
    store.commit(spool.batch(*first, episode(0, 1.0, global_step=1500), *second))

    got = store.summary()

    assert (got.eval_mean, got.eval_over, got.eval_episodes) == (22.0, 5, 10)
    assert (got.mean_return, got.mean_over) == (1.0, 1)


def test_single_evaluation_episodes_are_averaged_over_the_newest_ones(store, spool):
    store.commit(spool.batch(*(episode(i, float(i), agent_id="eval", global_step=100 * i) for i in range(50))))

    got = store.summary()

    assert (got.eval_mean, got.eval_over) == (statistics.fmean(range(30, 50)), 20)


def test_every_episode_of_an_evaluation_run_is_an_evaluation_episode(path, spool):
    store = RunStore(path, RUN, is_evaluation=True)
    returns = noisy(150)
    feed(store, spool, [episode(i, value) for i, value in enumerate(returns)])

    got = store.summary()

    assert (got.eval_episodes, got.eval_over, got.mean_return, got.mean_over) == (150, 150, None, 0)
    assert got.eval_mean == pytest.approx(statistics.fmean(returns))
    error = statistics.stdev(returns) / math.sqrt(150)
    assert got.eval_interval == pytest.approx(1.976 * error, rel=1e-3)
    store.close(final=True)
    assert RunStore(path, RUN, read_only=True).summary() == got


def test_an_evaluation_of_several_operators_has_no_mean(path, spool):
    store = RunStore(path, RUN, is_evaluation=True)
    feed(store, spool, [episode(i, float(i % 2), agent_id=("ppo", "chance")[i % 2]) for i in range(20)])

    got = store.summary()

    assert (got.eval_episodes, got.eval_mean, got.eval_interval, got.eval_over) == (20, None, None, 0)
    store.close(final=True)
    assert RunStore(path, RUN, read_only=True).summary() == got


def test_the_steps_of_an_evaluation_are_those_of_all_its_lanes(path, spool):
    store = RunStore(path, RUN, is_evaluation=True)
    players = [(0, "ppo"), (1, "chance"), (2, "agent_0"), (2, "agent_1")]
    feed(store, spool, [step(i, env_index=lane, agent_id=agent) for i in range(10) for lane, agent in players])
    store.commit(spool.batch(lifecycle("heartbeat", b'{"progress": 30, "total": 120}')))

    got = store.summary()

    assert (got.env_steps, got.total_steps) == (30, 120)
    store.close(final=True)
    assert RunStore(path, RUN, read_only=True).summary() == got


def test_agents_that_take_turns_share_the_steps_of_their_lane(path, spool):
    store = RunStore(path, RUN, is_evaluation=True)
    turns = [step(i, agent_id=f"player_{i % 2}", episode_index=game) for game in range(3) for i in range(7)]
    feed(store, spool, turns)

    assert store.summary().env_steps == 21


def test_failed_episodes_do_not_count_in_an_evaluations_mean(path, spool):
    store = RunStore(path, RUN, is_evaluation=True)
    extras = [b"", b'{"failed":true,"reason":"it died"}', b'{"failed":false}', b'"failed" but no JSON']
    feed(store, spool, [episode(i, float(i), extra=extra) for i, extra in enumerate(extras)])

    got = store.summary()

    assert (got.eval_episodes, got.eval_over, got.eval_mean) == (4, 3, pytest.approx(5 / 3))


def test_reopening_gives_the_same_statistics(path, monkeypatch):
    monkeypatch.setattr(memory, "SNAPSHOT_EVERY", 50)
    chance, spool, store = random.Random(2), Spool(), RunStore(path, RUN)
    returns = noisy(2000)
    events = [
        step(i % 5)
        if i % 3
        else episode(i, value, agent_id=chance.choice(["", "eval"]), global_step=(i * 10, None)[i % 2])
        for i, value in enumerate(returns)
    ]
    while events:
        size = chance.randrange(1, 60)
        store.commit(spool.batch(*events[:size]))
        del events[:size]
        before = store.summary(), [store.curve(name) for name in store.curve_names()]
        if chance.random() < 0.3:
            store._shut()  # as a crash leaves it: no snapshot at the end
            store = RunStore(path, RUN)
            assert (store.summary(), [store.curve(name) for name in store.curve_names()]) == before
    store.close()


# ---- env steps and stored events


def test_env_steps_and_stored_step_events_are_counted_separately(store, spool):
    store.commit(spool.batch(*(step(i) for i in (0, 10, 20))))

    got = store.summary()

    assert (got.steps, got.env_steps, got.last_step) == (3, 21, 20)


@pytest.mark.parametrize(
    "line",
    [
        lifecycle("heartbeat", b'{"progress": 500}'),
        metric(500, loss=1.0),
        episode(3, 1.0, global_step=500),
        step(499),
    ],
)
def test_any_line_that_reports_500_steps_counts_as_500(store, spool, line):
    store.commit(spool.batch(line))

    assert store.summary().env_steps == 500


def test_a_library_that_restarts_its_step_numbers_in_every_episode_gets_all_steps_counted(store, spool):
    for _ in range(3):
        store.commit(spool.batch(*(step(i, agent_id="a", env_index=i % 2) for i in range(10))))

    assert store.summary().env_steps == 30


def test_agents_that_act_together_make_one_step(store, spool):
    store.commit(spool.batch(*(step(i // 2, agent_id=f"agent_{i % 2}") for i in range(20))))

    got = store.summary()

    assert (got.steps, got.env_steps) == (20, 10)


def test_steps_of_an_evaluation_do_not_count_as_training_steps(store, spool):
    store.commit(spool.batch(step(9), step(5000, agent_id="eval"), step(8)))

    got = store.summary()

    assert (got.steps, got.env_steps, got.last_step) == (3, 10, 9)


def test_an_evaluation_that_comes_first_does_not_hide_the_training(store, spool):
    store.commit(spool.batch(step(700, agent_id="eval")))
    before = store.summary().env_steps
    store.commit(spool.batch(step(0), step(0), step(0)))

    assert (before, store.summary().env_steps) == (0, 3)


# ---- curves


def test_episodes_with_env_steps_are_drawn_over_env_steps(store, spool):
    store.commit(spool.batch(*(episode(i, float(i), steps=10, global_step=10 * (i + 1)) for i in range(3))))

    assert axis_and_steps(store, "episode/return") == ("env steps", [10, 20, 30])
    assert axis_and_steps(store, "episode/length") == ("env steps", [10, 20, 30])


def test_episodes_without_env_steps_are_drawn_over_their_numbers(store, spool):
    store.commit(spool.batch(*(episode(i, float(i)) for i in range(3)), metric(7, loss=1.0)))

    assert axis_and_steps(store, "episode/return") == ("episodes", [0, 1, 2])
    assert axis_and_steps(store, "loss") == ("steps", [7])


def test_one_axis_never_has_both_kinds_of_number(store, spool):
    store.commit(spool.batch(episode(0, 1.0, global_step=1000), episode(1, 2.0), episode(2, 3.0, global_step=3000)))
    other, others = RunStore(store.path.with_name("other.sqlite"), RUN), Spool()
    other.commit(others.batch(episode(0, 1.0), episode(1, 2.0, global_step=2000)))
    other.commit(others.batch(episode(2, 3.0, global_step=3000)))

    assert axis_and_steps(store, "episode/return") == ("env steps", [1000, 1000, 3000])
    assert axis_and_steps(other, "episode/return") == ("episodes", [0, 1, 2])
    other.close()


def test_evaluations_have_curves_of_their_own(store, spool):
    trained = [episode(i, 1.0, global_step=10 * i) for i in range(4)]
    tested = [episode(i, 500.0, steps=77, agent_id="eval", global_step=25) for i in range(2)]
    store.commit(spool.batch(*trained, *tested))

    assert list(store.curve("episode/return").mean) == [1.0] * 4
    assert list(store.curve("eval/return").mean) == [500.0] * 2
    assert axis_and_steps(store, "eval/length") == ("env steps", [25, 25])


# ---- files of older MOSAICs


def age(path, snapshot=True):
    """Turn a finished file into one from before episodes had env steps."""
    db = sqlite3.connect(path)
    saved = db.execute("SELECT value FROM meta WHERE key = 'snapshot'").fetchone()
    seq, summary = msgspec.msgpack.decode(saved[0])[:2]
    for later in ("mean_return", "mean_over", "return_trace", "env_steps", "eval_episodes", "eval_mean", "eval_over"):
        del summary[later]
    db.execute("UPDATE meta SET value = ? WHERE key = 'snapshot'", (msgspec.msgpack.encode([seq, summary]),))
    for number, state in db.execute("SELECT id, state FROM curves").fetchall():
        shorter = msgspec.msgpack.encode(msgspec.msgpack.decode(state)[:4])
        db.execute("UPDATE curves SET state = ? WHERE id = ?", (shorter, number))
    db.execute("ALTER TABLE episodes DROP COLUMN global_step")
    db.execute("ALTER TABLE rollups DROP COLUMN ts_last")
    db.execute("ALTER TABLE chunks DROP COLUMN times")
    db.execute("PRAGMA user_version = 1")
    db.commit()
    db.close()


@pytest.fixture
def old_file(path, store, spool):
    played = [episode(i, float(i), agent_id="eval" if i % 4 == 3 else "", extra=b'{"k":1}') for i in range(300)]
    feed(store, spool, [step(i) for i in range(50)] + played)
    store.close(final=True)
    age(path)
    return path


def test_a_finished_file_of_an_older_mosaic_is_read_with_all_statistics_and_not_changed(old_file):
    before = old_file.read_bytes()

    store = RunStore(old_file, RUN, read_only=True)
    got, events = store.summary(), store.tail(400, {"episode"}).events

    trained = [float(i) for i in range(300) if i % 4 != 3]
    assert (got.mean_over, got.mean_return) == (100, pytest.approx(statistics.fmean(trained[-100:])))
    assert (got.eval_episodes, got.env_steps, len(got.return_trace) > 32) == (75, 50, True)
    assert [(e.episode.episode_index, e.episode.HasField("global_step")) for e in events] == [
        (i, False) for i in range(300)
    ]
    assert store.curve("episode/return").axis == "episodes"
    store.close()
    assert old_file.read_bytes() == before


def test_an_older_file_is_continued_with_the_current_schema(old_file):
    store = RunStore(old_file, RUN)
    spool = Spool()
    spool.offsets[0] = store.cursor().stdout_offset

    store.commit(spool.batch(episode(300, 1000.0, global_step=9000)))

    assert store.tail(1).events[0].episode.global_step == 9000
    assert store.summary().mean_over == 100
    assert store.summary().env_steps == 9000
    # Its earlier points are episode numbers and stay so.
    assert store.curve("episode/return").axis == "episodes"
    assert store.curve("episode/return").step[-1] == 300
    store.close()
    assert sqlite3.connect(old_file).execute("PRAGMA user_version").fetchone() == (len(file.STEPS),)


def test_a_summary_without_the_new_fields_can_still_be_read():
    assert msgspec.msgpack.decode(msgspec.msgpack.encode({"events": 3}), type=RunSummary).mean_over == 0
