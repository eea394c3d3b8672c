"""A command on a pseudo-terminal of a given size, with methods to read its output and type keys."""

import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import time

WIDTHS = {"COLUMNS", "LINES"}


class Terminal:
    """A command whose controlling terminal is a pseudo-terminal, so that Ctrl-C and Ctrl-Z reach it."""

    def __init__(self, command, env, columns=80, rows=24):
        self._master, slave = pty.openpty()
        self._slave = slave
        self.resize(columns, rows)
        self.before = termios.tcgetattr(slave)
        self.process = subprocess.Popen(
            command,
            # pytest-xdist sets a width for its workers, which would take precedence over the terminal's own.
            env={**{name: os.environ[name] for name in os.environ.keys() - WIDTHS}, "TERM": "xterm", **env},
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        self.read = b""

    def resize(self, columns, rows):
        fcntl.ioctl(self._slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def waits_for(self, text, timeout_s=60):
        """Wait until this text is printed. Returns the output up to it and discards that."""
        deadline, wanted = time.monotonic() + timeout_s, text.encode()
        while wanted not in self.read:
            assert time.monotonic() < deadline, f"no {text!r} in {self.read[-6000:]!r}"
            self._read()
        seen, _, self.read = self.read.partition(wanted)
        return (seen + wanted).decode(errors="replace")

    def _read(self):
        if select.select([self._master], [], [], 0.1)[0]:
            self.read += os.read(self._master, 65536)

    def types(self, keys):
        os.write(self._master, keys.encode())

    def ends(self, timeout_s=60):
        """Wait for the end. Returns the exit code and the remaining output; checks that the terminal was restored."""
        deadline = time.monotonic() + timeout_s
        while self.process.poll() is None:
            assert time.monotonic() < deadline, f"it does not exit: {self.read[-2000:]!r}"
            self._read()
        while select.select([self._master], [], [], 0)[0]:
            self._read()
        assert termios.tcgetattr(self._slave) == self.before, "the terminal was not restored"
        return self.process.returncode, self.read.decode(errors="replace")

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self._master)
        os.close(self._slave)
