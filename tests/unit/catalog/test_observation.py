import sys

import pytest

from mosaic.catalog.answers import Answers
from mosaic.catalog.observation import is_observed, takes_config
from mosaic.catalog.workers import Catalog
from mosaic.model.run import WorkerSpec

DESCRIBES = """
def get_worker_metadata():
    return {{"name": "shy", "observe": {}}}, {{}}
"""


@pytest.fixture
def asked(root):
    def ask(**worker):
        return is_observed(WorkerSpec(**worker), Catalog(root), Answers(root.answers))

    return ask


def test_a_script_is_observed_unless_the_config_says_no(asked):
    assert asked(script="/x/train.py")
    assert asked(module="pkg.train", python=sys.executable)
    assert not asked(script="/x/train.py", observe=False)
    assert asked(module="toy_worker.cli", observe=True)
    assert not asked(module="toy_worker.cli")


@pytest.mark.parametrize("wish", [True, False])
def test_a_worker_is_observed_if_its_metadata_says_so(asked, make_environment, install, root, wish):
    install(make_environment("shy"), "shy", "shy_worker", DESCRIBES.format(wish))
    Answers(root.answers).ask(Catalog(root).find("shy"))

    assert asked(module="shy_worker.cli") is wish


def test_a_worker_always_gets_a_config_and_another_module_if_there_is_one(root, make_environment, install):
    install(make_environment("lib"), "", "lib")
    catalog = Catalog(root)

    assert takes_config(WorkerSpec(module="toy_worker.cli"), catalog)
    assert not takes_config(WorkerSpec(module="lib.train"), catalog)
    assert takes_config(WorkerSpec(module="lib.train", config={"lr": 1}), catalog)
    assert not takes_config(WorkerSpec(module="toy_worker.cli", python=sys.executable), catalog)
