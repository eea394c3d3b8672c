"""What an export writes appears complete or not at all."""

import errno
import os
import threading

import pytest

from mosaic.exports.target import new_file, new_folder, overwritten_file
from mosaic.model.errors import MosaicError


def test_a_folder_appears_when_it_is_complete(tmp_path):
    with new_folder(tmp_path / "out") as place:
        (place / "a").write_text("1")
        assert not (tmp_path / "out").exists()

    assert (tmp_path / "out" / "a").read_text() == "1"
    assert os.listdir(tmp_path) == ["out"]


def test_after_an_error_nothing_is_left(tmp_path):
    with pytest.raises(ZeroDivisionError), new_folder(tmp_path / "out") as place:
        (place / "a").write_text(str(1 / 0))
    with pytest.raises(ZeroDivisionError), new_file(tmp_path / "file") as path:
        path.write_text(str(1 / 0))

    assert os.listdir(tmp_path) == []


def test_an_existing_target_is_refused_and_stays(tmp_path):
    (tmp_path / "file").write_text("old")

    with pytest.raises(MosaicError, match=r"exists already.*--force"), new_file(tmp_path / "file"):
        pass

    assert (tmp_path / "file").read_text() == "old"


def test_force_replaces_an_export(tmp_path):
    for text in ("old", "new"):
        with new_folder(tmp_path / "out", force=True) as place:
            (place / text).write_text(text)
        with new_file(tmp_path / "file", force=True) as path:
            path.write_text(text)

    assert (tmp_path / "file").read_text() == "new"
    assert sorted(os.listdir(tmp_path / "out")) == [".mosaic-export", "new"]
    assert sorted(os.listdir(tmp_path)) == ["file", "out"]


def test_force_does_not_replace_a_folder_of_other_files(tmp_path):
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "thesis.tex").write_text("mine")

    with pytest.raises(MosaicError, match="was not written by an export"), new_folder(tmp_path / "home", force=True):
        pass

    assert (tmp_path / "home" / "thesis.tex").exists()


def test_a_failed_replacement_keeps_the_old_folder(tmp_path):
    with new_folder(tmp_path / "out") as place:
        (place / "old").touch()

    with pytest.raises(ZeroDivisionError), new_folder(tmp_path / "out", force=True):
        raise ZeroDivisionError

    assert (tmp_path / "out" / "old").exists()


def test_a_missing_parent_is_named(tmp_path):
    with pytest.raises(MosaicError, match="missing does not exist"), new_file(tmp_path / "missing" / "file"):
        pass


def half_of(path):
    path.write_text("half")
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_file_that_cannot_be_completed_keeps_its_old_content(tmp_path):
    (tmp_path / "file").write_text("old")

    with (
        pytest.raises(MosaicError, match=r"Cannot write .*file: No space left on device"),
        overwritten_file(tmp_path / "file") as path,
    ):
        path.write_text(half_of(path))

    assert (tmp_path / "file").read_text() == "old"
    assert os.listdir(tmp_path) == ["file"]


def test_a_file_is_overwritten_through_its_link(tmp_path):
    (tmp_path / "file").write_text("old")
    (tmp_path / "link").symlink_to("file")

    with overwritten_file(tmp_path / "link") as path:
        path.write_text("new")

    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_text() == "new"


def test_a_pipe_and_a_device_are_written_in_place(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    read = []
    reader = threading.Thread(target=lambda: read.append((tmp_path / "pipe").read_text()))
    reader.start()

    with overwritten_file(tmp_path / "pipe") as path:
        path.write_text("text")
    reader.join()

    assert read == ["text"]
    with (
        pytest.raises(MosaicError, match="Cannot write /dev/full: No space left"),
        overwritten_file("/dev/full") as path,
    ):
        path.write_text("text")


def test_a_file_that_somebody_follows_has_its_name_at_once(tmp_path):
    with overwritten_file(tmp_path / "file", is_read_at_once=True) as path:
        assert path == tmp_path / "file"
