"""The reserve, whatever lies in its folder or in its place: nothing outside is written or deleted."""

import os

import pytest
from oddities import as_ordinary_user

from mosaic.model.reserve import PIECE_BYTES, PIECES, Reserve


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "reserve"
    Reserve(folder).make(0)
    return folder


def sizes(folder):
    return [piece.lstat().st_size for piece in folder.iterdir() if piece.is_file() and not piece.is_symlink()]


def test_a_piece_is_spent_at_a_time_and_made_again(folder):
    assert Reserve(folder).spend()
    assert len(sizes(folder)) == PIECES - 1

    Reserve(folder).make(0)

    assert sizes(folder) == [PIECE_BYTES] * PIECES


def test_no_piece_is_made_or_spent_through_a_link(tmp_path):
    elsewhere, folder = tmp_path / "elsewhere", tmp_path / "reserve"
    elsewhere.mkdir()
    for name in ("0", "precious"):
        (elsewhere / name).write_text("unharmed")
    folder.symlink_to(elsewhere)

    assert not Reserve(folder).spend()
    Reserve(folder).make(0)

    assert {path.name: path.read_text() for path in elsewhere.iterdir()} == dict.fromkeys(("0", "precious"), "unharmed")
    assert not folder.is_symlink()
    assert len(sizes(folder)) == PIECES


@pytest.mark.parametrize("plant", [os.mkfifo, lambda path: path.touch(), lambda path: path.symlink_to(path)])
def test_what_lies_in_the_place_of_the_folder_gives_way(tmp_path, plant):
    folder = tmp_path / "reserve"
    plant(folder)

    Reserve(folder).make(0)

    assert len(sizes(folder)) == PIECES


def test_damaged_pieces_are_made_again_and_never_count_as_spent(folder):
    (folder / "0").unlink()
    (folder / "0").mkdir()
    (folder / "0" / "inside").touch()
    os.truncate(folder / "1", 0)
    os.truncate(folder / "2", 1 << 33)
    (folder / "3").unlink()
    (folder / "3").symlink_to("/dev/zero")

    Reserve(folder).make(0)
    assert sizes(folder) == [PIECE_BYTES] * PIECES

    for number in range(PIECES - 1):
        os.truncate(folder / str(number), 0)
    assert Reserve(folder).spend()
    assert not (folder / str(PIECES - 1)).exists()
    assert not Reserve(folder).spend()


def test_a_closed_folder_is_opened_again(home):
    def work():
        folder = home / "reserve"
        Reserve(folder).make(0)
        folder.chmod(0)
        assert Reserve(folder).spend()
        Reserve(folder).make(0)
        assert len(sizes(folder)) == PIECES

    as_ordinary_user(home, work)
