"""The lines of a log, from the pieces in which it arrives."""

import itertools

import pytest

from mosaic.client.events import LogPiece
from mosaic.present.log_lines import LONGEST_LINE, LONGEST_PART, LogLine, LogLines, clean, matches


def piece(text, stream="stdout", offset=0, problem=""):
    return LogPiece(stream, offset, len(text), text, problem)


def pieces(*texts, stream="stdout"):
    """Pieces of one stream, each after the other."""
    offsets = itertools.accumulate((len(text) for text in texts), initial=0)
    return [piece(text, stream, offset) for text, offset in zip(texts, offsets, strict=False)]


def test_a_line_is_given_when_its_end_has_come():
    lines = LogLines()

    first = lines.receive([piece(b"one\ntw"), piece(b"errors\n", "stderr")])
    second = lines.receive([piece(b"o\nthree", offset=6)])

    assert first == [LogLine("stdout", "one"), LogLine("stderr", "errors")]
    assert second == [LogLine("stdout", "two")]
    assert lines.finish() == [LogLine("stdout", "three")]
    assert lines.finish() == []


def test_a_letter_that_two_pieces_share_is_whole():
    lines = LogLines()

    lines.receive([piece("gr\u00fc".encode()[:3])])

    assert lines.receive([piece("\u00fc\n".encode()[1:], offset=3)]) == [LogLine("stdout", "gr\u00fc")]


def test_bytes_that_arrive_twice_are_shown_once():
    lines = LogLines()

    lines.receive([piece(b"one\ntwo\nth")])

    assert lines.receive([piece(b"two\nth", offset=4), piece(b"three\n", offset=8)]) == [LogLine("stdout", "three")]


def test_rejected_and_lost_bytes_are_marked():
    lines = LogLines()

    found = lines.receive([piece(b"half"), piece(b'{"step": ', "stdout", 1200, "rejected: not valid JSON")])

    assert found[0] == LogLine("stdout", "half")
    assert found[1] == LogLine("stdout", 'stdout at byte 1,200: rejected: not valid JSON: {"step":', is_problem=True)


def test_only_the_newest_lines_are_kept_and_the_others_are_counted():
    lines = LogLines(most=3)

    lines.receive([piece(b"".join(b"%d\n" % number for number in range(10)))])

    assert [line.text for line in lines.kept] == ["7", "8", "9"]
    assert lines.dropped == 7


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        (b"\x1b[31mred\x1b[0m", "red"),
        (b"\x1b]0;title\x07text", "text"),
        (b" 10%\r 20%\r 30%", " 30%"),
        (b"windows\r", "windows"),
        (b"a\tb", "a       b"),
        (b"\xff\xfe", "\ufffd\ufffd"),
        (b"<b>bold</b>\x00", "<b>bold</b> "),
    ],
)
def test_control_characters_do_not_reach_the_screen(line, shown):
    assert clean(line) == shown


def test_a_long_line_is_cut_and_says_so():
    shown = clean(b"x" * 10_000_000)

    assert shown == "x" * LONGEST_LINE + " \u2026 (10,000,000 bytes in this line)"


def test_a_line_without_an_end_does_not_grow_for_ever():
    lines = LogLines()

    found = lines.receive(pieces(*[b"x" * (LONGEST_PART // 2 + 1)] * 3))

    assert len(found) == 1


def test_search_ignores_case_unless_capitals_are_typed():
    lines = ["Loss 1", "loss 2", "a.b", "acb"]

    assert matches(lines, "loss") == [0, 1]
    assert matches(lines, "Loss") == [0]
    assert matches(lines, "a.b") == [2]
    assert matches(lines, "") == []
