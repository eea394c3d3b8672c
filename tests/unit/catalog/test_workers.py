import sys
import time
from pathlib import Path

import pytest

from mosaic.catalog.descriptor import describe
from mosaic.catalog.environment import Environment
from mosaic.catalog.workers import Worker
from mosaic.model.errors import UnknownWorker
from mosaic.model.run import WorkerSpec


def test_the_platforms_own_environment_has_the_toy(catalog):
    worker = catalog.find("toy")

    assert (worker.package, worker.module, worker.environment.name) == ("toy_worker", "toy_worker.cli", ".venv")
    assert worker.environment.python == Path(sys.executable)


def test_a_worker_in_envs_is_found_by_name_and_by_module_without_being_imported(
    catalog, root, make_environment, install
):
    install(make_environment("cleanrl"), "cleanrl", "cleanrl_worker")

    by_name, by_module = catalog.find("cleanrl"), catalog.for_module("cleanrl_worker.cli")

    assert by_name == by_module
    assert by_name.version == "1.2.3"
    assert by_name.environment.python == root.envs / "cleanrl" / "bin" / "python"


def test_a_variant_is_an_environment_of_its_own(catalog, make_environment, install):
    install(make_environment("cleanrl"), "cleanrl", "cleanrl_worker")
    install(make_environment("cleanrl@jax"), "cleanrl", "cleanrl_worker", version="2.0")

    assert catalog.find("cleanrl").version == "1.2.3"
    assert catalog.find("cleanrl", "jax").version == "2.0"
    assert catalog.for_module("cleanrl_worker.cli", "jax").environment.name == "cleanrl@jax"
    assert (
        catalog.python_for(WorkerSpec(module="cleanrl_worker.cli", variant="jax")).parent.parent.name == "cleanrl@jax"
    )
    with pytest.raises(UnknownWorker, match="no environment has 'cleanrl_worker@torch'"):
        catalog.for_module("cleanrl_worker.cli", "torch")


def test_a_workers_own_environment_wins_over_one_that_merely_has_its_package(catalog, make_environment, install):
    for name in ("aaa", "toy", "zzz"):
        install(make_environment(name), "toy", "toy_worker")

    assert catalog.find("toy").environment.name == "toy"
    assert catalog.for_module("toy_worker.cli").environment.name == "toy"


def test_of_two_environments_with_one_module_the_named_one_runs(catalog, make_environment, install):
    install(make_environment("alpha"), "alpha", "shared_worker")
    install(make_environment("beta"), "beta", "shared_worker")

    for name in ("alpha", "beta"):
        worker = catalog.find(name)
        spec = WorkerSpec(module=worker.module, name=name)
        assert worker.environment.name == name == catalog.environment_for(spec).name
        assert catalog.for_module("shared_worker.cli", name=name) == worker


def test_an_unnamed_tie_is_refused_with_the_candidates(catalog, make_environment, install):
    install(make_environment("alpha"), "alpha", "shared_worker")
    install(make_environment("beta"), "beta", "shared_worker")
    install(make_environment("plain"), "", "library")
    install(make_environment("other"), "", "library")

    with pytest.raises(UnknownWorker) as workers:
        catalog.for_module("shared_worker.cli")
    with pytest.raises(UnknownWorker) as libraries:
        catalog.for_module("library.train")

    assert str(workers.value) == (
        "metadata.worker.module: several environments have 'shared_worker': alpha, beta. "
        "Name one of them with metadata.worker.name, or: mosaic run alpha, or: mosaic run beta."
    )
    assert str(libraries.value).endswith("'library': other, plain. Name one of them with metadata.worker.name.")
    assert catalog.for_module("library.train", name="plain").environment.name == "plain"


def test_a_worker_in_two_foreign_environments_is_refused_by_its_bare_name(catalog, make_environment, install):
    for environment in ("alpha", "beta"):
        install(make_environment(environment), "guest", "guest_worker")

    with pytest.raises(UnknownWorker, match="Several environments have 'guest': alpha, beta"):
        catalog.find("guest")

    assert catalog.for_module("guest_worker.cli", name="beta").environment.name == "beta"


def test_one_package_may_register_two_workers(catalog, make_environment, install):
    site = make_environment("alpha")
    install(site, "alpha", "shared_worker")
    points = "[mosaic.workers]\nalpha = shared_worker:a\nbeta = shared_worker:b\n"
    (site / "shared_worker-1.2.3.dist-info/entry_points.txt").write_text(points)

    assert catalog.for_module("shared_worker.cli", name="beta").entry_point == "shared_worker:b"
    assert catalog.for_module("shared_worker.cli", name="alpha").entry_point == "shared_worker:a"


def test_a_package_without_an_entry_point_still_runs(catalog, make_environment, install):
    install(make_environment("mine"), "", "my_worker")

    worker = catalog.for_module("my_worker.deep.cli")

    assert (worker.name, worker.module, worker.environment.name) == ("my_worker", "my_worker.deep.cli", "mine")


@pytest.mark.parametrize(
    ("files", "module"),
    [(("cli.py", "__main__.py"), "my_worker.cli"), (("__main__.py",), "my_worker"), ((), "my_worker.cli")],
)
def test_a_package_without_a_command_line_is_started_itself(catalog, make_environment, install, files, module):
    site = make_environment("mine")
    install(site, "mine", "my_worker")
    for name in files:
        (site / "my_worker" / name).touch()

    assert catalog.find("mine").module == module


def test_editable_installs_are_found_in_foreign_environments(catalog, make_environment, tmp_path):
    site = make_environment("mine")
    (tmp_path / "src" / "linked").mkdir(parents=True)
    (tmp_path / "src" / "linked" / "__init__.py").write_text("")
    (site / "linked.pth").write_text(f"# a comment\nimport nothing\n{tmp_path / 'src'}\n")
    finder = f"MAPPING: dict[str, str] = {{'mapped': '{tmp_path / 'elsewhere'}'}}\nNAMESPACES: dict = {{}}\n"
    (site / "__editable___mapped_1_0_finder.py").write_text(finder)

    environment = catalog.environment("mine")

    assert environment.locate("linked") == tmp_path / "src" / "linked"
    assert environment.locate("mapped") == tmp_path / "elsewhere"
    assert environment.locate("missing") is None


def test_the_message_for_an_unknown_worker_has_the_nearest_name_and_what_to_do(catalog):
    with pytest.raises(UnknownWorker) as by_module:
        catalog.for_module("toy_wroker.cli")
    with pytest.raises(UnknownWorker) as by_name:
        catalog.find("tyo")

    assert by_module.value.field == "metadata.worker.module"
    for part in (
        "no environment has 'toy_wroker'",
        "Did you mean 'toy_worker'?",
        "Installed: toy",
    ):
        assert part in str(by_module.value)
    assert "Did you mean 'toy'?" in str(by_name.value)


@pytest.mark.parametrize("module", ["http.server", "os", "tests", "nosuch"])
def test_python_itself_and_stray_folders_are_not_workers(catalog, module):
    with pytest.raises(UnknownWorker):
        catalog.for_module(module)


def test_a_worker_installed_later_is_seen(catalog, make_environment, install):
    site = make_environment("late")
    assert "late" not in [worker.name for worker in catalog.workers()]

    install(site, "late", "late_worker")

    assert catalog.find("late").package == "late_worker"


def test_an_unfinished_environment_is_skipped(catalog, root):
    (root.envs / "broken" / "bin").mkdir(parents=True)
    (root.envs / "stray-file").write_text("")

    assert [environment.name for environment in catalog.environments()] == [".venv"]


def test_a_script_names_its_environment_with_the_variant(catalog, make_environment):
    make_environment("cleanrl@jax")

    assert catalog.python_for(WorkerSpec(script="/x.py")) == Path(sys.executable)
    assert catalog.environment_for(WorkerSpec(script="/x.py", variant="cleanrl@jax")).name == "cleanrl@jax"
    with pytest.raises(UnknownWorker, match=r"metadata\.worker\.variant: .*cleanrl@jax, \.venv"):
        catalog.environment_for(WorkerSpec(script="/x.py", variant="nosuch"))


PAIR = """
from dataclasses import dataclass, field
@dataclass
class Metadata:
    name: str = "Mine"
@dataclass
class Capabilities:
    worker_type: str = "mine"
    paradigms: frozenset = frozenset({"b", "a"})
def get_worker_metadata():
    print("a library talks")
    return Metadata(), Capabilities()
"""


@pytest.fixture
def described(catalog, make_environment, install):
    def describe_body(body, limit_s=30.0):
        install(make_environment("mine"), "mine", "my_worker", body)
        return describe(catalog.find("mine"), limit_s)

    return describe_body


def test_a_descriptor_is_requested_in_the_workers_own_python(described):
    answer = described(PAIR)

    assert answer.problem == ""
    assert answer.metadata == {"name": "Mine"}
    assert answer.capabilities == {"worker_type": "mine", "paradigms": ["a", "b"]}


def test_capabilities_alone_are_a_descriptor_too(described):
    answer = described(PAIR.replace("return Metadata(), Capabilities()", "return Capabilities()"))

    assert (answer.metadata, answer.capabilities["worker_type"]) == ({}, "mine")


def test_a_worker_that_does_not_import_says_why(described):
    assert described("import nosuchlibrary").problem == "ModuleNotFoundError: No module named 'nosuchlibrary'"


def test_a_worker_that_hangs_is_killed_with_all_its_processes(described, tmp_path):
    mark = tmp_path / "pid"
    body = (
        "import subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import signal; signal.pause()'])\n"
        f"open({str(mark)!r}, 'w').write(str(child.pid))\nchild.wait()\n"
    )

    answer = described(body, limit_s=5.0)

    assert answer.problem == "no answer in 5 s"
    wait_until(lambda: not is_running(int(mark.read_text())))


def wait_until(condition, limit_s=30.0):
    end = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def is_running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_worker_without_an_entry_point_or_python_has_no_descriptor():
    nowhere = Environment("gone", Path("/nonexistent/python"))

    assert "no entry point" in describe(Worker("x", "x", "x.cli", "", nowhere)).problem
    assert "does not start" in describe(Worker("x", "x", "x.cli", "", nowhere, "x:f")).problem
