"""Broken workers and environments are listed with their reason and do not affect others."""

import json
import shutil

import pytest

from mosaic.catalog.answers import Answers, state_of
from mosaic.model.errors import UnknownWorker

GOOD = "def get_worker_metadata():\n    return {'name': 'Mine'}, {'worker_type': 'mine'}\n"
SCHEMA = GOOD + "def get_worker_schema():\n    return {'properties': {'steps': {'type': 'integer'}}}\n"


@pytest.fixture
def answers(root):
    return Answers(root.answers)


@pytest.fixture
def counted(tmp_path):
    """The body of a worker that writes a line each time it is asked."""
    asked = tmp_path / "asked"
    return f"open({str(asked)!r}, 'a').write('x')\n" + GOOD, lambda: len(asked.read_text())


def test_a_worker_is_asked_once_until_its_environment_changes(catalog, answers, make_environment, install, counted):
    body, times = counted
    site = make_environment("mine")
    install(site, "mine", "my_worker", body)

    first, second = answers.of(catalog.find("mine")), answers.of(catalog.find("mine"))
    install(site, "", "another")

    assert (first, times()) == (second, 1)
    assert answers.of(catalog.find("mine")) == first
    assert times() == 2


def test_an_edited_worker_is_asked_again(catalog, answers, make_environment, install):
    site = make_environment("mine")
    install(site, "mine", "my_worker", GOOD)
    before = answers.of(catalog.find("mine"))

    (site / "my_worker" / "__init__.py").write_text(SCHEMA)

    assert (before.schema, answers.of(catalog.find("mine")).schema) == (
        {},
        {"properties": {"steps": {"type": "integer"}}},
    )


def test_a_broken_worker_is_remembered_with_its_reason_and_does_not_affect_others(
    catalog, answers, make_environment, install
):
    install(make_environment("bad"), "bad", "bad_worker", "import nosuchlibrary")
    install(make_environment("good"), "good", "good_worker", GOOD)
    workers = [catalog.find("bad"), catalog.find("good")]

    answer = answers.of_all(workers)

    assert [answer.problem for answer in answer] == ["ModuleNotFoundError: No module named 'nosuchlibrary'", ""]
    assert answers.remembered(workers[0]) == answer[0]


def test_a_damaged_answer_is_requested_again(catalog, answers, root, make_environment, install):
    install(make_environment("mine"), "mine", "my_worker", GOOD)
    answers.of(catalog.find("mine"))
    (file,) = root.answers.iterdir()
    file.write_text(json.dumps({"state": 1}))

    assert answers.of(catalog.find("mine")).metadata == {"name": "Mine"}


def test_a_missing_interpreter_is_reported(catalog, root, make_environment, install, came_from):
    install(make_environment("mine"), "mine", "my_worker", GOOD)
    came_from(root, "mine", "mine-worker")
    python = root.envs / "mine" / "bin" / "python"
    python.unlink()
    python.symlink_to("/opt/gone/python3.9")

    (broken,) = catalog.broken()

    assert (broken.name, broken.problem) == ("mine", "its interpreter /opt/gone/python3.9 is missing")
    with pytest.raises(
        UnknownWorker, match=r"is missing\. Install it again with: mosaic worker install mine --upgrade"
    ):
        catalog.find("mine")
    assert catalog.find("toy")


def test_environments_without_packages_or_workers_are_reported(catalog, root, make_environment):
    make_environment("empty")
    (root.envs / "half" / "bin").mkdir(parents=True)

    assert {broken.name: broken.problem for broken in catalog.broken()} == {
        "empty": "no package in it registers a worker (mosaic.workers)",
        "half": "it has no bin/python: it was partly deleted, or never finished",
    }


def test_an_environment_without_packages_is_reported_once(catalog, root, make_environment):
    shutil.rmtree(make_environment("mine"))

    assert [(broken.name, broken.problem) for broken in catalog.broken()] == [("mine", "its packages are missing")]
    assert catalog.find("toy")


def test_an_sdk_of_another_minor_version_is_refused(catalog, make_environment, install):
    site = make_environment("mine@jax")
    install(site, "mine", "my_worker", GOOD)
    info = site / "mosaic_sdk-7.3.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mosaic-sdk\nVersion: 7.3.0\n")

    with pytest.raises(
        UnknownWorker, match=r"its mosaic-sdk is 7\.3\.0, .* from its folder: mosaic worker remove mine@jax"
    ):
        catalog.find("mine", "jax")
    assert catalog.find("toy")


def test_two_packages_that_claim_one_name_in_one_environment_are_refused(catalog, make_environment, install):
    site = make_environment("mine")
    install(site, "mine", "my_worker", GOOD)
    install(site, "mine", "other_worker", GOOD)

    with pytest.raises(UnknownWorker, match=r"two packages, \w+ and \w+, both claim this name\. Remove"):
        catalog.find("mine")


def test_an_answer_from_our_own_environment_is_valid_in_every_process(catalog, answers, tmp_path, monkeypatch):
    toy = catalog.find("toy")
    before = state_of(toy)

    monkeypatch.syspath_prepend(str(tmp_path))

    assert state_of(toy) == before


def test_a_worker_with_a_problem_is_asked_again_after_a_while(catalog, answers, make_environment, install, monkeypatch):
    install(make_environment("mine"), "mine", "my_worker", "import nosuchlibrary")
    worker = catalog.find("mine")
    answer = answers.of(worker)
    assert answers.remembered(worker) == answer

    monkeypatch.setattr("mosaic.catalog.answers.PROBLEM_KEPT_S", -1.0)

    assert answers.remembered(worker) is None
