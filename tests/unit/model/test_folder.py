"""Removing a folder that its worker has made as hard to remove as it can."""

import os
import subprocess
from pathlib import Path

import pytest
from oddities import ODDITIES, ORDINARY, as_ordinary_user, plant

from mosaic.model.folder import remove_folder


@pytest.mark.parametrize("oddity", ODDITIES)
def test_whatever_is_in_a_folder_is_removed_with_it(home, oddity):
    run = home / "run"
    run.mkdir()
    plant(run / "file", oddity)

    assert remove_folder(run).problems == []

    assert not run.exists()
    assert os.path.exists("/etc/passwd")


@pytest.mark.parametrize("oddity", ODDITIES)
def test_whatever_has_taken_the_place_of_the_folder_is_removed(home, oddity):
    plant(home / "run", oddity)

    assert remove_folder(home / "run").problems == []

    assert not os.path.lexists(home / "run")


def test_a_folder_that_does_not_exist_is_no_problem(home):
    assert remove_folder(home / "missing").problems == []


@pytest.mark.parametrize("times", [1, 3, 1000])
def test_what_a_process_writes_meanwhile_is_removed_too(home, monkeypatch, times):
    run = home / "run"
    run.mkdir()
    real, writes = Path.rmdir, iter(range(times))

    def rmdir(path):
        if next(writes, None) is not None:
            (path / "tail.cursor").write_text("1")
        real(path)

    monkeypatch.setattr(Path, "rmdir", rmdir)

    problems = remove_folder(run).problems

    assert (run.exists(), problems) == (
        (True, ["run is not empty: a process is writing into it"]) if times > 10 else (False, [])
    )


@pytest.mark.parametrize("modes", [(0, 0, 0), (0o500, 0o500, 0o500), (0o700, 0, 0o700), (0o300, 0o100, 0o400)])
def test_an_ordinary_user_removes_folders_without_permissions(home, modes):
    def work():
        inner = home / "run" / "checkpoints" / "step-1"
        inner.mkdir(parents=True)
        (inner / "weights").write_bytes(bytes(10_000))
        for folder, mode in zip((inner, inner.parent, inner.parents[1]), modes, strict=True):
            folder.chmod(mode)

        removal = remove_folder(home / "run")

        assert removal.problems == []
        assert removal.freed >= 8192
        assert not (home / "run").exists()

    as_ordinary_user(home, work)


def test_folders_nested_deeper_than_a_path_can_name_are_removed(home):
    run, here = home / "run", os.getcwd()
    run.mkdir()
    os.chdir(run)
    try:
        for _ in range(3_000):
            os.mkdir("nested")
            os.chdir("nested")
        with open("deepest", "wb") as file:
            file.write(b"x")
    finally:
        os.chdir(here)

    assert remove_folder(run).problems == []

    assert not run.exists()


def test_no_link_is_followed(home):
    (home / "precious").mkdir()
    (home / "precious" / "file").write_text("precious")
    (home / "run" / "a").mkdir(parents=True)
    (home / "run" / "link").symlink_to(home / "precious")
    (home / "run" / "a" / "up").symlink_to("../..")
    (home / "run" / "a" / "root").symlink_to("/")

    assert remove_folder(home / "run").problems == []

    assert (home / "precious" / "file").read_text() == "precious"
    assert not (home / "run").exists()


@pytest.mark.parametrize("place", ["disk", "videos/disk"])
def test_a_mounted_file_system_is_left_alone_and_named(home, place):
    (home / "precious").mkdir()
    (home / "precious" / "file").write_text("precious")
    (home / "run" / place).mkdir(parents=True)
    code = (
        "import sys; from pathlib import Path; from mosaic.model.folder import remove_folder;"
        "print(remove_folder(Path(sys.argv[1])).problems)"
    )
    script = 'mount --bind "$1" "$2" && exec "$3" -c "$4" "$5"'
    words = [home / "precious", home / "run" / place, os.sys.executable, code, home / "run"]
    # In a mount namespace of its own: nothing has to be unmounted afterwards.
    done = subprocess.run(["unshare", "-rm", "sh", "-c", script, "sh", *words], capture_output=True, text=True)
    if "mount" in done.stderr or "unshare" in done.stderr:
        pytest.skip(done.stderr)

    assert "mounted" in done.stdout, done.stderr
    assert (home / "precious" / "file").read_text() == "precious"
    assert (home / "run").exists()


def test_what_belongs_to_another_user_is_named(home):
    if os.geteuid() != 0:
        pytest.skip("Only root can make a folder of another user.")
    (home / "run" / "theirs").mkdir(parents=True)
    (home / "run" / "theirs" / "file\n").write_text("x")
    os.chown(home / "run", ORDINARY, ORDINARY)

    def work():
        removal = remove_folder(home / "run")
        assert len(removal.problems) == 1
        assert removal.problems[0].startswith("'file\\n' cannot be removed (Permission denied)")

    as_ordinary_user(home, work)
    assert (home / "run" / "theirs").exists()
