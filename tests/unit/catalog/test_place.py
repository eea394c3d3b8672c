import subprocess
import sys

import pytest

from mosaic.catalog import place
from mosaic.catalog.answers import Answers
from mosaic.catalog.install import InstallRequest, remove
from mosaic.catalog.install import install as install_worker
from mosaic.catalog.installed import Installed, read_installed, size_of
from mosaic.catalog.progress import Progress
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


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../trainer", "toy/../toy", "toy/", "./toy", "toy\0", ".lock", "*", "to?"]
)
def test_only_an_entry_of_the_folder_is_removed(root, name):
    folder_with(root.envs / "toy", "kept")

    with pytest.raises(InstallFailed, match="There is no environment"):
        remove(root, name, Progress())

    assert (root.envs / "toy" / "mark").read_text() == "kept"
    assert root.trainer.is_dir()


def test_of_a_linked_environment_only_the_link_is_removed(root, tmp_path):
    elsewhere = folder_with(tmp_path / "elsewhere", "kept")
    (root.envs / "linked").symlink_to(elsewhere)
    (root.envs / ".new-7").symlink_to(elsewhere)  # as if planted for the next change

    remove(root, "linked", Progress())

    assert (elsewhere / "mark").read_text() == "kept"
    assert [path.name for path in root.envs.iterdir()] == [".lock"]


@pytest.mark.parametrize("target", ["elsewhere", "nowhere"])
def test_a_new_environment_replaces_a_link_and_not_what_it_points_to(envs, tmp_path, target):
    elsewhere = folder_with(tmp_path / "elsewhere", "kept")
    (envs / "toy").symlink_to(tmp_path / target)

    place.put(folder_with(envs / ".new-1", "new"), envs / "toy")

    assert (elsewhere / "mark").read_text() == "kept"
    assert not (envs / "toy").is_symlink()
    assert (envs / "toy" / "mark").read_text() == "new"
    assert [path.name for path in envs.iterdir()] == ["toy"]


@pytest.mark.parametrize("name", ["../../x", "", "..", "toy@../x", "/tmp/x"])
def test_no_environment_is_created_outside_the_folder(envs, name):
    with pytest.raises(InstallFailed, match="is not a valid name"):
        place.folder_of(envs, name)


@pytest.mark.parametrize("name", ["../../x", "a/b", ".hidden", "x" * 101])
def test_an_entry_point_that_is_no_name_for_a_folder_is_refused(root, tmp_path, name):
    package = tmp_path / "odd_worker"
    package.mkdir()
    text = f'[project]\nname = "odd"\n[project.entry-points."mosaic.workers"]\n"{name}" = "odd:get"\n'
    (package / "pyproject.toml").write_text(text)

    with pytest.raises(InstallFailed, match="is not a valid name for a worker"):
        install_worker(root, InstallRequest(str(package)), Progress())

    assert list(root.envs.iterdir()) == []


@pytest.mark.parametrize(
    "request_", [InstallRequest("toy", "../../x"), InstallRequest("--index-url=x"), InstallRequest("toy", python="-c")]
)
def test_a_request_that_is_a_path_or_an_option_is_refused(root, request_):
    with pytest.raises(InstallFailed, match="is not a"):
        install_worker(root, request_, Progress())

    assert list(root.envs.iterdir()) == []


def test_the_cached_answer_of_a_worker_stays_in_its_folder(root, catalog, make_environment, install):
    install(make_environment("odd"), "../../../escaped", "odd_worker")
    worker = next(worker for worker in catalog.workers() if worker.package == "odd_worker")

    Answers(root.answers).ask(worker)

    assert "is not a valid name" in worker.problem
    assert len(list(root.answers.iterdir())) == 1
    assert not list(root.path.parent.rglob("escaped*"))
