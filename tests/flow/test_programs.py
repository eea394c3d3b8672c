"""`mosaic run python FILE …`: a program that knows nothing of MOSAIC, in an environment without any of it."""

import json
import os
import subprocess
import venv
from pathlib import Path

import pytest

REPO = Path(__file__).parents[2]
FRAMES = REPO / ".venv-frames/bin/python"

TRAIN = """
import json, os, sys, time
import helper
print("argv", sys.argv[1:], "cwd", os.getcwd(), "observe", os.environ.get("MOSAIC_OBSERVE"), helper.NAME)
print("data", open("data/a.csv").read(), open("config/ppo.yaml").read())
open("model.zip", "w").write("weights")
os.makedirs("runs/first")
for step in range(5):
    print(json.dumps({"event_type": "metric", "name": "loss", "value": 0.5, "step": step}))
payload = {"what": "metrics", "by": "a.Writer"}
print(json.dumps({"event": "observing", "run_id": os.environ["MOSAIC_RUN_ID"], "payload": payload}))
if "--fail" in sys.argv:
    raise ValueError("the learning rate is negative")
if "--wait" in sys.argv:
    print("waiting", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def project(tmp_path):
    """A project with a script, data, an earlier run of a logger, and an environment with nothing in it."""
    for name, text in {
        "train.py": TRAIN,
        "helper.py": "NAME = 'beside'\n",
        "data/a.csv": "1,2",
        "config/ppo.yaml": "lr: 1",
        "runs/old/events": "old",
        "pkg/__init__.py": "",
        "pkg/train.py": "import sys; from pkg import other; print('module', sys.argv[1:], other.NAME)",
        "pkg/other.py": "NAME = 'relative'",
        ".git/HEAD": "",
    }.items():
        path = tmp_path / "project" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    venv.create(tmp_path / "project/.venv", symlinks=True, with_pip=False)
    return tmp_path / "project"


@pytest.fixture
def run(lab, project):
    """Runs the command in the project's folder; returns its exit code and its output."""

    def run(*words, **environment):
        kept = {name: value for name, value in os.environ.items() if name not in ("VIRTUAL_ENV", "CONDA_PREFIX")}
        env = {**kept, "MOSAIC_HOME": str(lab.root.path), **environment}
        command = [REPO / ".venv/bin/mosaic", *map(str, words)]
        done = subprocess.run(command, capture_output=True, text=True, env=env, cwd=project, timeout=120)
        return done.returncode, done.stdout + done.stderr

    return run


def newest(lab):
    return lab.client.get_run("last")


def test_a_script_runs_unmodified_in_the_environment_of_its_project(run, lab, project):
    code, output = run("run", "--name", "first", "python", "train.py", "--lr", "3e-4", "--name", "x")

    found = newest(lab)
    folder = Path(found.run_dir)
    assert code == 0, output
    assert f"Python: {project}/.venv/bin/python" in output
    assert "observed metrics: 5 lines, by a.Writer" in output
    assert (found.name, found.worker_name, found.area, found.summary.metrics) == (
        "first",
        "train.py",
        "custom_scripts",
        5,
    )
    assert lab.text(found).decode() == (
        f"argv ['--lr', '3e-4', '--name', 'x'] cwd {folder} observe 1 beside\ndata 1,2 lr: 1\n"
    )
    # What is new belongs to the run, also where the project has a folder of a logger.
    assert (folder / "model.zip").read_text() == "weights"
    assert os.listdir(folder / "runs") == ["first"]
    assert not (project / "model.zip").exists()
    assert os.listdir(project / "runs") == ["old"]

    provenance = json.loads((folder / "provenance.json").read_text())
    assert provenance["python"]["executable"] == f"{project}/.venv/bin/python"
    _, shown = run("show", found.run_id)
    assert f"python       {project}/.venv/bin/python" in shown
    assert "observed\nmetrics: 5 lines, by a.Writer" in shown

    # Deleting the run deletes its links, not what they point to.
    assert run("rm", found.run_id, "--yes")[0] == 0
    assert (project / "data/a.csv").read_text() == "1,2"


def test_the_working_directory_and_the_observation_can_be_chosen(run, lab, project):
    code, output = run("run", "--cwd", ".", "--no-observe", "--var", "A=1", "python", "train.py")

    found = newest(lab)
    assert code == 0, output
    assert f"cwd {project} observe None" in lab.text(found).decode()
    assert (project / "model.zip").exists()
    assert "environment" in found.config["metadata"]["worker"]


def test_a_module_is_started_with_its_arguments_alone(run, lab):
    code, output = run("run", "--module", "pkg.train", "--lr", "1")

    assert code == 0, output
    assert lab.text(newest(lab)) == b"module ['--lr', '1'] relative\n"
    assert "Nothing was observed: the script uses none of TensorBoard" in output


def test_a_failure_and_a_cancel_are_those_of_any_run(run, lab):
    code, output = run("run", "python", "train.py", "--fail")
    assert code == 1
    assert "ValueError: the learning rate is negative" in output
    _, listed = run("runs")
    assert "exit code 1: ValueError: the learning" in listed
    code, output = run("resume", "last")
    assert code == 1
    assert "is a program of your own, and MOSAIC does not know how it is resumed" in output

    detached = json.loads(run("run", "--detach", "--json", "python", "train.py", "--wait")[1])
    lab.wait_until_run(newest(lab), lambda now: now.summary.metrics == 5, "its metrics")
    pid = lab.root_pid(newest(lab))
    assert run("cancel", detached["run_id"], "--wait")[0] == 0
    assert str(newest(lab).state) == "CANCELLED"
    assert not Path(f"/proc/{pid}").exists()


def test_gpus_are_granted(make_lab, project):
    lab = make_lab("--gpus", "2")
    (project / "gpus.py").write_text("import os; print(os.environ['CUDA_VISIBLE_DEVICES'])")
    worker = {"script": str(project / "gpus.py"), "python": str(project / ".venv/bin/python"), "inputs": str(project)}

    found = lab.submit_worker(worker, gpus={"requested": 1, "mandatory": True})
    lab.wait_until_over(found)

    assert lab.text(found).startswith(b"GPU-fake-")


def test_a_program_in_a_foreign_python_shows_its_frames(run, lab, project):
    """The SDK comes in by its path: this environment has Gymnasium and numpy, and no package of MOSAIC."""
    if not FRAMES.exists():
        pytest.skip("make .venv-frames/.ready")
    (project / "env.py").write_text(
        "import gymnasium\n"
        "env = gymnasium.make('CartPole-v1', render_mode='rgb_array')\n"
        "env.reset(seed=1)\n"
        "print(env.step(0)[1], 'mosaic_sdk' in __import__('sys').modules)\n"
    )

    code, output = run("run", "--python", FRAMES, "python", "env.py")

    assert code == 0, output
    assert lab.text(newest(lab)).startswith(b"1.0")
    assert lab.text(newest(lab), "stderr") == b""
