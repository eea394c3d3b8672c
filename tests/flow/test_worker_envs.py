"""Worker environments with the real uv: either complete or absent, each with its own versions, under one daemon."""

import contextlib
import json
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from lab import alive, wait_until
from tiny_wheel import write_wheel
from tiny_worker import DESCRIBES

from mosaic import __version__
from mosaic.model.rundir import StateRoot
from mosaic.model.states import RunState

REPO = Path(__file__).parents[2]
MOSAIC = Path(sys.executable).parent / "mosaic"
S = RunState


def listed(mosaic, name):
    return next(worker for worker in json.loads(mosaic("worker", "list", "--json")) if worker["name"] == name)


def new_body(home):
    """Code that no earlier test has used, so that its wheel is built and not taken from the cache."""
    return f"home = {str(home)!r}"


def envs_of(home):
    return sorted(path.name for path in StateRoot(home).envs.glob("*") if path.name not in (".lock", ".answers"))


def test_a_worker_that_follows_the_guide_installs_from_its_folder_and_runs(mosaic, lab, home, tmp_path):
    folder = tmp_path / "my_worker"
    shutil.copytree(REPO / "tests/fixtures/my_worker", folder)
    (folder / "pyproject.toml").write_text(
        '[project]\nname = "my-worker"\nversion = "1.0.0"\nrequires-python = ">=3.10"\n'
        '[project.entry-points."mosaic.workers"]\nmyworker = "my_worker:get_worker_metadata"\n'
        '[build-system]\nrequires = ["setuptools>=64"]\nbuild-backend = "setuptools.build_meta"\n'
    )

    mosaic("worker", "install", folder)
    run = lab.submit_worker({"module": "my_worker.cli", "config": {"total_steps": 20}})

    assert lab.wait_until_over(run).state is S.TERMINATED
    assert len(lab.events(run, "step")) == 20
    frames = {"enabled": True, "slot": 0, "video_mode": "single", "grid_limit": 4}
    assert lab.events(run, "lifecycle")[0]["payload"]["fastlane"] == frames
    assert json.loads(lab.rundir(run).launch.read_text())["argv"][0] == str(home / "envs/myworker/bin/python")
    worker = listed(mosaic, "myworker")
    assert (worker["version"], worker["problem"], worker["sdk_version"]) == ("1.0.0", "", f"{__version__}+mosaic")
    assert worker["size_bytes"] > 10_000


def test_a_worker_in_two_environments_is_listed_twice_and_its_own_one_is_used(mosaic, lab, home):
    mosaic("worker", "install", "toy")

    rows = [line for line in mosaic("worker", "list").splitlines() if line.startswith("toy ")]
    run = lab.submit(steps=3)

    assert ["MOSAIC's own (not used)" in row for row in rows].count(True) == 1
    assert len(rows) == 2
    assert lab.wait_until_over(run).state is S.TERMINATED
    assert json.loads(lab.rundir(run).launch.read_text())["argv"][0] == str(home / "envs/toy/bin/python")


def test_installing_again_does_nothing_until_the_source_changes(mosaic, write_worker):
    folder = write_worker()
    first = json.loads(mosaic("worker", "install", folder, "--json"))

    again = json.loads(mosaic("worker", "install", folder, "--json"))
    (folder / "tiny_worker" / "extra.py").write_text("x = 1\n")
    changed = json.loads(mosaic("worker", "install", folder, "--json"))

    assert [first["is_new"], again["is_new"], changed["is_new"]] == [True, False, True]


def test_compiled_code_is_removed_with_the_environment_it_was_compiled_for(mosaic, home, write_worker):
    compiled = StateRoot(home).cache / "tiny" / "torch_extensions"
    folder = write_worker()
    mosaic("worker", "install", folder)

    compiled.mkdir(parents=True)
    mosaic("worker", "install", folder)
    kept = compiled.exists()
    mosaic("worker", "install", write_worker(body="x = 2"))
    gone = not compiled.exists()
    compiled.mkdir(parents=True)
    mosaic("worker", "remove", "tiny")

    assert (kept, gone, compiled.exists()) == (True, True, False)


def test_installing_again_repairs_a_partly_deleted_environment(mosaic, home, write_worker):
    folder = write_worker()
    mosaic("worker", "install", folder)
    shutil.rmtree(next((home / "envs/tiny/lib").glob("python3*/site-packages")))
    assert listed(mosaic, "tiny")["problem"] == "its packages are missing"

    mosaic("worker", "install", folder)

    assert listed(mosaic, "tiny")["problem"] == ""


def test_a_failed_install_leaves_the_old_environment_unchanged(mosaic, lab, home, write_worker):
    mosaic("worker", "install", write_worker())

    output = mosaic("worker", "install", write_worker(needs=["mosaic-sdk==99"]), code=1)

    assert "tiny_worker was not installed: its requirements cannot be met together" in output
    assert listed(mosaic, "tiny")["problem"] == ""
    assert envs_of(home) == ["tiny"]
    run = lab.submit_worker({"module": "tiny_worker.cli"})
    assert lab.wait_until_over(run).state is S.TERMINATED


def test_an_install_without_network_says_so(mosaic, home, write_worker):
    folder = write_worker(needs=["no-such-package-of-mosaic"])
    nowhere = {"UV_DEFAULT_INDEX": "http://127.0.0.1:9/simple", "UV_FIND_LINKS": "", "PIP_FIND_LINKS": ""}

    output = mosaic(
        "worker", "install", folder, code=1, UV_CACHE_DIR=str(home / "cache"), UV_HTTP_RETRIES="0", **nowhere
    )

    assert "the package index cannot be reached" in output
    assert "Traceback" not in output
    assert envs_of(home) == []


UNCHECKABLE = """
def get_worker_metadata():
    return {}, {}

def get_worker_schema():
    return {"properties": {"envs": {"type": "integer", "multipleOf": 8}}}
"""


@pytest.mark.parametrize(
    ("worker", "words"),
    [
        ({"points": False}, "does not provide a worker. Add to its pyproject.toml"),
        ({"init": "import nosuchlibrary\n"}, "does not describe itself: ModuleNotFoundError: No module named 'nosuch"),
        ({"init": "x = 1\n"}, "does not describe itself: AttributeError"),
        ({"init": UNCHECKABLE}, "MOSAIC does not support the keyword 'multipleOf' in 'envs'; remove it"),
    ],
)
def test_a_package_without_a_worker_is_not_installed(mosaic, home, write_worker, worker, words):
    output = mosaic("worker", "install", write_worker(**worker), code=1)

    assert words in output
    assert envs_of(home) == []


def test_an_install_prints_its_phases_and_no_more(home, write_worker):
    folder = write_worker(needs=["iniconfig==2.0.0"], body=new_body(home))
    (folder / "requirements").mkdir()
    (folder / "requirements" / "default.txt").write_text("iniconfig==2.0.0\n")
    env = {**os.environ, "MOSAIC_HOME": str(home)}

    output = subprocess.run([MOSAIC, "worker", "install", folder], env=env, capture_output=True, text=True, check=True)

    phases = [line.strip() for line in output.stderr.splitlines()]
    assert phases[0] == "Building tiny_worker …"
    wanted = ["Creating an environment …", "Resolving the packages of requirements/default.txt …"]
    wanted += ["Collecting 1 package of requirements/default.txt …", "Installing the worker and mosaic-sdk …"]
    wanted += ["Checking that every requirement is met …", "Asking the worker to describe itself …"]
    assert [phase for phase in phases if phase in wanted] == wanted
    assert not [phase for phase in phases if phase.startswith(("+", "Using Python", "Resolved"))]


def test_a_live_line_on_a_terminal_shows_the_same(home, write_worker):
    ours, theirs = pty.openpty()
    env = {**os.environ, "MOSAIC_HOME": str(home), "TERM": "xterm"}
    command = [MOSAIC, "worker", "install", write_worker(body=new_body(home))]

    child = subprocess.Popen(command, env=env, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    output = read_all(ours).decode()

    assert child.wait() == 0

    assert "Building tiny_worker" in output
    assert "\x1b[" in output
    assert "Worker tiny (tiny-worker 1.0" in output


def test_requirements_that_are_known_to_be_stale_are_not_shown(home, write_worker):
    wheel = write_wheel(home / "wheels", "stale", "1.0", {"stale.py": ""}, needs=["iniconfig>=99"])
    folder = write_worker(needs=["iniconfig"])
    (folder / "requirements").mkdir()
    lock = f"# stale pins: stale\niniconfig==2.0.0\nstale @ {wheel.as_uri()}\n"
    (folder / "requirements" / "default.txt").write_text(lock)
    env = {**os.environ, "MOSAIC_HOME": str(home)}

    output = subprocess.run([MOSAIC, "worker", "install", folder], env=env, capture_output=True, text=True)

    assert output.returncode == 0, output.stderr
    assert "requires" not in output.stderr
    assert "incompatib" not in output.stderr


def test_a_build_backends_own_error_is_shown(mosaic, home, write_worker):
    folder = write_worker()
    (folder / "tiny_build.py").write_text(
        "import sys\n"
        "def build_wheel(*arguments):\n"
        "    print('looking for cuda.h', file=sys.stderr)\n"
        "    raise RuntimeError('the engine needs cuda.h, set CUDA_HOME')\n"
    )

    output = mosaic("worker", "install", folder, code=1)

    assert "looking for cuda.h" in output
    assert output.splitlines()[-1] == (
        f"mosaic: {folder} was not installed: a package cannot be built "
        "(RuntimeError: the engine needs cuda.h, set CUDA_HOME)."
    )
    assert envs_of(home) == []


def test_two_packages_with_one_worker_name_do_not_replace_each_other(mosaic, write_worker):
    mosaic("worker", "install", write_worker())

    output = mosaic("worker", "install", write_worker(package="impostor", folder="other"), code=1)

    assert "the worker 'tiny' already belongs to another package, tiny-worker" in output
    assert "mosaic worker remove tiny" in output


def test_a_path_a_python_and_a_variant_that_do_not_exist_are_named(mosaic, write_worker):
    folder = write_worker()

    assert "There is no folder /nowhere/at_all" in mosaic("worker", "install", "/nowhere/at_all", code=1)
    assert "Python '3.99' is not installed here" in mosaic("worker", "install", folder, "--python", "3.99", code=1)
    assert "has no variant 'jax'. It has: none" in mosaic("worker", "install", folder, "--variant", "jax", code=1)
    assert "There is no environment 'tiny'" in mosaic("worker", "remove", "tiny", code=1)


def test_a_killed_install_leaves_the_old_environment_and_the_next_one_cleans_up(mosaic, home, write_worker):
    mosaic("worker", "install", write_worker())
    folder = write_worker(init="import time\nopen('{}', 'w').close()\ntime.sleep(3600)\n".format(home / "asked"))
    env = {**os.environ, "MOSAIC_HOME": str(home)}
    child = subprocess.Popen([MOSAIC, "worker", "install", folder], env=env, start_new_session=True)
    try:
        wait_until((home / "asked").exists, words="the new environment to be asked")
        assert any(name.startswith(".new-") for name in envs_of(home))
    finally:
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
        _end_those_of(home)

    assert listed(mosaic, "tiny")["problem"] == ""
    mosaic("worker", "install", write_worker(body="x = 2"))
    assert envs_of(home) == ["tiny"]


def test_an_environment_in_use_is_neither_replaced_nor_removed(mosaic, lab, write_worker):
    mosaic("worker", "install", write_worker(body="import signal; signal.pause()"))
    run = lab.submit_worker({"module": "tiny_worker.cli"})
    lab.wait_for(run, S.EXECUTING)

    replaced = mosaic("worker", "install", write_worker(body="x = 2"), code=1)
    removed = mosaic("worker", "remove", "tiny", code=1)

    assert "is in use by" in replaced
    assert "is in use by" in removed
    lab.client.cancel_run(run.run_id)
    lab.wait_until_over(run)
    mosaic("worker", "remove", "tiny")
    assert not [worker for worker in json.loads(mosaic("worker", "list", "--json")) if worker["name"] == "tiny"]


def test_workers_with_conflicting_versions_run_at_the_same_time(mosaic, lab, home, write_worker):
    wait = "import os, time\n    while not os.path.exists({!r}): time.sleep(0.01)".format(str(home / "go"))
    for name, version in (("old", "==1.26.4"), ("new", ">=2")):
        major = "int(numpy.__version__.split('.')[0])"
        worker = write_worker(name, needs=[f"numpy{version}"], imports="import numpy", body=wait, version=major)
        mosaic("worker", "install", worker)

    runs = [lab.submit_worker({"module": f"{name}_worker.cli"}) for name in ("old", "new")]
    for run in runs:
        lab.wait_for(run, S.EXECUTING)
    (home / "go").touch()

    assert [lab.wait_until_over(run).state for run in runs] == [S.TERMINATED, S.TERMINATED]
    assert [lab.events(run, "metric")[0]["value"] for run in runs] == [1.0, 2.0]


def test_a_lock_file_decides_the_versions_and_a_variant_is_a_second_environment(mosaic, home, write_worker):
    folder = write_worker(needs=["iniconfig"])
    (folder / "requirements").mkdir()
    (folder / "requirements" / "default.txt").write_text("iniconfig==2.0.0\n")
    (folder / "requirements" / "newer.txt").write_text("iniconfig==2.1.0\n")

    mosaic("worker", "install", folder)
    mosaic("worker", "install", folder, "--variant", "newer")

    assert envs_of(home) == ["tiny", "tiny@newer"]
    assert list((home / "envs/tiny/lib").glob("python3*/site-packages/iniconfig-2.0.0.dist-info"))
    assert list((home / "envs/tiny@newer/lib").glob("python3*/site-packages/iniconfig-2.1.0.dist-info"))


@pytest.mark.parametrize(
    ("lock", "words"),
    [
        ("# nothing\n", "requires `iniconfig`, but it's not installed"),
        ("iniconfig==2.0.0\niniconfig==2.1.0\n", "its requirements cannot be met together"),
        (f"iniconfig==2.0.0 --hash=sha256:{'0' * 64}\n", "a package does not match its checksum"),
    ],
)
def test_a_lock_file_that_cannot_be_used_is_named_and_the_old_environment_stays(
    mosaic, lab, home, write_worker, lock, words
):
    mosaic("worker", "install", write_worker())
    folder = write_worker(needs=["iniconfig"])
    (folder / "requirements").mkdir()
    (folder / "requirements" / "default.txt").write_text(lock)

    output = mosaic("worker", "install", folder, code=1).splitlines()[-1]

    assert "its lock file requirements/default.txt cannot be used: " in output
    assert words in output
    assert "Lock again with: uv pip compile" in output
    assert envs_of(home) == ["tiny"]
    assert lab.wait_until_over(lab.submit_worker({"module": "tiny_worker.cli"})).state is S.TERMINATED


def test_installing_by_name_reinstalls_a_worker_from_its_original_source(mosaic, home, write_worker):
    folder = write_worker()
    mosaic("worker", "install", folder, "--python", sys.executable)
    python = home / "envs/tiny/bin/python"
    python.unlink()
    python.symlink_to("/opt/gone/python3")
    assert "mosaic worker install tiny --upgrade" in mosaic("run", "tiny", code=1)

    made = json.loads(mosaic("worker", "install", "tiny", "--upgrade", "--json"))

    assert (made["source"], made["asked_python"]) == (str(folder), sys.executable)
    assert listed(mosaic, "tiny")["problem"] == ""


def test_an_environment_that_was_deleted_by_hand_is_reported_and_the_others_work(mosaic, lab, home, write_worker):
    mosaic("worker", "install", write_worker())
    assert lab.wait_until_over(lab.submit_worker({"module": "tiny_worker.cli"})).state is S.TERMINATED
    shutil.rmtree(home / "envs/tiny")

    by_name = mosaic("run", "tiny", code=1)
    with pytest.raises(Exception, match=r"metadata\.worker\.module: no environment has 'tiny_worker'"):
        lab.submit_worker({"module": "tiny_worker.cli"})

    assert "Worker 'tiny' is not installed" in by_name
    assert lab.wait_until_over(lab.submit(steps=3)).state is S.TERMINATED


SETTINGS = (
    DESCRIBES
    + """
def get_worker_schema():
    rate = {"type": "number", "exclusiveMinimum": 0, "description": "how fast"}
    params = {"type": "object", "properties": {"rate": rate}, "additionalProperties": False}
    extras = {"type": "object", "properties": {"algo_params": params}}
    examples = {"x-mosaic-examples": ["steps=9 rate=2"]}
    properties = {"steps": {"type": "integer", "default": 7}, "extras": extras}
    return {"properties": properties, "additionalProperties": False, **examples}
"""
)


def test_one_schema_drives_help_the_place_of_a_key_and_the_check_at_submit(mosaic, lab, write_worker):
    mosaic("worker", "install", write_worker(init=SETTINGS))

    helped = mosaic("run", "tiny", "--help")
    run = json.loads(mosaic("run", "tiny", "rate=0.5", "steps=3", "--json"))
    refused = mosaic("run", "tiny", "rate=-1", code=1)
    with pytest.raises(Exception, match=r"metadata\.worker\.config\.step: .* Did you mean 'steps'"):
        lab.submit_worker({"module": "tiny_worker.cli", "config": {"step": 3}})

    assert re.search(r"rate +number > 0 +how fast", helped)
    assert re.search(r"steps +integer +7", helped)
    assert "  mosaic run tiny steps=9 rate=2\n" in helped
    config = json.loads(lab.root.worker_file(run["run_id"]).read_text())
    assert (config["steps"], config["extras"]) == (3, {"algo_params": {"rate": 0.5}})
    assert "extras.algo_params.rate: must be more than 0, not -1" in refused


def test_the_daemon_requests_a_schema_that_is_not_cached(mosaic, lab, write_worker):
    mosaic("worker", "install", write_worker(init=SETTINGS))
    for answer in lab.root.answers.glob("tiny-*"):
        answer.unlink()

    with pytest.raises(Exception, match=r"metadata\.worker\.config\.steps: must be an integer"):
        lab.submit_worker({"module": "tiny_worker.cli", "config": {"steps": "many"}})
    run = lab.submit_worker({"module": "tiny_worker.cli", "config": {"steps": 3}})

    end = lab.wait_until_over(run)
    assert (end.state, end.history[0].reason) == (S.TERMINATED, "")


def test_a_run_whose_worker_reports_no_schema_is_unchecked_and_says_so(mosaic, lab, home, write_worker):
    mosaic("worker", "install", write_worker(init=SETTINGS))
    (package,) = (home / "envs/tiny/lib").glob("python3*/site-packages/tiny_worker/__init__.py")
    package.unlink()  # a link into uv's cache, maybe
    package.write_text(DESCRIBES + "def get_worker_schema():\n    raise RuntimeError('not today')\n")

    run = lab.submit_worker({"module": "tiny_worker.cli", "config": {"steps": "many"}})

    end = lab.wait_until_over(run)
    assert end.state is S.TERMINATED
    assert "settings were not checked" in end.history[0].reason
    assert "not today" in mosaic("show", run.run_id)


def test_a_third_party_script_runs_unmodified_in_the_environment_of_a_worker(mosaic, lab, home, tmp_path, write_worker):
    mosaic("worker", "install", write_worker(needs=["iniconfig==2.0.0"]))
    script = tmp_path / "train.py"
    script.write_text(
        "import argparse, importlib.metadata, sys\n"
        "parser = argparse.ArgumentParser()\n"
        "parser.add_argument('--lr', type=float)\n"
        "parser.add_argument('words', nargs='*')\n"
        "args = parser.parse_args()\n"
        "print('lr', args.lr, args.words, importlib.metadata.version('iniconfig'), sys.prefix)\n"
    )

    run = json.loads(mosaic("run", "--script", script, "--env-of", "tiny", "--json", "--", "--lr", "0.5", "a=b"))

    assert (run["state"], run["area"]) == ("TERMINATED", "custom_scripts")
    stored = lab.text(lab.client.get_run(run["run_id"])).decode()
    assert stored == f"lr 0.5 ['a=b'] 2.0.0 {home / 'envs/tiny'}\n"


def test_a_run_line_names_a_worker_or_a_script(mosaic):
    assert "name a worker" in mosaic("run", code=2)
    assert mosaic("run", "nosuch", "--help", code=1).startswith("mosaic: Worker 'nosuch' is not installed")
    assert "Worker 'nosuch' is not installed" in mosaic("run", "--script", "/x.py", "--env-of", "nosuch", code=1)
    assert "--env-of needs a program of your own" in mosaic("run", "toy", "--env-of", "toy", code=2)


def read_all(terminal):
    """Read until no process has the other end open."""
    pieces = []
    with contextlib.suppress(OSError):
        while data := os.read(terminal, 65536):
            pieces.append(data)
    os.close(terminal)
    return b"".join(pieces)


def _end_those_of(home):
    mark = str(home).encode()
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            ours = mark in (entry / "cmdline").read_bytes() or mark in (entry / "environ").read_bytes()
        except OSError:
            continue
        if ours and int(entry.name) != os.getpid() and alive(int(entry.name)):
            os.kill(int(entry.name), signal.SIGKILL)
