import pytest

from mosaic.present.log_text import LogText


def shown(*pieces):
    text = LogText()
    return "".join(map(text.receive, pieces)) + text.finish()


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"\x1b[32mINFO\x1b[0m ready\n", "INFO ready\n"),
        (b"\r 10%|\xe2\x96\x88\x1b[K\r 20%", "\r 10%|█\r 20%"),
        (b"\x08\x08\x08\r5/10\t.", "\r5/10\t."),
        (b"\x1b]0;owned\x07\x1b[2J", "\\u001b]0;owned\\u0007\\u001b[2J"),
        (b"\x1b]52;c;eA==\x1b\\", "\\u001b]52;c;eA==\\u001b\\"),
        (b"\x9b2J latin-1 \xe9", "\\x9b2J latin-1 \\xe9"),
        ("\x9b2J\u202e".encode(), "\\u009b2J\\u202e"),
        (b"end \x1b[3", "end \\u001b[3"),
        (b"half \xe2\x96", "half \\xe2\\x96"),
    ],
)
def test_the_same_text_is_shown_however_it_is_divided(raw, expected):
    assert shown(raw) == expected
    assert shown(*(raw[place : place + 1] for place in range(len(raw)))) == expected
    for cut in range(len(raw)):
        assert shown(raw[:cut], raw[cut:]) == expected


def test_a_sequence_without_end_does_not_hold_back_the_rest():
    text = LogText()

    assert text.receive(b"\x1b[" + b"1" * 100) == "\\u001b[" + "1" * 100
