from mosaic.client.events import Episode, LogPiece, Metric, Step
from mosaic.gui.hub.backlog import EVENT_BYTES, Backlog, FeedBatch


def step(seq):
    return Step(seq, 0, seq, 1.0, 0, "", 0, False, False, b"")


def episode(seq):
    return Episode(seq, 0, seq, 1.0, 10, 0, "", True, False, b"")


def metric(seq, extra=b""):
    return Metric(seq, 0, seq, {"loss": 1.0}, extra)


def seqs(events):
    return [event.seq for event in events]


def small(may_drop=True, events=100):
    return Backlog(may_drop, soft_bytes=events * EVENT_BYTES, hard_bytes=4 * events * EVENT_BYTES)


def test_batches_are_merged_until_they_are_taken():
    backlog = small()
    backlog.add(FeedBatch(events=[step(1)]))
    backlog.add(FeedBatch(events=[step(2)], missed=[(3, 4)]))

    batch = backlog.take()

    assert (seqs(batch.events), batch.missed) == ([1, 2], [(3, 4)])
    assert backlog.take() == FeedBatch()


def test_a_window_that_does_not_come_misses_the_oldest_steps_in_one_range():
    backlog = small()
    for seq in range(1, 1001):
        backlog.add(FeedBatch(events=[episode(seq) if seq % 100 == 0 else step(seq)]))

    batch = backlog.take()

    steps = [event.seq for event in batch.events if isinstance(event, Step)]
    ((first, last),) = batch.missed
    assert first == 1
    assert steps == [seq for seq in range(last + 1, 1001) if seq % 100]
    assert [event.seq for event in batch.events if isinstance(event, Episode)] == list(range(100, 1001, 100))
    assert len(batch.events) <= 100


def test_the_reader_waits_when_there_are_no_steps_to_drop():
    backlog = small()
    for seq in range(1, 402):
        assert not backlog.is_full
        backlog.add(FeedBatch(events=[metric(seq)]))

    assert backlog.is_full
    assert len(backlog.take().events) == 401
    assert not backlog.is_full


def test_nothing_is_dropped_where_every_event_counts():
    backlog = small(may_drop=False)
    backlog.add(FeedBatch(events=[step(seq) for seq in range(1, 200)]))

    assert backlog.is_full
    assert seqs(backlog.take().events) == list(range(1, 200))


def test_long_extra_fields_and_log_text_count():
    backlog = small(may_drop=False)
    backlog.add(FeedBatch(events=[metric(1, b"x" * 20_000)]))
    assert not backlog.is_full

    backlog.add(FeedBatch(log=[LogPiece("stdout", 0, 20_000, b"x" * 20_000)]))

    assert backlog.is_full


def test_a_fetched_range_gives_only_what_was_not_delivered():
    backlog = small(events=4)
    backlog.add(FeedBatch(events=[step(1), metric(2), step(3), step(4), step(5), step(6)], missed=[(7, 9)]))
    batch = backlog.take()

    again = backlog.not_taken([step(1), metric(2), step(3), *(metric(seq) for seq in (7, 8, 9))])

    assert (seqs(batch.events), batch.missed) == ([2, 4, 5, 6], [(1, 3), (7, 9)])
    assert seqs(again) == [1, 3, 7, 8, 9]


def test_a_range_that_the_daemon_skipped_is_not_mistaken_for_dropped_steps():
    backlog = small(events=4)
    backlog.add(FeedBatch(events=[step(seq) for seq in range(1, 7)]))
    backlog.add(FeedBatch(missed=[(7, 9)]))
    backlog.add(FeedBatch(events=[step(seq) for seq in range(10, 22)]))

    batch = backlog.take()

    ((first, last),) = batch.missed
    assert (first, last) == (1, last)
    assert last > 9
    assert seqs(backlog.not_taken([metric(6), metric(8), metric(11)])) == [8]


def test_new_numbers_are_told_with_the_batch_in_which_they_begin():
    backlog = Backlog(may_drop=True)
    backlog.add(FeedBatch(events=[]))
    backlog.add(FeedBatch(renumbered=True))

    assert backlog.take().renumbered
    assert not backlog.take().renumbered
