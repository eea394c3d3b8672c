import os
from pathlib import Path

import pytest

from mosaic.model.errors import BadRoot
from mosaic.model.home import refuse_odd, state_home
from mosaic.model.rundir import StateRoot


@pytest.mark.parametrize("name", ["a#b", "a?b", "a%41b", "a b", "jörg", "a,b:c"])
def test_a_printable_name_is_taken_literally(tmp_path, name):
    assert state_home({"MOSAIC_HOME": str(tmp_path / name)}) == tmp_path / name


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("a\nb", "control character"),
        ("a\x1b[2Jb", "control character"),
        (os.fsdecode(b"a\xffb"), "not valid UTF-8"),
        ("x" * 2000, "over 1024 bytes"),
    ],
)
def test_a_name_that_cannot_be_printed_is_refused(tmp_path, name, why):
    with pytest.raises(BadRoot, match=why) as refused:
        state_home({"MOSAIC_HOME": str(tmp_path / name)})

    assert str(refused.value).isprintable()
    assert "MOSAIC_HOME" in str(refused.value)


@pytest.mark.parametrize("below", ["", "state"])
def test_a_file_is_refused(tmp_path, below):
    (tmp_path / "notes.txt").write_text("")

    with pytest.raises(BadRoot, match="not a folder but a file"):
        refuse_odd(tmp_path / "notes.txt" / below)


def test_a_relative_home_is_relative_to_the_working_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    assert state_home({"MOSAIC_HOME": "state"}) == tmp_path / "state"


def test_a_relative_xdg_folder_is_ignored():
    # The daemon starts in another working folder, where it would be another path.
    assert state_home({"XDG_STATE_HOME": "state"}) == Path.home() / ".local" / "state" / "mosaic"
    assert state_home({"XDG_STATE_HOME": "/s"}) == Path("/s/mosaic")


def test_an_unknown_user_is_named():
    with pytest.raises(BadRoot, match="~nobody-here-"):
        state_home({"MOSAIC_HOME": "~nobody-here-/state"})


def test_the_root_of_the_environment_is_checked(monkeypatch, tmp_path):
    monkeypatch.setenv("MOSAIC_HOME", f"{tmp_path}/a\nb")

    with pytest.raises(BadRoot):
        StateRoot.from_environment()
