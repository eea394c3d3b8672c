"""gui.ini as no window has left it. A window that waits for its settings never opens."""

import os
import subprocess
import sys

import pytest

REMEMBER = """
import sys
from pathlib import Path
from mosaic.gui.memory import Memory
memory = Memory(Path(sys.argv[1]))
memory.remember("a/b", "c")
memory.save()
print(memory.value("a/b", ""), Memory(Path(sys.argv[1])).value("a/b", ""))
"""


def remember(path):
    """In a process of its own: one that waits in Qt cannot be interrupted."""
    command = [sys.executable, "-c", REMEMBER, str(path)]
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout.split()


def test_a_fifo_keeps_nobody_waiting(tmp_path):
    os.mkfifo(tmp_path / "gui.ini")

    assert remember(tmp_path / "gui.ini")[0] == "c"


def test_what_a_link_leads_to_is_neither_replaced_nor_changed(tmp_path):
    # A FIFO stands for a device: as root, Qt once replaced /dev/zero by a file of settings.
    os.mkfifo(tmp_path / "device", 0o644)
    before = (tmp_path / "device").stat()
    reader = os.open(tmp_path / "device", os.O_RDONLY | os.O_NONBLOCK)  # opening it for writing succeeds
    (tmp_path / "gui.ini").symlink_to(tmp_path / "device")

    assert remember(tmp_path / "gui.ini")[0] == "c"
    os.close(reader)
    after = (tmp_path / "device").stat()
    assert (after.st_mode, after.st_ino) == (before.st_mode, before.st_ino)


@pytest.mark.parametrize("content", [b"", b"not a lock"])
def test_a_lock_that_was_left_behind_keeps_nobody_waiting(tmp_path, content):
    lock = tmp_path / "gui.ini.lock"
    lock.write_bytes(content)
    os.utime(lock, (0, 0))

    assert remember(tmp_path / "gui.ini") == ["c", "c"]


@pytest.mark.parametrize("content", [b"\xff\x00garbage" * 1000, b"[a]\nb=@Variant(\x00\x00\x00)\n", b"[" * 100_000])
def test_a_damaged_file_is_an_empty_one(tmp_path, content):
    (tmp_path / "gui.ini").write_bytes(content)

    assert remember(tmp_path / "gui.ini")[0] == "c"
