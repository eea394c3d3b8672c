"""Keys as a real terminal sends them, and the terminal is restored afterwards."""

import os
import pty
import signal
import subprocess
import sys
import termios
import threading

import pytest

from mosaic.cli.keyboard import Keyboard, names_of


@pytest.fixture
def terminal(monkeypatch):
    """The master's end of a pseudo-terminal whose other end is this process's stdin."""
    master, slave = pty.openpty()
    with open(slave, closefd=False) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        yield master
    os.close(slave)
    os.close(master)


@pytest.mark.parametrize(
    ("typed", "keys"),
    [
        (b"\x1b[A", ["up"]),
        (b"\x1bOB", ["down"]),
        (b"\x1b[1;5A", ["up"]),
        (b"\x1b[5~\x1b[6~", ["pgup", "pgdn"]),
        (b"\x1b[H\x1b[F\x1bOH\x1b[4~", ["home", "end", "home", "end"]),
        (b"\x1b", ["escape"]),
        (b"\x1b[B\x1b[B\r", ["down", "down", "enter"]),
        (b"qk", ["q", "k"]),
        ("/größe".encode(), ["/", "g", "r", "ö", "ß", "e"]),
        (b"\x1b[<64;10;5M\x1b[<65;10;5M", ["wheel up", "wheel down"]),
        (b"\x1b[<0;10;5M\x1b[<0;10;5m", ["click 5"]),
        (b"\x1b[15~\x1b[I", []),
    ],
)
def test_keys_that_arrive_together_are_separated(typed, keys):
    assert names_of(typed) == keys


@pytest.mark.parametrize("typed", [b"\x1b[A", b"\x1b[5~", b"\x1b[<64;10;5M", "ö".encode()])
def test_a_key_that_arrives_in_two_pieces_is_one_key(terminal, typed):
    with Keyboard() as keyboard:
        for cut in range(1, len(typed)):
            os.write(terminal, typed[:cut])
            assert keyboard._is_ready(10)
            rest = threading.Timer(0.01, os.write, (terminal, typed[cut:]))
            rest.start()
            assert keyboard.keys(10) == names_of(typed)
            rest.join()


def test_escape_alone_does_not_wait_for_more(terminal):
    with Keyboard() as keyboard:
        os.write(terminal, b"\x1b")

        assert keyboard.keys(10) == ["escape"]


UNDER_SIGNALS = """
import sys
from mosaic.cli.keyboard import Keyboard
with Keyboard(mouse=True) as keyboard:
    print("ready", flush=True)
    while True:
        keyboard.keys(0.5)  # a signal just before the wait is handled after it
"""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 1)])
def test_the_terminal_is_restored_however_the_view_ends(number, code):
    master, slave = pty.openpty()
    before = termios.tcgetattr(slave)
    view = subprocess.Popen([sys.executable, "-c", UNDER_SIGNALS], stdin=slave, stdout=slave, stderr=subprocess.PIPE)
    output = b""
    while b"ready" not in output:
        output += os.read(master, 1024)
    during = termios.tcgetattr(slave)

    view.send_signal(number)
    view.communicate(timeout=30)

    assert during != before
    assert termios.tcgetattr(slave) == before
    assert b"\x1b[?1000l" in os.read(master, 1024)
    assert view.returncode in (code, -number)
    os.close(slave)
    os.close(master)


def test_a_closed_terminal_is_reported_once(terminal, monkeypatch):
    with Keyboard() as keyboard:
        monkeypatch.setattr(os, "read", lambda *_: b"")
        os.write(terminal, b"x")

        assert keyboard.keys(10) == ["closed"]
