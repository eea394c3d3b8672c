"""The atomic write, and reading JSON from folders that belong to a worker: whatever is there, the reader returns."""

import os
import resource
import signal
import socket
from pathlib import Path

import pytest

import mosaic
from mosaic.model.durable import Replacement, read_json, write_bytes, write_json


def plant_fifo(path):
    os.mkfifo(path)


def plant_device(path):
    path.symlink_to("/dev/zero")


def plant_socket(path):
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))


def plant_loop(path):
    path.symlink_to(path)


def plant_nesting(path):
    path.write_text('{"a":' * 100_000)


def plant_list(path):
    path.write_text("[1]")


@pytest.mark.timeout(30)
@pytest.mark.parametrize("plant", [plant_fifo, plant_device, plant_socket, plant_loop, plant_nesting, plant_list])
def test_anything_but_a_file_with_a_json_object_reads_as_none(tmp_path, monkeypatch, plant):
    monkeypatch.chdir(tmp_path)
    plant(tmp_path / "exit.json")

    assert read_json(tmp_path / "exit.json") is None


def test_a_link_to_a_file_is_followed(tmp_path):
    write_json(tmp_path / "real.json", {"a": 1})
    (tmp_path / "link.json").symlink_to("real.json")

    assert read_json(tmp_path / "link.json") == {"a": 1}


def test_a_write_replaces_the_file_and_leaves_nothing_beside_it(tmp_path):
    path = tmp_path / "file"
    write_bytes(path, b"old")

    write_bytes(path, b"new")

    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == 0o600
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_write_that_fails_leaves_the_old_file(tmp_path, error):
    path = tmp_path / "file"
    write_bytes(path, b"old")

    def fail(file):
        file.write(b"half of the n")
        raise error

    with pytest.raises(type(error)), Replacement(path) as file:
        fail(file)

    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


def test_a_disk_that_fills_up_leaves_the_old_file(tmp_path):
    path = tmp_path / "file"
    write_bytes(path, b"old")
    child = os.fork()
    if child == 0:
        # In a child, because the limit and its signal hold for the whole process.
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        try:
            write_bytes(path, bytes(100_000))
        except OSError:
            os._exit(7)
        os._exit(0)

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


def test_the_new_file_is_synced_before_it_gets_its_name_and_the_folder_after(tmp_path, monkeypatch):
    order = []
    for name in ("fsync", "replace"):
        real = getattr(os, name)
        monkeypatch.setattr(os, name, lambda *args, name=name, real=real: (order.append(name), real(*args))[1])

    write_bytes(tmp_path / "file", b"new")

    assert order == ["fsync", "replace", "fsync"]


def test_a_link_in_the_place_of_the_temporary_file_is_not_followed(tmp_path):
    (tmp_path / f"file.{os.getpid()}.tmp").symlink_to("elsewhere")

    with pytest.raises(OSError, match="symbolic links"):
        write_bytes(tmp_path / "file", b"new")

    assert not (tmp_path / "elsewhere").exists()


def test_the_umask_applies_to_the_mode(tmp_path):
    old = os.umask(0o027)
    try:
        write_bytes(tmp_path / "file", b"new", mode=0o666)
    finally:
        os.umask(old)

    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o640


def test_no_other_module_of_the_platform_replaces_files():
    source = Path(mosaic.__file__).parent
    others = [path for path in source.rglob("*.py") if path.name != "durable.py"]

    assert [path for path in others if "os.replace(" in path.read_text()] == []
