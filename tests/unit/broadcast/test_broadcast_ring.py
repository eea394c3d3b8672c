from mosaic.broadcast import ring as module
from mosaic.broadcast.ring import Ring
from mosaic.wire import mosaic_pb2 as pb


def batch(first, last, extra=b""):
    return pb.EventBatch(events=[pb.Event(seq=seq, step=pb.Step(extra=extra)) for seq in range(first, last + 1)])


def held(ring, after=0, kinds=None):
    return [event.seq for entry in ring.entries_after(after) for event in entry.after(after, kinds).events]


def test_a_ring_holds_the_last_4096_events_and_whole_batches():
    ring = Ring()
    for first in range(1, 10_001, 100):
        ring.append(batch(first, first + 99))

    assert held(ring) == list(range(10_001 - 4100, 10_001))
    assert (ring.first, ring.last) == (5901, 10_000)


def test_a_ring_holds_more_while_there_are_subscribers():
    ring = Ring()
    for first in range(1, 20_001, 100):
        ring.append(batch(first, first + 99), listened=True)

    assert ring.first == 20_001 - 12_300


def test_a_ring_of_large_events_is_limited_in_bytes(monkeypatch):
    monkeypatch.setattr(module, "HELD_BYTES", 10_000)
    ring = Ring()
    for seq in range(1, 51):
        ring.append(batch(seq, seq, extra=b"x" * 1000), listened=True)

    assert 8 <= len(held(ring)) <= 9
    assert ring.last == 50


def test_the_newest_batch_stays_however_large_it_is(monkeypatch):
    monkeypatch.setattr(module, "HELD_BYTES", 10)
    ring = Ring()
    for first in (1, 6):
        ring.append(batch(first, first + 4, extra=b"x" * 100))

    assert held(ring) == [6, 7, 8, 9, 10]


def test_a_batch_of_one_kind_is_not_copied_for_subscribers_of_that_kind():
    ring = Ring()
    steps = batch(1, 3)
    mixed = batch(4, 5)
    mixed.events.add(seq=6, metric=pb.Metric())
    ring.append(steps)
    ring.append(mixed)

    first, second = ring.entries_after(0)

    assert first.after(0, frozenset({"step"})) is steps
    assert [event.seq for event in second.after(0, frozenset({"step"})).events] == [4, 5]


def test_reading_can_start_anywhere():
    ring = Ring()
    for first, last in ((1, 3), (4, 4), (5, 9)):
        ring.append(batch(first, last))

    for after in range(10):
        assert held(ring, after) == list(range(after + 1, 10))


def test_after_a_gap_a_ring_starts_over():
    ring = Ring()
    ring.append(batch(1, 5))
    ring.append(batch(9, 10))

    assert held(ring) == [9, 10]


def test_whole_batches_and_chosen_kinds_are_shared_by_all_readers():
    ring = Ring()
    ring.append(batch(1, 3))
    (entry,) = ring.entries_after(0)

    assert entry.after(0, None) is entry.batch
    assert entry.after(0, frozenset({"step"})) is entry.after(0, frozenset({"step"}))
    assert held(ring, 0, frozenset({"metric"})) == []
