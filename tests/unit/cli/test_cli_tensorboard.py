"""The folder of links for TensorBoard, and the environment that runs it."""

import os
import socket

import pytest

from mosaic.client import tensorboard
from mosaic.client.tensorboard import find_python, free_port, labelled, link_runs
from mosaic.model.errors import MosaicError
from mosaic.model.rundir import RunDir


@pytest.fixture
def make_run_in(root, make_run):
    def make(name, run_id, worker_name="toy"):
        rundir = RunDir(root.area("runs") / run_id)
        rundir.make()
        return make_run(name=name, run_id=run_id, run_dir=str(rundir.path), worker_name=worker_name)

    return make


@pytest.fixture
def make_environment(root):
    def make(name, *packages):
        site = root.envs / name / "lib/python3.11/site-packages"
        for package in packages:
            (site / package).mkdir(parents=True)
            (site / package / "__init__.py").touch()
        python = root.envs / name / "bin/python"
        python.parent.mkdir(parents=True)
        python.write_text("#!/bin/sh\n")
        python.chmod(0o700)
        return python

    return make


def test_every_run_is_a_link_with_its_name(root, make_run_in):
    runs = [make_run_in("ppo, seed 1", "01JCQ5W2ZK8M3N4P5Q6R7S8T9V"), make_run_in("", "01JCQ5W2ZK8M4N4P5Q6R7S8T9V")]

    folder = link_runs(root, runs)

    assert sorted(os.listdir(folder)) == ["ppo-seed-1-01JCQ5W2ZK8M3", "toy-01JCQ5W2ZK8M4"]
    assert (folder / "toy-01JCQ5W2ZK8M4").resolve() == RunDir(runs[1].run_dir).tensorboard
    assert folder.is_relative_to(root.path / "cache")


def test_linking_again_updates_only_what_changed(root, make_run_in):
    first = make_run_in("old name", "01JCQ5W2ZK8M3N4P5Q6R7S8T9V")
    folder = link_runs(root, [first])
    (folder / "a file of another program").touch()

    again = link_runs(root, [make_run_in("new name", first.run_id)])

    assert again == folder
    assert sorted(os.listdir(folder)) == ["a file of another program", "new-name-01JCQ5W2ZK8M3"]


@pytest.mark.parametrize(
    ("name", "label"),
    [("../../etc", "etc"), ("a/b\x1b[31m", "a-b-31m"), ("…", "run"), ("x" * 200, "x" * 60), ("lr=3e-4", "lr=3e-4")],
)
def test_a_name_cannot_leave_the_folder(make_run, name, label):
    run = make_run(name=name)

    assert list(labelled([run])) == [f"{label}-{run.run_id[:13]}"]


def test_runs_of_the_same_name_and_time_get_different_links(make_run):
    runs = [make_run(run_id=f"01JCQ5W2ZK8M3N4P5Q6R7S8T9{letter}") for letter in "VW"]

    assert len(labelled(runs)) == 2


def test_the_environment_of_the_runs_own_worker_is_preferred(root, make_run, make_environment):
    make_environment("another", "tensorboard")
    own = make_environment("sb3", "tensorboard")
    make_environment("zzz", "nothing")

    assert find_python(root, [make_run(worker_name="sb3")]) == own


def test_without_tensorboard_the_error_names_what_to_install(root, make_run, make_environment, monkeypatch):
    make_environment("dreamer", "tensorboardX")

    with pytest.raises(MosaicError, match=r"installed: dreamer.*mosaic worker install cleanrl"):
        find_python(root, [make_run()])


def test_a_port_in_use_is_skipped(monkeypatch):
    with socket.socket() as taken:
        taken.bind(("localhost", 0))
        taken.listen()
        monkeypatch.setattr(tensorboard, "FIRST_PORT", taken.getsockname()[1])

        assert free_port() > taken.getsockname()[1]
