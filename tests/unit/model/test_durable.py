"""The atomic write, and reading from folders that belong to a worker: whatever is there, the reader returns."""

import os
import resource
import signal
import socket
from pathlib import Path

import pytest

import mosaic
from mosaic.model.durable import Replacement, read_bytes, read_json, read_tail, write_bytes, write_json


def plant_fifo(path):
    os.mkfifo(path)


def plant_device(path):
    path.symlink_to("/dev/zero")


def plant_link(path):
    (path.parent / "real.json").write_text("{}")
    path.symlink_to("real.json")


def plant_socket(path):
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))


def plant_loop(path):
    path.symlink_to(path)


def plant_folder(path):
    path.mkdir()


def plant_nesting(path):
    path.write_text('{"a":' * 100_000)


def plant_list(path):
    path.write_text("[1]")


def plant_sparse(path):
    path.touch()
    os.truncate(path, 1 << 40)


def plant_another_users_file(path):
    path.write_text("{}")
    try:
        os.chown(path, 12345, -1)
    except PermissionError:
        pytest.skip("Only root can give a file away.")


def plant_nothing(path):
    pass


ODD = [plant_fifo, plant_device, plant_link, plant_socket, plant_loop, plant_folder, plant_sparse]
ODD += [plant_another_users_file, plant_nothing]


@pytest.mark.timeout(30)
@pytest.mark.parametrize("plant", [*ODD, plant_nesting, plant_list])
def test_anything_but_a_file_with_a_json_object_reads_as_none(tmp_path, monkeypatch, plant):
    monkeypatch.chdir(tmp_path)
    plant(tmp_path / "exit.json")

    assert read_json(tmp_path / "exit.json") is None


@pytest.mark.timeout(30)
@pytest.mark.parametrize("plant", ODD)
@pytest.mark.parametrize("read", [read_bytes, lambda path, limit: read_bytes(path, limit, below=path.parents[1])])
def test_only_a_regular_file_of_bounded_size_is_read(tmp_path, monkeypatch, plant, read):
    (tmp_path / "logs").mkdir()
    monkeypatch.chdir(tmp_path / "logs")
    plant(tmp_path / "logs" / "file")
    before = os.listdir("/proc/self/fd")

    with pytest.raises(OSError, match="file"):
        read(tmp_path / "logs" / "file", 1000)

    assert os.listdir("/proc/self/fd") == before


def test_a_file_of_exactly_the_limit_is_read_and_one_byte_more_is_not(tmp_path):
    (tmp_path / "file").write_bytes(b"12345")

    assert read_bytes(tmp_path / "file", 5) == b"12345"
    with pytest.raises(OSError, match="has more than 4 bytes"):
        read_bytes(tmp_path / "file", 4)


def test_a_file_without_a_size_is_read_to_the_limit_only():
    with pytest.raises(OSError, match="has more than 10 bytes"):
        read_bytes(f"/proc/{os.getpid()}/status", 10)


@pytest.mark.parametrize("linked", ["run", "run/logs"])
def test_no_link_between_a_folder_and_a_file_below_it_is_followed(tmp_path, linked):
    real = tmp_path / "other" / "logs"
    real.mkdir(parents=True)
    (real / "file").write_text("of another run")
    (tmp_path / linked).parent.mkdir(exist_ok=True)
    (tmp_path / linked).symlink_to(tmp_path / "other" / linked.removeprefix("run").strip("/"))
    assert (tmp_path / "run" / "logs" / "file").read_text() == "of another run"

    with pytest.raises(OSError, match=r"Not a directory|symbolic links"):
        read_bytes(tmp_path / "run" / "logs" / "file", 1000, below=tmp_path / "run")


def test_the_end_of_a_file_is_read_however_large_it_is(tmp_path):
    plant_sparse(tmp_path / "file")
    with open(tmp_path / "file", "ab") as file:
        file.write(b"the end")

    assert read_tail(tmp_path / "file", 7) == b"the end"
    assert read_tail(tmp_path / "file", 9) == b"\0\0the end"


def test_a_file_of_another_user_is_read_if_the_caller_says_so(tmp_path):
    plant_another_users_file(tmp_path / "file")

    assert read_json(tmp_path / "file", any_owner=True) == {}


def test_an_error_that_may_pass_is_raised(tmp_path, monkeypatch):
    write_json(tmp_path / "file", {})
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
    try:
        with pytest.raises(OSError, match="Too many open files"):
            read_json(tmp_path / "file")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_what_is_written_as_json_can_be_read_again_however_many_numbers_it_has(tmp_path):
    value = {"numbers": [[[[1] * 700] * 1000]]}

    write_json(tmp_path / "file", value)

    assert read_json(tmp_path / "file") == value


@pytest.mark.timeout(30)
def test_a_fifo_in_the_place_of_the_temporary_file_does_not_stop_a_write(tmp_path):
    os.mkfifo(tmp_path / f"file.{os.getpid()}.tmp")

    write_bytes(tmp_path / "file", b"new")

    assert (tmp_path / "file").read_bytes() == b"new"


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

    write_bytes(tmp_path / "file", b"new")

    assert os.listdir(tmp_path) == ["file"]


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
