"""The replay buffer and its selectors."""

import numpy as np
import pytest
from dreamer_worker import factories
from dreamer_worker.buffer import Buffer
from dreamer_worker.checkpoint import Epochs
from dreamer_worker.config import DreamerConfig
from dreamer_worker.factories import make_streams
from dreamer_worker.limiter import SamplesPerInsert
from dreamer_worker.replay import Replay, ReplayService, Vault
from dreamer_worker.rpc import Client, Server
from dreamer_worker.selector import Mixture, Prioritized, Recent, Uniform, make_selector

SPACES = {
    "number": ("int64", ()),
    "env": ("int64", ()),
    "latent": ("float16", (4,)),
    "is_first": ("bool", ()),
    "is_last": ("bool", ()),
}
ROW_BYTES = 8 + 8 + 8 + 1 + 1


def make_buffer(length=5, rows=200, block_rows=10, **options):
    return Buffer(SPACES, length, rows * ROW_BYTES, block_rows=block_rows, **options)


def rows_of(envs, numbers, first=False):
    count = len(envs)
    return {
        "number": np.asarray(numbers),
        "env": np.asarray(envs),
        "latent": np.zeros((count, 4), np.float32),
        "is_first": np.full(count, first),
        "is_last": np.zeros(count, bool),
    }


def play(buffer, steps, envs=(0, 1, 2), begin=0):
    for number in range(begin, begin + steps):
        buffer.insert(rows_of(envs, [number] * len(envs)), [f"env{env}" for env in envs], [number] * len(envs))


def test_a_sequence_is_an_unbroken_run_of_one_env():
    buffer = make_buffer()
    play(buffer, 40)

    batch = buffer.sample(500)

    assert (np.diff(batch["number"], axis=1) == 1).all()
    assert (batch["env"] == batch["env"][:, :1]).all()
    assert set(batch["number"][:, 0]) == set(range(36))  # across the ends of blocks too
    assert batch["is_first"][:, 0].all()


def test_only_the_first_steps_of_a_key_may_be_requested():
    buffer = make_buffer()
    play(buffer, 40)

    batch = buffer.sample(50, first={"latent": 2, "env": 1})

    assert batch["latent"].shape == (50, 2, 4)
    assert batch["env"].shape == (50, 1)
    assert batch["number"].shape == batch["stepid"].shape == (50, 5)


@pytest.mark.parametrize("length", [2, 9, 10, 11, 12, 21, 35])
def test_sequences_may_be_shorter_and_longer_than_blocks(length):
    buffer = make_buffer(length=length)
    play(buffer, 60)

    batch = buffer.sample(300)

    assert (np.diff(batch["number"], axis=1) == 1).all()
    assert len(buffer) == 3 * (60 - length + 1)


def test_the_oldest_steps_are_overwritten_and_memory_stays_bounded():
    buffer = make_buffer(rows=100)
    play(buffer, 1000)

    batch = buffer.sample(500)

    assert buffer.steps <= 100
    assert sum(store.nbytes for store in buffer._store.values()) <= 100 * ROW_BYTES
    assert batch["number"].min() >= 1000 - 100 // 3 - 10
    assert (np.diff(batch["number"], axis=1) == 1).all()
    assert len(buffer) == int(buffer._starts.sum())


def test_a_step_that_is_inserted_twice_is_stored_once():
    buffer = make_buffer()
    play(buffer, 20)

    added = buffer.insert(rows_of([0, 1], [19, 20]), ["env0", "env1"], [19, 20])

    assert (added, buffer.duplicates, buffer.steps) == (1, 1, 61)


def test_a_gap_in_the_numbers_is_never_inside_a_sequence():
    buffer = make_buffer()
    play(buffer, 23)
    play(buffer, 23, begin=40)

    batch = buffer.sample(500)

    assert buffer.gaps == 3
    assert (np.diff(batch["number"], axis=1) == 1).all()


def test_a_stream_so_slow_that_its_block_is_gone_starts_over():
    buffer = make_buffer(rows=100)
    play(buffer, 3, envs=(7,))
    play(buffer, 200, envs=(0, 1))
    play(buffer, 20, envs=(7,), begin=3)

    batch = buffer.sample(500)

    assert (batch["env"] == batch["env"][:, :1]).all()
    assert (np.diff(batch["number"], axis=1) == 1).all()


def test_an_abandoned_episode_ends_where_the_next_begins():
    buffer = make_buffer()
    for number in range(30):
        buffer.insert(rows_of([0], [number], first=number % 7 == 0), ["env0"], [number])

    batch = buffer.sample(200)

    begins = batch["number"][:, 1:] % 7 == 0
    assert begins.any()
    assert (batch["is_last"][:, :-1] == begins).all()


def test_updates_reach_their_steps_and_skip_those_that_are_gone():
    buffer = make_buffer(rows=100)
    play(buffer, 30)
    batch = buffer.sample(20)
    play(buffer, 15, begin=30)

    values = np.repeat(batch["number"][..., None], 4, -1).astype(np.float32) + 1
    buffer.update(batch["stepid"], {"latent": values})
    play(buffer, 100, begin=45)
    buffer.update(batch["stepid"], {"latent": values * 0 - 7})

    assert (buffer.sample(500)["latent"] == 0).all()


def test_updates_are_seen_by_later_samples():
    buffer = make_buffer()
    play(buffer, 20)
    for _ in range(30):
        batch = buffer.sample(16)
        buffer.update(batch["stepid"], {"latent": np.repeat(batch["number"][..., None], 4, -1) + 1.0})

    batch = buffer.sample(100)

    assert (batch["latent"] == batch["number"][..., None] + 1).mean() > 0.99


def test_new_sequences_are_replayed_first_when_online():
    buffer = make_buffer(rows=2000)
    play(buffer, 400, envs=(0,))

    fresh = buffer.sample(80, online=True)["number"][:, 0]

    assert fresh.tolist() == list(range(0, 400, 5))


def test_nothing_is_sampled_before_a_sequence_is_complete():
    buffer = make_buffer()
    play(buffer, 4)

    assert buffer.sample(3) is None


def test_a_buffer_without_room_for_sequences_is_refused():
    with pytest.raises(ValueError, match="no room for two sequences"):
        make_buffer(rows=9)


@pytest.mark.parametrize("capacity", [200, 100])
def test_a_restored_buffer_holds_what_the_saved_one_held(capacity):
    buffer = make_buffer()
    play(buffer, 33)
    play(buffer, 40, begin=50)

    snapshot = buffer.snapshot()
    blocks = {entry["ordinal"]: buffer.block(entry["ordinal"], entry["rows"]) for entry in snapshot["blocks"]}
    restored = make_buffer(rows=capacity)
    restored.restore(snapshot, blocks)
    play(restored, 20, begin=90)

    batch = restored.sample(800)
    assert (np.diff(batch["number"], axis=1) == 1).all()
    assert batch["number"].max() == 109
    assert restored.gaps == 0  # the streams continue where they were
    if capacity == 200:
        play(buffer, 20, begin=90)
        assert len(restored) == len(buffer)


def test_uniform_gives_every_start_the_same_chance():
    selector = Uniform(100, 10)
    selector.add(np.asarray([0, 1, 2, 30, 31, 90]))
    selector.drop_block(3)

    drawn = np.bincount(selector.draw(40_000, np.random.default_rng(0)), minlength=100)

    assert set(np.flatnonzero(drawn)) == {0, 1, 2, 90}
    assert np.allclose(drawn[[0, 1, 2, 90]] / 40_000, 0.25, atol=0.02)


def test_priority_draws_in_proportion_and_new_ones_with_the_highest():
    selector = Prioritized(1000, 10, exponent=1.0)
    selector.add(np.asarray([3, 500, 999]))
    selector.prioritize(np.asarray([3, 500, 999, 7]), np.asarray([1.0, 2.0, 5.0, 100.0]))
    selector.add(np.asarray([8]))

    drawn = np.bincount(selector.draw(52_000, np.random.default_rng(0)), minlength=1000)

    assert set(np.flatnonzero(drawn)) == {3, 8, 500, 999}  # 7 was not a start
    assert np.allclose(drawn[[3, 500, 999, 8]] / 52_000, np.asarray([1, 2, 5, 5]) / 13, atol=0.02)


def test_priority_drops_a_block_that_was_overwritten():
    selector = Prioritized(100, 10)
    selector.add(np.asarray([5, 55]))
    selector.drop_block(5)

    assert set(selector.draw(100, np.random.default_rng(0))) == {5}


def test_recency_draws_in_inverse_proportion_to_age():
    selector = Recent(100, 10)
    for row in range(15):
        selector.add(np.asarray([row]))

    drawn = np.bincount(selector.draw(40_000, np.random.default_rng(0)), minlength=15)[::-1] / 40_000

    expected = np.log2(1 + 1 / np.arange(1, 16)) / 4  # log-uniform: from age to age + 1, of 16
    assert np.allclose(drawn, expected, atol=0.01)


def test_recency_drops_removed_rows_and_accepts_a_row_again():
    selector = Recent(30, 10)
    selector.add(np.arange(30))
    for block in (0, 1):
        selector.drop_block(block)
    selector.add(np.asarray([3]))

    drawn = np.bincount(selector.draw(10_000, np.random.default_rng(0)), minlength=30)

    assert set(np.flatnonzero(drawn)) == {3, *range(20, 30)}
    assert drawn.argmax() == 3


def test_recent_sequences_are_the_likely_ones_after_a_restore_too():
    buffer = make_buffer(shares={"recency": 1.0})
    play(buffer, 120)  # more than it holds
    snapshot = buffer.snapshot()
    blocks = {entry["ordinal"]: buffer.block(entry["ordinal"], entry["rows"]) for entry in snapshot["blocks"]}
    restored = make_buffer(shares={"recency": 1.0})
    restored.restore(snapshot, blocks)

    for one in (buffer, restored):
        batch = one.sample(2000)
        assert (np.diff(batch["number"], axis=1) == 1).all()
        assert batch["number"].min() >= 50
        assert (batch["number"][:, 0] >= 90).mean() > 0.75  # of uniform draws it is less than half


def test_a_mixture_draws_from_each_by_its_share():
    selector = make_selector({"uniform": 0.5, "priority": 0.5}, 100, 10)
    selector.add(np.asarray([0, 1]))
    selector.prioritize(np.asarray([0, 1]), np.asarray([1e9, 1e-9]))

    drawn = np.bincount(selector.draw(10_000, np.random.default_rng(0)), minlength=2) / 10_000

    assert isinstance(selector, Mixture)
    assert np.allclose(drawn[:2], [0.75, 0.25], atol=0.03)


def test_an_unknown_selector_is_named():
    with pytest.raises(ValueError, match="no selector 'recent'"):
        make_selector({"recent": 1.0}, 100, 10)


def test_prioritized_buffers_replay_what_the_learner_found_surprising():
    buffer = make_buffer(shares={"priority": 1.0})
    play(buffer, 30, envs=(0,))
    for _ in range(40):
        batch = buffer.sample(16)
        surprise = np.where(batch["number"] == 13, 100.0, 0.001)
        buffer.update(batch["stepid"], {}, batch["stepid"][:, 0], surprise)

    batch = buffer.sample(200)

    assert ((batch["number"] == 13).any(axis=1)).mean() > 0.9


@pytest.mark.parametrize("change", [{"latent": np.zeros((1, 5))}, {"env": None}, {"number": np.zeros(2)}])
def test_steps_of_another_kind_are_refused_and_leave_no_trace(change):
    buffer = make_buffer()
    play(buffer, 10, envs=(0,))
    rows = {key: value for key, value in {**rows_of([0], [10]), **change}.items() if value is not None}

    with pytest.raises(ValueError, match="must have shape"):
        buffer.insert(rows, ["env0"], [10])
    play(buffer, 10, envs=(0,), begin=10)

    assert buffer.steps == 20
    assert (np.diff(buffer.sample(200)["number"], axis=1) == 1).all()


def test_sequences_sampled_before_a_restore_update_nothing():
    buffer = make_buffer()
    play(buffer, 20)
    snapshot = buffer.snapshot()
    blocks = {entry["ordinal"]: buffer.block(entry["ordinal"], entry["rows"]) for entry in snapshot["blocks"]}
    play(buffer, 40, begin=20)
    old = [buffer.sample(50) for _ in range(10)]

    restored = make_buffer()
    restored.restore(snapshot, blocks)
    play(restored, 40, envs=(2, 1, 0), begin=20)  # in another order: their blocks have other numbers now
    for batch in old:
        restored.update(batch["stepid"], {"latent": np.ones((50, 5, 4))}, batch["stepid"][:, 0], np.ones((50, 5)))

    assert (restored.sample(500)["latent"] == 0).all()


def test_new_sequences_that_are_not_replayed_are_dropped_from_the_queue():
    buffer = make_buffer(rows=100)

    play(buffer, 2000)

    assert len(buffer.snapshot()["online"]) <= 100 / 5 + 100 / 10
    assert buffer.sample(3, online=True)["number"].min() > 1900


def test_a_replay_too_small_for_its_envs_is_refused():
    config = DreamerConfig(run_id="T", envs=20, eval_envs=1, batch_length=8, replay_gb=20 * 256 * ROW_BYTES / 1e9)

    with pytest.raises(ValueError, match=r"no room for 20 envs\. Set replay_gb to 0\.00028"):
        factories.make_buffer(config, SPACES)


def test_each_stream_draws_from_its_own_buffer():
    limiter = SamplesPerInsert(0.5, tolerance=4, min_inserts=10)
    replay = Replay(lambda spaces: Buffer(spaces, 5, 10_000, block_rows=10), limiter)
    for number in range(12):
        replay.insert(rows_of([0], [number]), ["env0"], np.asarray([number]))
        replay.insert_eval(rows_of([7], [number]), ["env7"], np.asarray([number]))

    streams = make_streams(replay)
    drawn = {name: streams[name](3, 5) for name in ("report", "eval")}
    drawn["train"] = streams["train"](3, {"latent": 1})

    assert {name: sorted(set(batch["env"].flat)) for name, batch in drawn.items()} == {
        "train": [0],
        "report": [0],
        "eval": [7],
    }
    assert drawn["train"]["latent"].shape[1] == 1  # only the requested steps
    assert limiter.save()["samples"] == 3  # reports do not count


def test_a_caller_that_waits_for_the_limiter_does_not_block_others(secret, tmp_path):
    limiter = SamplesPerInsert(0.5, tolerance=4, min_inserts=10)
    replay = Replay(lambda spaces: Buffer(spaces, 5, 10_000, block_rows=10), limiter)
    server = Server("0", secret)
    ReplayService(replay, make_streams(replay), server, Vault(Epochs(tmp_path)))
    client = Client(server.start().address, secret)

    def insert(number, method="insert", env=0):
        return client.call(method, rows_of([env], [number]), [f"env{env}"], np.asarray([number]))

    for number in range(14):
        insert(number).result(30)
    waiting = insert(14)  # until something is learned

    for number in range(8):
        insert(number, "insert_eval").result(30)
    for method in ("sample_report", "sample_eval"):
        batch = client.ask(method, 3, 5, timeout_s=30)
        assert batch["number"].shape == (3, 5)
    ids = batch["stepid"]
    client.ask("update", ids, {"latent": np.zeros((3, 5, 4), np.float16)}, ids[:, 0], np.ones((3, 5)), timeout_s=30)
    client.ask("prepare", timeout_s=30)
    waiting.result(30)
    client.ask("snapshot", 1, timeout_s=30)
    client.ask("write", 1, timeout_s=30)
    for part in (client, server):
        part.close()


@pytest.mark.parametrize("strange", [np.inf, np.nan])
def test_a_priority_that_is_nan_counts_as_the_highest_and_affects_no_other(strange):
    selector = Prioritized(100, 10, exponent=1.0)
    selector.add(np.asarray([3, 50]))
    selector.prioritize(np.asarray([3, 50]), np.asarray([2.0, strange]))
    selector.add(np.asarray([8]))

    drawn = np.bincount(selector.draw(30_000, np.random.default_rng(0)), minlength=100) / 30_000

    assert np.allclose(drawn[[3, 50, 8]], [0.4, 0.2, 0.4], atol=0.02)  # 1 was the highest before 2 was set
