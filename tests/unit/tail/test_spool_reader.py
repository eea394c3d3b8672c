"""Pieces of a real file: whole lines, long lines, holes, and a file that shrank."""

import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mosaic.tail import spool_reader
from mosaic.tail.spool_reader import CHUNK_BYTES, LINE_BYTES, Hole, Lines, LongLine, Shrunk, Spool


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "worker.stdout.log"
    path.touch()
    return path


def append(path, data: bytes):
    with open(path, "ab") as file:
        file.write(data)


def read_all(spool, final=False):
    return list(iter(lambda: spool.read(final), None))


def test_only_whole_lines_are_returned_until_the_end_is_final(path):
    spool = Spool(path)
    append(path, b"one\ntw")

    assert read_all(spool) == [Lines(0, b"one\n")]
    append(path, b"o\nthr")
    assert read_all(spool) == [Lines(4, b"two\n")]
    assert read_all(spool, final=True) == [Lines(8, b"thr")]


def test_a_reader_continues_at_the_cursor(path):
    append(path, b"one\ntwo\n")
    spool = Spool(path)

    spool.seek(4)

    assert read_all(spool) == [Lines(4, b"two\n")]


def test_a_progress_bar_is_returned_at_every_carriage_return(path):
    spool = Spool(path, breaks=b"\n\r")
    append(path, b" 10%\r 20%\r 3")

    assert read_all(spool) == [Lines(0, b" 10%\r 20%\r")]


def test_a_line_over_the_limit_keeps_its_offset_and_its_head(path):
    append(path, b"before\n" + b"x" * (LINE_BYTES + 1) + b"\nafter\n")

    pieces = read_all(Spool(path))

    end = 7 + LINE_BYTES + 2
    assert pieces == [Lines(0, b"before\n"), LongLine(7, end, b"x" * 4096), Lines(end, b"after\n")]


def test_a_line_of_exactly_the_limit_is_a_line(path):
    append(path, b"x" * LINE_BYTES + b"\nafter\n")

    pieces = read_all(Spool(path))

    assert [type(piece) for piece in pieces] == [Lines, Lines]
    assert pieces[-1].end == LINE_BYTES + 7


def test_a_long_line_that_was_cut_is_a_piece_only_at_the_end(path):
    append(path, b"x" * (LINE_BYTES + CHUNK_BYTES))
    spool = Spool(path)

    assert read_all(spool) == []
    assert read_all(spool, final=True) == [LongLine(0, LINE_BYTES + CHUNK_BYTES, b"x" * 4096)]


def test_many_nul_bytes_are_a_hole(path):
    append(path, b"one\ncut he")
    os.truncate(path, 10_000_000)
    append(path, b"two\n")

    pieces = read_all(Spool(path))

    assert pieces == [Lines(0, b"one\ncut he"), Hole(10, 10_000_000), Lines(10_000_000, b"two\n")]


def test_a_sparse_file_of_terabytes_costs_no_time(path):
    append(path, b"before\n")
    os.truncate(path, 4 << 40)
    with open(path, "r+b") as file:  # an island of NUL bytes that were written
        file.seek(1 << 40)
        file.write(bytes(CHUNK_BYTES + 1))
    append(path, b"after\n")

    pieces = read_all(Spool(path))

    assert pieces == [Lines(0, b"before\n"), Hole(7, 4 << 40), Lines(4 << 40, b"after\n")]


def test_a_hole_at_the_end_of_a_sparse_file_is_read_once(path):
    append(path, b"before\n")
    os.truncate(path, 4 << 40)
    spool = Spool(path)

    assert read_all(spool) == [Lines(0, b"before\n"), Hole(7, 4 << 40)]
    assert spool.behind == 0
    append(path, b"after\n")
    assert read_all(spool) == [Lines(4 << 40, b"after\n")]


def test_a_few_nul_bytes_are_output_of_the_worker(path):
    append(path, b"a\0\0b\n")

    assert read_all(Spool(path)) == [Lines(0, b"a\0\0b\n")]


def test_a_spool_that_shrank_is_reported_once_and_read_on_after_the_cursor(path):
    append(path, b"0123456\n")
    spool = Spool(path)
    read_all(spool)

    os.truncate(path, 3)

    assert read_all(spool) == [Shrunk(8, 8, 3)]
    assert read_all(spool) == []
    append(path, b"4567\nnew\n")
    assert read_all(spool) == [Lines(8, b"new\n")]


def test_a_shrunk_spool_is_grown_back_so_that_the_next_line_is_not_lost(path):
    with open(path, "ab", buffering=0) as writer:
        spool = Spool(path, write_fd=writer.fileno())
        writer.write(b"0123456\n")
        read_all(spool)
        os.truncate(path, 0)

        assert read_all(spool) == [Shrunk(8, 8, 0)]
        writer.write(b"new\n")
        assert read_all(spool) == [Lines(8, b"new\n")]


def test_an_unfinished_line_that_was_cut_off_is_forgotten(path):
    append(path, b"one\nunfini")
    spool = Spool(path)
    read_all(spool)

    os.truncate(path, 4)
    append(path, b"x\n")

    assert read_all(spool, final=True) == [Lines(4, b"x\n")]


def test_stored_bytes_are_punched_but_never_the_newest(path, monkeypatch):
    monkeypatch.setattr(spool_reader, "KEPT_BYTES", 1 << 20)
    with open(path, "ab", buffering=0) as writer:
        writer.write(b"x" * 999 + b"\n")
        writer.write((b"y" * 999 + b"\n") * 8000)
        os.fsync(writer.fileno())
        spool = Spool(path, write_fd=writer.fileno())
        before = os.stat(path)

        spool.punch(durable=4 << 20)
        after = os.stat(path)

    if after.st_blocks == before.st_blocks:
        pytest.skip("this filesystem has no holes")
    assert before.st_blocks - after.st_blocks >= (4 << 20) // 512 - 16
    assert after.st_size == before.st_size
    assert path.read_bytes()[4 << 20 :].strip(b"y\n") == b""


def test_bytes_that_are_new_or_not_durable_are_not_punched(path, monkeypatch):
    monkeypatch.setattr(spool_reader, "KEPT_BYTES", 1 << 20)
    calls = []
    monkeypatch.setattr(spool_reader, "punch", lambda fd, start, end: calls.append((start, end)))
    append(path, b"x" * (4 << 20))
    spool = Spool(path, write_fd=0)

    spool.punch(durable=1000)
    spool.punch(durable=(2 << 20) + 5)
    spool.punch(durable=(2 << 20) + 9000)
    spool.punch(durable=4 << 20)

    assert calls == [(0, 2 << 20), (2 << 20, 3 << 20)]


def test_halves_are_whole_lines_and_together_make_up_the_piece():
    piece = Lines(5, b"a\nbb\nccc\nd")

    first, second = piece.halves()

    assert first.data + second.data == piece.data
    assert first.data.endswith(b"\n")
    assert (first.start, second.start) == (5, 5 + len(first.data))
    assert Lines(0, b"single line\n").halves() is None


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    parts=st.lists(
        st.sampled_from([b"a", b"bb\n", b"\n", b"\0", b"\0" * 9, b"\0" * 20, b"c" * 90, b"\r"]), max_size=40
    ),
    chunk=st.integers(16, 64),
)
def test_however_a_file_grows_its_pieces_cover_it_in_order(path, monkeypatch, parts, chunk):
    monkeypatch.setattr(spool_reader, "CHUNK_BYTES", chunk)
    monkeypatch.setattr(spool_reader, "LINE_BYTES", 80)
    path.write_bytes(b"")
    spool = Spool(path)
    pieces = []

    for part in parts:
        append(path, part)
        pieces += read_all(spool)
    pieces += read_all(spool, final=True)

    spool.close()
    whole, at = b"".join(parts), 0
    for piece in pieces:
        assert piece.start == at
        at = piece.end
        if isinstance(piece, Lines):
            assert piece.data == whole[piece.start : piece.end]
            assert spool_reader.NULS not in piece.data
            assert all(len(line) <= 80 + chunk for line in piece.data.split(b"\n"))
        if isinstance(piece, Hole):
            assert whole[piece.start : piece.end].strip(b"\0") == b""
    assert at == len(whole)
