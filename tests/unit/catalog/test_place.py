import subprocess
import sys

import pytest

from mosaic.catalog import place
from mosaic.catalog.installed import Installed, read_installed, size_of
from mosaic.catalog.uv import InstallFailed


@pytest.fixture
def envs(root):
    return root.envs


def folder_with(path, text):
    path.mkdir()
    (path / "mark").write_text(text)
    return path


@pytest.mark.parametrize("can_exchange", [True, False])
def test_a_new_environment_takes_the_place_of_the_old_one(envs, monkeypatch, can_exchange):
    if not can_exchange:
        monkeypatch.setattr(place, "_exchange", lambda one, other: False)
    final, new = folder_with(envs / "toy", "old"), folder_with(envs / ".new-1", "new")

    place.put(new, final)

    assert (final / "mark").read_text() == "new"
    assert [path.name for path in envs.iterdir()] == ["toy"]


def test_a_kill_between_the_two_renames_is_repaired_by_the_next_change(envs):
    folder_with(envs / ".old-toy", "old")
    folder_with(envs / ".new-1", "half")

    with place.changing(envs, print):
        pass

    assert (envs / "toy" / "mark").read_text() == "old"
    assert not list(envs.glob(".[no]*"))


def test_an_environment_that_a_process_runs_in_is_not_touched(envs, make_environment):
    make_environment("used")
    folder = envs / "used"
    child = subprocess.Popen(
        [folder / "bin" / "python", "-c", "print(flush=True); input()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        child.stdout.readline()  # it is running, so its command line is final
        assert place.users_of(folder) == [child.pid]
        with pytest.raises(InstallFailed, match=f"used is in use by 1 process .pid {child.pid}."):
            place.remove(folder)
    finally:
        child.communicate(b"\n")

    place.remove(folder)
    assert not folder.exists()


def test_a_script_in_an_environment_counts_as_using_it(envs):
    folder = folder_with(envs / "used", "")
    child = subprocess.Popen(
        [sys.executable, "-c", "print(flush=True); input()"],
        env={"VIRTUAL_ENV": str(folder)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        child.stdout.readline()  # it is running, so its environment is final
        assert place.users_of(folder) == [child.pid]
    finally:
        child.communicate(b"\n")


def test_how_an_environment_was_made_is_read_back(tmp_path):
    made = Installed("toy", "jax", "toy-worker", "1.0", "/src", "3.11.7", "0.1.0", True, "abc", 12)

    made.write(tmp_path)

    assert read_installed(tmp_path) == made
    assert made.name == "toy@jax"
    assert read_installed(tmp_path / "elsewhere") is None


def test_a_file_with_two_names_counts_once(tmp_path):
    (tmp_path / "one").write_bytes(b"x" * 1000)
    (tmp_path / "two").hardlink_to(tmp_path / "one")

    assert size_of(tmp_path) == 1000
