"""`mosaic worker install --with … -r …`: what a worker needs and does not declare; and several names at once."""

import json

import pytest
from tiny_wheel import write_wheel
from tiny_worker import DESCRIBES

from mosaic.model.rundir import StateRoot


@pytest.fixture
def wheels(tmp_path):
    return {
        name: write_wheel(tmp_path / "wheels", name, "1.0", {f"{name}.py": f"VALUE = {name!r}\n"})
        for name in ("lacking", "listed")
    }


def test_a_worker_that_declares_too_little_is_installed_with_what_it_lacks(
    mosaic, home, write_worker, wheels, tmp_path
):
    folder = write_worker(init=f"import lacking, listed\n{DESCRIBES}")
    (tmp_path / "more.txt").write_text(f"{wheels['listed']}\n")
    assert "No module named 'lacking'" in mosaic("worker", "install", folder, code=1)

    options = ("--with", wheels["lacking"], "-r", tmp_path / "more.txt")
    made = json.loads(mosaic("worker", "install", folder, *options, "--json"))

    assert (made["asked_packages"], made["asked_files"]) == ([str(wheels["lacking"])], [str(tmp_path / "more.txt")])
    # By its name it is the same again, and an upgrade keeps what it needs.
    assert "nothing has changed" in mosaic("worker", "install", "tiny")
    assert "is installed" in mosaic("worker", "install", "tiny", "--upgrade")


def test_packages_are_added_to_a_lock_file(mosaic, home, write_worker, wheels):
    folder = write_worker(init=f"import lacking, listed\n{DESCRIBES}")
    (folder / "requirements").mkdir()
    (folder / "requirements/default.txt").write_text(f"{wheels['listed']}\n")

    made = json.loads(mosaic("worker", "install", folder, "--with", wheels["lacking"], "--json"))

    assert made["locked"]


def test_several_workers_are_installed_and_one_that_fails_stops_no_other(mosaic, home, write_worker):
    good, bad, last = (
        write_worker(name=name, init=init) for name, init in [("a", DESCRIBES), ("b", "1/0"), ("c", DESCRIBES)]
    )

    error = mosaic("worker", "install", good, bad, last, code=1)

    assert f"Not installed: {bad}. The reasons are above." in error
    assert "ZeroDivisionError" in error
    assert sorted(path.name for path in StateRoot(home).envs.glob("[!.]*")) == ["a", "c"]
    both = json.loads(mosaic("worker", "install", "a", "c", "--json"))
    assert [(made["name"], made["is_new"]) for made in both] == [("a", False), ("c", False)]
