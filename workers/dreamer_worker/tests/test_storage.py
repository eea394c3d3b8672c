"""A replay larger than its memory: older steps on disk."""

import os
from pathlib import Path

import numpy as np
import pytest
from dreamer_worker import factories
from dreamer_worker.buffer import Buffer
from dreamer_worker.config import DreamerConfig

WIDTH = 2048
SPACES = {"number": ("int64", ()), "wide": ("uint8", (WIDTH,)), "latent": ("float16", (4,))}
ROW_BYTES = 8 + WIDTH + 8


def buffer_with(memory_rows, disk_rows=0, folder=None, block_rows=64):
    sizes = memory_rows * ROW_BYTES, disk_rows * ROW_BYTES
    return Buffer(SPACES, 5, sizes[0], block_rows=block_rows, disk_bytes=sizes[1], folder=folder, online=False)


def play(buffer, steps):
    for number in range(steps):
        rows = {"number": np.full(2, number), "wide": np.full((2, WIDTH), number % 251, np.uint8)}
        buffer.insert({**rows, "latent": np.zeros((2, 4), np.float16)}, ["a", "b"], [number] * 2)


def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_an_empty_buffer_takes_no_memory():
    before = resident()

    buffer = buffer_with(1 << 18)  # half a gigabyte

    assert buffer.steps == 0
    assert resident() - before < 20e6


def test_what_is_on_disk_is_drawn_and_updated_as_if_it_were_in_memory(tmp_path):
    whole, split = buffer_with(4096), buffer_with(512, 3584, tmp_path)
    for buffer in (whole, split):
        play(buffer, 3000)  # the oldest are overwritten

    assert len(split) == len(whole)
    for _ in range(30):
        one, other = whole.sample(64), split.sample(64)
        for key in SPACES:
            np.testing.assert_array_equal(one[key], other[key])
        assert (one["wide"][..., 0] == one["number"] % 251).all()
        for buffer, batch in ((whole, one), (split, other)):
            buffer.update(batch["stepid"], {"latent": batch["latent"] + 1})
    ages = np.concatenate([split.sample(500)["number"][:, 0] for _ in range(20)])
    shares = np.histogram(ages, 4, (3000 - 2048, 3000))[0] / len(ages)
    assert shares == pytest.approx([0.25] * 4, abs=0.03)
    assert split.sample(500)["latent"].max() > 1  # the updates of old steps were kept


def test_memory_stays_near_its_limit_while_more_is_kept(tmp_path):
    rows = 40_000  # 83 MB
    buffer = buffer_with(4_000, rows, tmp_path, block_rows=256)
    before = resident()

    play(buffer, rows // 2)
    for _ in range(200):
        buffer.sample(64)

    assert buffer.steps == rows
    assert resident() - before < 0.7 * rows * ROW_BYTES  # the system maps a few pages around each that is read


def test_nothing_is_left_on_disk(tmp_path):
    buffer = buffer_with(512, 3584, tmp_path / "replay")
    play(buffer, 100)

    assert list((tmp_path / "replay").iterdir()) == []


def test_a_disk_that_is_too_small_is_refused_before_it_is_full(tmp_path):
    config = DreamerConfig(run_id="T", logdir=str(tmp_path), replay_disk_gb=1e9)

    with pytest.raises(ValueError, match=r"replay_disk_gb is 1e\+09, but .* has .* GB left"):
        factories.make_buffer(config, SPACES)
