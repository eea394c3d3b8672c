import io
import json
import sys

import pytest

from mosaic.cli.main import main
from mosaic.cli.safe_output import SafeOutput, raw, safe_output
from mosaic.cli.terminal_text import paint
from mosaic.cli.verb import BadUsage
from mosaic.model.rundir import StateRoot

ATTACK = "\x1b]0;owned\x07\x1b]52;c;eA==\x07\x1b[2J\x9b2J\u202e"


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def terminal(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    return Terminal()


@pytest.mark.parametrize("kind", [io.StringIO, Terminal])
def test_text_of_others_is_printed_as_text(kind, terminal):
    stream = kind()

    print(f"name {ATTACK}", file=SafeOutput(stream))

    assert stream.getvalue() == "name \\u001b]0;owned\\u0007\\u001b]52;c;eA==\\u0007\\u001b[2J\\u009b2J\\u202e\n"


def test_our_colours_stay_on_a_terminal_and_nowhere_else(terminal):
    print(paint(f"red {ATTACK[:4]}", "red", terminal), file=SafeOutput(terminal))
    pipe = io.StringIO()
    print("\x1b[31mred\x1b[0m", file=SafeOutput(pipe))

    assert terminal.getvalue() == "\x1b[31mred \\u001b]0;\x1b[0m\n"
    assert "\x1b" not in pipe.getvalue()


def test_a_colour_that_a_worker_left_open_ends_with_its_text(terminal):
    print("\x1b[31mred", file=SafeOutput(terminal))

    assert terminal.getvalue() == "\x1b[31mred\x1b[0m\n"


@pytest.mark.parametrize("code", ["8", "5", "7", "41", "38;5;1", "1;8", "31;41", "9999"])
def test_a_colour_that_could_hide_a_text_is_not_ours(terminal, code):
    print(f"\x1b[{code}m", file=SafeOutput(terminal))

    assert "\x1b" not in terminal.getvalue()


def test_json_keeps_its_meaning(terminal):
    print(json.dumps({ATTACK: "\x7f"}, ensure_ascii=False), file=SafeOutput(terminal))

    assert json.loads(terminal.getvalue()) == {ATTACK: "\x7f"}


def test_what_draws_a_screen_gets_the_stream_itself(terminal, monkeypatch):
    monkeypatch.setattr(sys, "stdout", terminal)

    with safe_output(), safe_output():  # a command inside of a command
        assert raw(sys.stdout) is terminal
        assert sys.stdout.isatty()

    assert sys.stdout is terminal


@pytest.mark.parametrize(
    "words", [["show", ATTACK], [ATTACK], ["worker", "remove", ATTACK], [f"--host={ATTACK}", "runs"]]
)
def test_an_argument_in_an_error_is_printed_as_text(words, capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("MOSAIC_HOME", str(tmp_path))
    monkeypatch.setattr("mosaic.client.TrainerClient.connect", _refuse)

    try:
        code = main(words)
    except SystemExit as end:
        code = end.code

    output = "".join(capsys.readouterr())
    assert code in (1, 2)
    assert output.replace("\n", "").isprintable(), output


def _refuse(start=True):
    raise BadUsage(f"no daemon at {StateRoot.from_environment().path} {ATTACK}")
