"""The limiter: only the side that is ahead waits."""

import threading

import pytest
from dreamer_worker.limiter import Closed, SamplesPerInsert

NOW = 0.0  # a time limit that is over at once: "would it have to wait?"


def fill(limiter, count):
    for _ in range(count):
        assert limiter.insert(timeout_s=NOW)


def test_nothing_is_sampled_before_the_minimum_and_then_at_once():
    limiter = SamplesPerInsert(0.5, tolerance=4, min_inserts=10)

    fill(limiter, 9)
    assert not limiter.sample(timeout_s=NOW)
    fill(limiter, 1)

    assert limiter.sample(timeout_s=NOW)


@pytest.mark.parametrize("ratio", [0.25, 1.0, 8.0])
def test_in_the_long_run_the_ratio_is_kept(ratio):
    limiter = SamplesPerInsert(ratio, tolerance=16, min_inserts=50)

    for _ in range(5000):
        limiter.insert(timeout_s=NOW)
        limiter.sample(timeout_s=NOW)

    expected = ratio * (limiter.inserts - 50)
    assert abs(limiter.samples - expected) <= 16 * max(1, ratio) + 1


def test_inserts_stop_when_the_learner_does():
    limiter = SamplesPerInsert(0.5, tolerance=20, min_inserts=10)

    inserted = 0
    while limiter.insert(timeout_s=NOW):
        inserted += 1

    assert inserted == 10 + 20


def test_a_wait_ends_when_the_other_side_moves():
    limiter = SamplesPerInsert(1.0, tolerance=2, min_inserts=1)
    fill(limiter, 3)
    passed = threading.Event()
    thread = threading.Thread(target=lambda: (limiter.insert(), passed.set()), daemon=True)
    thread.start()
    assert not passed.wait(0.05)

    limiter.sample()

    assert passed.wait(30)


def test_waiting_callers_are_released_when_the_run_ends():
    limiter = SamplesPerInsert(1.0, tolerance=2, min_inserts=100)
    errors = []

    def sample():
        try:
            limiter.sample()
        except Closed as error:
            errors.append(error)

    thread = threading.Thread(target=sample, daemon=True)
    thread.start()
    limiter.close()
    thread.join(30)

    assert len(errors) == 1


def test_without_a_ratio_nothing_waits():
    limiter = SamplesPerInsert(0, tolerance=2, min_inserts=1)

    fill(limiter, 100)

    assert all(limiter.sample(timeout_s=NOW) for _ in range(100))


def test_while_there_is_nothing_to_sample_inserts_pass():
    things = []
    limiter = SamplesPerInsert(1.0, tolerance=2, min_inserts=1, is_ready=lambda: bool(things))

    fill(limiter, 50)
    assert not limiter.sample(timeout_s=NOW)
    things.append(1)

    assert limiter.sample(timeout_s=NOW)


def test_a_restored_limiter_continues_where_the_saved_one_was():
    limiter = SamplesPerInsert(1.0, tolerance=5, min_inserts=10)
    fill(limiter, 12)
    restored = SamplesPerInsert(1.0, tolerance=5, min_inserts=10)

    restored.load(limiter.save())

    assert restored.save() == limiter.save()
    left = 0
    while restored.insert(timeout_s=NOW):
        left += 1
    assert left == 3
