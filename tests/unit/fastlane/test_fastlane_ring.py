import os
import time

import numpy as np
import pytest
from lanes import segments, wait_until
from mosaic_sdk.fastlane import FastLaneConfig, FastLaneMetrics, FastLaneReader, FastLaneWriter
from mosaic_sdk.fastlane.ring import READ_UNTIL, SLOTS, Ring, RingFile

SMALL = FastLaneConfig(width=6, height=4)


def picture(config=SMALL, first=0):
    return (np.arange(config.frame_bytes) + first).astype(np.uint8).reshape(config.shape)


@pytest.fixture
def pair(run_id):
    """A writer that is watched, and its reader."""
    writer = FastLaneWriter.create(run_id, SMALL)
    reader = FastLaneReader.attach(run_id, lease_s=1000)
    yield writer, reader
    writer.close()


@pytest.mark.parametrize(("pixel_format", "channels"), [("RGB", 3), ("RGBA", 4), ("GRAY", 1)])
def test_a_frame_arrives_with_its_metrics(run_id, pixel_format, channels):
    config = FastLaneConfig(width=7, height=5, channels=channels, pixel_format=pixel_format)
    writer = FastLaneWriter.create(run_id, config)
    reader = FastLaneReader.attach(run_id)

    writer.publish(picture(config), metrics=FastLaneMetrics(last_reward=1.5, rolling_return=-2.0, step_rate_hz=60.0))

    frame = reader.latest_frame()
    assert np.array_equal(frame.pixels, picture(config))
    assert frame.metrics == (1.5, -2.0, 60.0)
    assert (frame.width, frame.height, frame.channels, frame.config) == (7, 5, channels, config)


@pytest.mark.parametrize(
    "given",
    [
        picture().tobytes(),
        bytearray(picture().tobytes()),
        picture().astype(np.float64),
        np.asfortranarray(picture()),
        picture().ravel(),
        picture().tolist(),
    ],
    ids=["bytes", "bytearray", "floats", "another order", "flat", "lists"],
)
def test_a_frame_may_be_bytes_or_any_array_of_its_size(pair, given):
    writer, reader = pair

    writer.publish(given)

    assert np.array_equal(reader.latest_frame().pixels, picture())


@pytest.mark.parametrize("wrong", [b"", bytes(71), np.zeros((1, 1, 3), np.uint8), np.zeros((4, 6), np.uint8)])
def test_a_frame_of_another_size_is_refused_and_the_last_one_stays(pair, wrong):
    writer, reader = pair
    writer.publish(picture(first=9))

    with pytest.raises(ValueError, match="does not fit"):
        writer.publish(wrong)

    assert np.array_equal(reader.latest_frame().pixels, picture(first=9))
    writer.publish(picture(first=1))
    assert np.array_equal(reader.latest_frame().pixels, picture(first=1))


@pytest.mark.parametrize(
    "config", [(0, 4, 3, "RGB"), (4, 4, 4, "RGB"), (4, 4, 3, "BGR")], ids=["empty", "channels", "format"]
)
def test_an_impossible_geometry_is_refused(config):
    with pytest.raises(ValueError, match="cannot be shown"):
        FastLaneConfig(*config)


def test_without_a_viewer_nothing_is_copied_and_frames_use_no_memory(run_id):
    writer = FastLaneWriter.create(run_id, SMALL)

    assert not writer.publish(picture())

    assert segments(run_id) == [f"mosaic.fastlane.{run_id}"]


def test_a_reader_that_asks_before_the_first_frame_gets_it(run_id):
    writer = FastLaneWriter.create(run_id, SMALL)
    reader = FastLaneReader.attach(run_id)
    assert (reader.latest_frame(), writer.is_watched) == (None, True)

    assert writer.publish(picture())

    assert reader.latest_frame().number == 1


def test_the_lease_expires_and_can_begin_again(run_id):
    writer = FastLaneWriter.create(run_id, SMALL)
    reader = FastLaneReader.attach(run_id, lease_s=0.05)
    assert writer.is_watched

    wait_until(lambda: not writer.is_watched)

    assert not writer.publish(picture())
    reader.renew()
    assert writer.publish(picture())


def test_a_short_lease_does_not_shorten_a_long_one(run_id):
    writer = FastLaneWriter.create(run_id, SMALL)
    FastLaneReader.attach(run_id, lease_s=1000)

    FastLaneReader.attach(run_id, lease_s=0)

    assert writer.is_watched


def test_many_readers_see_the_same_frame(pair, run_id):
    writer, _ = pair
    readers = [FastLaneReader.attach(run_id) for _ in range(5)]

    writer.publish(picture())

    assert all(np.array_equal(reader.latest_frame().pixels, picture()) for reader in readers)


def test_the_newest_frame_is_seen_after_any_number_of_frames(pair):
    writer, reader = pair
    for number in range(1, 3 * SLOTS + 2):
        writer.publish(picture(first=number), metrics=(number, 0, 0))

        frame = reader.latest_frame()
        assert (frame.number, frame.metrics.last_reward) == (number, number)
        assert np.array_equal(frame.pixels, picture(first=number))


def test_a_frame_is_the_readers_own_copy_and_does_not_change(pair):
    writer, reader = pair
    writer.publish(picture())
    frame = reader.latest_frame()

    for number in range(1, 9):
        writer.publish(picture(first=number))

    assert np.array_equal(frame.pixels, picture())


def test_a_new_geometry_is_a_new_generation_and_the_readers_follow(pair, run_id):
    writer, reader = pair
    writer.publish(picture())
    large = FastLaneConfig(width=60, height=40)

    writer.reshape(large)
    assert np.array_equal(reader.latest_frame().pixels, picture())
    writer.publish(picture(large))

    assert np.array_equal(reader.latest_frame().pixels, picture(large))
    assert segments(run_id) == [f"mosaic.fastlane.{run_id}", f"mosaic.fastlane.{run_id}.2"]
    assert FastLaneReader.attach(run_id).latest_frame().config == large


@pytest.fixture
def ring(run_id):
    """A ring with its first frame in it."""
    ring = Ring.create(f"mosaic.fastlane.{run_id}", 1, SMALL)
    put(ring, 1)
    return ring


def put(ring, value):
    ring.put(np.full(SMALL.shape, value, np.uint8), (value, 0, 0), time.monotonic_ns())


def words(ring, number):
    """The head of a frame's slot."""
    return ring._slots[number % SLOTS][0]


@pytest.fixture
def copying(ring, run_id, monkeypatch):
    """A reader of the ring whose copies are interrupted."""
    reader, real = RingFile.open(f"mosaic.fastlane.{run_id}", 1), os.preadv
    happens = []

    def preadv(fd, buffers, place):
        (pixels,) = buffers
        real(fd, [pixels[:2]], place)
        if happens:
            happens.pop(0)()
        return pixels[:2].nbytes + real(fd, [pixels[2:]], place + pixels[:2].nbytes)

    monkeypatch.setattr(os, "preadv", preadv)
    return reader, happens


def test_a_reader_overtaken_in_the_middle_of_its_copy_takes_a_later_frame(ring, copying):
    reader, happens = copying

    def overtake(values):
        words(ring, ring.number)[READ_UNTIL] = 0  # as another reader of the same frame does when it is done
        for value in values:
            put(ring, value)

    happens += [lambda: overtake(range(2, 6)), lambda: overtake(range(6, 11))]

    taken = reader.take()

    assert happens == []
    assert set(taken.pixels.ravel()) == {10}
    assert (taken.metrics.last_reward, taken.number) == (10, 10)


def test_a_writer_skips_the_slot_that_is_being_read(ring, copying):
    reader, happens = copying
    happens.append(lambda: [put(ring, value) for value in range(2, 20)])

    taken = reader.take()

    assert set(taken.pixels.ravel()) == {taken.metrics.last_reward} == {1}
    assert [words(ring, number)[READ_UNTIL] for number in range(SLOTS)] == [0] * SLOTS
    later = reader.take()
    assert set(later.pixels.ravel()) == {later.metrics.last_reward} == {19}


@pytest.mark.parametrize("marked", [1, 2, SLOTS])
def test_slots_that_stay_marked_do_not_cost_a_reader_any_frame(ring, run_id, marked):
    for number in range(marked):
        words(ring, number)[READ_UNTIL] = 2**64 - 1
    reader = RingFile.open(f"mosaic.fastlane.{run_id}", 1)

    for value in range(2, 3 * SLOTS):
        put(ring, value)

        taken = reader.take()
        assert set(taken.pixels.ravel()) == {taken.metrics.last_reward} == {value}


def test_the_mark_of_a_reader_that_died_during_its_copy_expires(ring):
    words(ring, ring.number)[READ_UNTIL] = time.monotonic_ns()

    for value in range(2, 2 * SLOTS):
        put(ring, value)

    assert ring.number == 2 * SLOTS - 1


def test_a_writer_that_died_in_the_middle_leaves_the_frame_before(pair, run_id):
    writer, reader = pair
    for number in range(6):
        writer.publish(picture(first=number))
    ring = writer.ring
    words, _, pixels = ring._slots[(ring.number + 1) % SLOTS]
    words[0] = 2 * (ring.number + 1) - 1
    pixels[:2] = 255

    assert np.array_equal(reader.latest_frame().pixels, picture(first=5))
    assert np.array_equal(FastLaneReader.attach(run_id).latest_frame().pixels, picture(first=5))


WRITER = """
import sys, numpy as np
from mosaic_sdk.fastlane import FastLaneConfig, FastLaneWriter
run_id, size = sys.argv[1], int(sys.argv[2])
writer = FastLaneWriter.create(run_id, FastLaneConfig(size, size))
pictures = [np.full((size, size, 3), value, np.uint8) for value in range(251)]
print("ready", flush=True)
number = 0
while True:
    number += writer.publish(pictures[number % 251], (number, -number, 2.0 * number))
"""

READER = """
import sys, time
from mosaic_sdk.fastlane import FastLaneReader
reader = FastLaneReader.attach(sys.argv[1])
while reader.latest_frame() is None: time.sleep(0.001)
bad, last, distinct = 0, 0, 0
for _ in range(int(sys.argv[2])):
    frame = reader.latest_frame()
    number = frame.metrics.last_reward
    bad += not (frame.pixels == number % 251).all() or frame.metrics != (number, -number, 2 * number)
    bad += frame.number < last
    distinct += frame.number > last
    last = frame.number
print(bad, distinct)
"""


@pytest.mark.parametrize(("size", "reads"), [(84, 10_000), (400, 1_000)])
def test_spinning_readers_never_see_a_torn_frame(run_id, scripts, size, reads):
    writer = scripts.start(WRITER, run_id, str(size))
    assert writer.stdout.readline() == "ready\n"

    # More than there are cores, so that readers are interrupted during a copy and overtaken.
    readers = [scripts.start(READER, run_id, str(reads)) for _ in range(3)]
    ended = [reader.communicate(timeout=100) for reader in readers]

    for out, err in ended:
        bad, distinct = map(int, out.split() or [err])
        assert (bad, distinct > 10) == (0, True)


def test_a_frame_that_was_given_is_not_copied_again(pair, monkeypatch):
    writer, reader = pair
    writer.publish(picture())
    given = reader.fresh_frame()
    monkeypatch.setattr(RingFile, "take", lambda ring: pytest.fail("the pixels were copied again"))

    assert given is not None
    assert reader.fresh_frame() is None


def test_the_first_frame_of_another_size_is_fresh_though_it_has_the_same_number(pair):
    writer, reader = pair
    writer.publish(picture())
    assert reader.fresh_frame().number == 1

    large = FastLaneConfig(width=8, height=8)
    writer.reshape(large)
    writer.publish(picture(large))

    assert reader.fresh_frame().width == 8
    assert reader.fresh_frame() is None
