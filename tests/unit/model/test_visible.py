import json
import logging

import pytest

from mosaic.model.log_format import LogFormat
from mosaic.model.visible import visible, visible_line, visible_log

TITLE, CLIPBOARD, CLEAR = "\x1b]0;owned\x07", "\x1b]52;c;b3duZWQ=\x07", "\x1b[2J\x1b[H"
ATTACKS = (
    TITLE,
    CLIPBOARD,
    CLEAR,
    "\x9b2J",
    "\x9d0;x\x9c",
    "\x90q\x9c",
    "\u202eabc\u2066",
    "\x00\x08\x0c",
    "\x1bc",
    "\x7f",
)


@pytest.mark.parametrize("text", ATTACKS)
@pytest.mark.parametrize("make", [visible, visible_line, visible_log])
def test_nothing_is_left_that_a_terminal_obeys(make, text):
    assert make(text).isprintable()
    assert make(text).startswith("\\u")


@pytest.mark.parametrize("text", [*ATTACKS, "\udcff", "\U000e0041", "plain", "é → 🙂"])
def test_json_stays_the_same_json(text):
    raw = json.dumps({"name": text}, ensure_ascii=False)

    assert json.loads(visible(raw)) == json.loads(raw)
    visible(raw).encode()


def test_ordinary_text_is_not_changed():
    text = "größer → 🙂 \t 家\nnext"

    assert visible(text) == visible_log(text) == text
    assert visible_line("two\nlines\t.") == "two\\u000alines\\u0009."


def test_a_progress_bar_keeps_its_returns():
    assert visible_log("\r 10%|█\r 20%|██") == "\r 10%|█\r 20%|██"


def test_a_message_of_the_log_is_one_line_and_a_traceback_keeps_its_lines():
    try:
        raise ValueError(TITLE)
    except ValueError as error:
        record = logging.LogRecord(
            "x", 20, "f", 1, "run %s", ("a\n2026 INFO forged" + CLEAR,), (type(error), error, None)
        )

    head, *rest = LogFormat("%(message)s").format(record).split("\n")

    assert head == "run a\\u000a2026 INFO forged\\u001b[2J\\u001b[H"
    assert rest == ["ValueError: \\u001b]0;owned\\u0007"]
