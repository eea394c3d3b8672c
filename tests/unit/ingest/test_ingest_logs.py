from ingest_batches import LINE, lifecycle, step

from mosaic.wire import mosaic_pb2 as pb


def pages(store, stream, start=0, max_bytes=1 << 20):
    got = []
    while True:
        page = store.logs(stream, start, max_bytes)
        if page.next_offset == start:
            return got
        got.append(page.batch)
        start = page.next_offset


def test_text_comes_back_by_stream_and_offset(store, spool):
    store.commit(spool.batch(step(1), text=b"one\n"))
    store.commit(spool.batch(text=b"oops\n", stream=pb.STDERR))
    store.commit(spool.batch(text=b"two\xff\n"))

    (out,) = pages(store, pb.STDOUT)
    (err,) = pages(store, pb.STDERR)

    assert [(t.offset, t.text) for t in out.texts] == [(LINE, b"one\n"), (LINE + 4, b"two\xff\n")]
    assert [(t.stream, t.offset, t.text) for t in err.texts] == [(pb.STDERR, 0, b"oops\n")]


def test_pages_of_any_size_make_the_same_text(store, spool):
    for i in range(50):
        store.commit(spool.batch(text=b"line %d\n" % i * (i + 1)))
    whole = b"".join(t.text for page in pages(store, pb.STDOUT) for t in page.texts)

    for size in (1, 7, 100, 5000):
        cut = pages(store, pb.STDOUT, max_bytes=size)
        assert b"".join(t.text for page in cut for t in page.texts) == whole
        assert all(sum(len(t.text) for t in page.texts) <= size for page in cut)


def test_reading_can_start_inside_a_text(store, spool):
    store.commit(spool.batch(text=b"0123456789"))
    store.commit(spool.batch(text=b"abc"))

    (page,) = pages(store, pb.STDOUT, start=7)

    assert [(t.offset, t.text) for t in page.texts] == [(7, b"789"), (10, b"abc")]


def test_rejects_keep_their_reason_and_first_bytes_and_fill_pages(store, spool):
    for i in range(10):
        request = spool.batch(text=b"text\n")
        request.end += 1000
        spool.offsets[pb.STDOUT] += 1000
        request.rejects.add(offset=request.end - 1000, length=1000, reason=f"bad {i}", head=b"h" * 400)
        store.commit(request)

    got = pages(store, pb.STDOUT, max_bytes=1000)

    assert len(got) > 2
    assert [r.reason for page in got for r in page.rejects] == [f"bad {i}" for i in range(10)]
    assert b"".join(t.text for page in got for t in page.texts) == b"text\n" * 10


def test_a_gap_that_is_sent_twice_is_stored_once(store, spool):
    store.commit(spool.batch(text=b"text\n"))
    for _ in range(2):
        request = spool.batch()
        request.gaps.add(offset=2, length=3, reason="the spool shrank")
        store.commit(request)

    (page,) = pages(store, pb.STDOUT)

    assert [(g.offset, g.length, g.reason) for g in page.gaps] == [(2, 3, "the spool shrank")]


def test_a_gap_at_the_end_is_in_the_page_that_reaches_it(store, spool):
    store.commit(spool.batch(text=b"text\n"))
    request = spool.batch()
    request.gaps.add(offset=5, length=1, reason="the spool shrank")
    store.commit(request)

    assert len(store.logs(pb.STDOUT, 0).batch.gaps) == 1
    assert len(store.logs(pb.STDOUT, 5).batch.gaps) == 0


def test_lines_the_sdk_could_not_write_are_gaps(store, spool):
    gap = lifecycle("telemetry_gap", b'{"lines": 12, "reason": "disk full"}')
    store.commit(spool.batch(step(1), gap, gap))

    (page,) = pages(store, pb.STDOUT)

    assert [g.reason for g in page.gaps] == ["12 lines were not written: disk full"] * 2
