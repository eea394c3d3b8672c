"""mosaic_sdk.files: a reader sees the old content or all of the new one, and a failed write leaves nothing behind."""

import os
import stat
import subprocess
import sys

import pytest
from mosaic_sdk import files


def test_a_write_creates_folders_and_replaces_the_file(tmp_path):
    path = tmp_path / "a" / "b.json"

    files.write_json(path, {"n": 1})
    written = files.write_json(path, {"n": 2}, indent=1)

    assert written == str(path)
    assert files.read_json(path) == {"n": 2}
    assert path.read_text().endswith("}\n")
    assert os.listdir(path.parent) == ["b.json"]


def test_a_failed_write_leaves_the_old_content_and_no_temporary_file(tmp_path):
    path = tmp_path / "state.bin"
    files.write_bytes(path, b"old")

    def write_half():
        with files.atomic_file(path) as file:
            file.write(b"half of the new")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_half()

    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["state.bin"]


def test_a_value_that_json_cannot_hold_is_refused_before_anything_is_written(tmp_path):
    with pytest.raises(TypeError):
        files.write_json(tmp_path / "new" / "x.json", {"x": object()})

    assert os.listdir(tmp_path) == []


def test_nested_writes_of_one_path_do_not_mix(tmp_path):
    path = tmp_path / "x"

    with files.atomic_file(path) as first:
        first.write(b"first")
        files.write_bytes(path, b"second")
        assert path.read_bytes() == b"second"

    assert path.read_bytes() == b"first"


def test_a_secret_gets_its_mode_from_the_start(tmp_path):
    path = tmp_path / "token"

    with files.atomic_file(path, mode=0o600) as file:
        assert stat.S_IMODE(os.fstat(file.fileno()).st_mode) == 0o600

    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize(("text", "reason"), [("[1]", "JSON object"), ("{", "Expecting"), ("", "Expecting")])
def test_a_file_without_a_json_object_is_a_value_error(tmp_path, text, reason):
    (tmp_path / "x.json").write_text(text)

    with pytest.raises(ValueError, match=reason):
        files.read_json(tmp_path / "x.json")


FIRST = """
import os, subprocess, sys
from mosaic_sdk import files
with files.atomic_file(sys.argv[1]) as file:
    file.write(b"from the first process")
    file.flush()
    subprocess.run([sys.executable, "-c", sys.argv[2], sys.argv[1], str(os.getpid())], check=True)
"""
SECOND = """
import os, sys
os.getpid = lambda: int(sys.argv[2])
from mosaic_sdk import files
files.write_bytes(sys.argv[1], b"from the second process")
"""


def test_two_processes_with_the_same_pid_do_not_share_a_temporary_file(tmp_path):
    """Each run has a PID namespace of its own, so two workers that write one path may well have the same PID."""
    path = tmp_path / "cache.bin"

    subprocess.run([sys.executable, "-c", FIRST, path, SECOND], check=True, timeout=60)

    assert path.read_bytes() == b"from the first process"
    assert os.listdir(tmp_path) == ["cache.bin"]


@pytest.mark.parametrize("content", [b"", b"[]", b'{"n": 1', b"\xff\xfe", b"[" * 100_000])
def test_a_damaged_document_is_a_value_error(tmp_path, content):
    (tmp_path / "x.json").write_bytes(content)

    with pytest.raises(ValueError):  # noqa: PT011  # the text is that of json
        files.read_json(tmp_path / "x.json")
