"""Custom scripts: their headers, the config of a phase, and the two scripts that come with the worker."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from cleanrl_worker.phase import find, with_settings
from cleanrl_worker.scripts import read_script, shipped
from mosaic_sdk.config import ConfigError

HEADER = "#!/usr/bin/env bash\n# @description: A test.\n# @phases: 2\n# @total_timesteps: 1_000\n"


@pytest.fixture
def run(tmp_path):
    """A function that runs a command in the folder of a custom script's run, as the daemon creates it."""
    for name in ("config", "checkpoints"):
        (tmp_path / name).mkdir()

    def start(argv, **base):
        document = {"run_id": "S1", "worker_id": "w", "extras": {}, **base}
        (tmp_path / "config/base_config.json").write_text(json.dumps(document))
        env = {
            **os.environ,
            "MOSAIC_RUN_ID": "S1",
            "MOSAIC_RUN_DIR": str(tmp_path),
            "MOSAIC_CHECKPOINT_DIR": str(tmp_path / "checkpoints"),
            "MOSAIC_CONFIG_FILE": str(tmp_path / "config/base_config.json"),
            "MOSAIC_CUSTOM_SCRIPTS_DIR": str(tmp_path / "config"),
            "PATH": f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}",
        }
        return subprocess.run(argv, cwd=tmp_path, env=env, capture_output=True, text=True)

    return start


def events(done):
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return [line for line in lines if "event" in line]


def test_two_scripts_are_shipped_with_a_description():
    found = {script.name: script for script in shipped()}

    assert list(found) == ["babyai_goto_curriculum", "babyai_quick_test"]
    assert (found["babyai_quick_test"].phases, found["babyai_quick_test"].total_timesteps) == (3, 50_000)
    assert (found["babyai_goto_curriculum"].phases, found["babyai_goto_curriculum"].total_timesteps) == (2, 800_000)
    assert found["babyai_goto_curriculum"].environments == (
        "BabyAI-GoToRedBallNoDists-v0",
        "BabyAI-GoToRedBall-v0",
        "BabyAI-GoToObj-v0",
        "BabyAI-GoToLocal-v0",
    )
    for script in found.values():
        assert script.description
        assert os.access(script.path, os.X_OK)
        assert "jq " not in script.path.read_text()
        assert script.path.read_text().count("\nphase ") == script.phases


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEADER.replace("# @phases: 2\n", ""), "has no @phases in its first 30 lines"),
        (HEADER.replace("A test.", ""), "has no @description"),
        (HEADER.replace("1_000", "many"), "@total_timesteps must be an integer of at least 1, not 'many'"),
        (HEADER.replace("2", "0"), "@phases must be an integer of at least 1, not '0'"),
    ],
)
def test_a_script_with_an_invalid_header_is_refused(tmp_path, text, message):
    (tmp_path / "mine.sh").write_text(text)

    with pytest.raises(ConfigError, match=message):
        read_script(tmp_path / "mine.sh")


def test_a_header_is_read_with_and_without_colons(tmp_path):
    (tmp_path / "mine.sh").write_text(HEADER.replace(":", "") + 'PHASE1_ENV="CartPole-v1"\n')

    script = read_script(tmp_path / "mine.sh")

    assert (script.description, script.phases, script.total_timesteps) == ("A test.", 2, 1000)
    assert script.environments == ("CartPole-v1",)


def test_settings_of_a_phase_go_to_their_places_and_leave_the_rest():
    base = {"run_id": "S1", "seed": 3, "extras": {"cuda": False, "algo_params": {"gamma": 0.9}}}

    config = with_settings(base, ["env_id=X-v0", "mode=train", "algo_params.num_envs=8", "total_timesteps=10"])

    assert config == {
        "run_id": "S1",
        "seed": 3,
        "env_id": "X-v0",
        "total_timesteps": 10,
        "extras": {"cuda": False, "mode": "train", "algo_params": {"gamma": 0.9, "num_envs": 8}},
    }
    assert base["extras"] == {"cuda": False, "algo_params": {"gamma": 0.9}}


def test_a_script_reads_a_value_from_the_config_or_its_default():
    base = {"total_timesteps": 7, "extras": {"eval_episodes": 5, "curriculum_schedule": [{"env_id": "X-v0"}]}}

    assert find(base, "total_timesteps", "100") == "7"
    assert find(base, "eval_episodes", "20") == "5"
    assert find(base, "env_id", "Y-v0") == "Y-v0"
    assert json.loads(find(base, "curriculum_schedule", "")) == [{"env_id": "X-v0"}]


def test_the_schedule_in_force_is_written_and_read_by_the_phases_after_it(run, tmp_path):
    argv = [sys.executable, "-m", "cleanrl_worker.phase"]
    file = tmp_path / "config/curriculum_config.json"
    mine = json.dumps([{"env_id": "X-v0", "steps": 5}, {"env_id": "Y-v0"}])
    requested = {"extras": {"curriculum_schedule": "babyai_goto"}}

    assert not file.exists()
    assert run([*argv, "--get", "curriculum_schedule", "mine"]).stdout == "mine\n"
    run([*argv, "1/2", "train", "algo=no_such"], **requested)
    assert json.loads(file.read_text())[0] == {"env_id": "BabyAI-GoToRedBallNoDists-v0", "condition": "steps>=200000"}
    run([*argv, "2/2", "train", "algo=no_such", f"curriculum_schedule={mine}"], **requested)
    found = json.loads(run([*argv, "--get", "curriculum_schedule", ""], **requested).stdout)
    phase = json.loads((tmp_path / "config/phase-2-train.json").read_text())

    assert [stage["env_id"] for stage in found] == ["X-v0", "Y-v0"]
    assert phase["extras"]["curriculum_schedule"] == found == json.loads(file.read_text())


def test_a_phase_emits_its_start_and_is_replaced_by_the_worker(run, tmp_path):
    argv = [sys.executable, "-m", "cleanrl_worker.phase", "1/2", "train", "algo=no_such", "env_id=CartPole-v1"]

    done = run(argv, seed=3)

    found = events(done)
    assert [event["event"] for event in found] == ["run_started", "phase_started", "phase_failed"]
    for event in found[1:]:
        assert {**event["payload"], "phase": 1, "phases": 2, "name": "train"} == event["payload"]
    assert "there is no algorithm 'no_such'" in found[2]["payload"]["error"]
    assert done.returncode == 2
    config = json.loads((tmp_path / "config/phase-1-train.json").read_text())
    assert (config["run_id"], config["seed"], config["algo"]) == ("S1", 3, "no_such")


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["train"], "Give the number and the name of the phase"),
        (["3/2", "train"], "Give the number and the name of the phase"),
        (["1/2", "../out"], "Give the number and the name of the phase"),
        (["1/2", "train", "env_id"], "'env_id' is not a valid setting. Write key=value."),
    ],
)
def test_invalid_arguments_of_a_phase_are_refused_with_the_correct_form(run, argv, message):
    done = run([sys.executable, "-m", "cleanrl_worker.phase", *argv])

    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr


def test_outside_of_mosaic_a_phase_names_the_missing_variable(monkeypatch):
    env = {name: value for name, value in os.environ.items() if not name.startswith("MOSAIC_")}
    argv = [sys.executable, "-m", "cleanrl_worker.phase", "--get", "env_id", "X-v0"]

    done = subprocess.run(argv, env=env, capture_output=True, text=True)

    assert done.returncode == 2
    assert "MOSAIC_CONFIG_FILE is not set" in done.stderr


def test_the_first_phase_starts_the_run_and_the_last_one_completes_it(run):
    steps = {"algo": "dqn", "total_timesteps": 40, "extras": {"algo_params": {"learning_starts": 100}}}
    argv = [sys.executable, "-m", "cleanrl_worker.phase"]

    emitted = [[event["event"] for event in events(run([*argv, which, "x"], **steps))] for which in ("1/2", "2/2")]

    kinds = [[event for event in each if event.startswith(("run", "phase"))] for each in emitted]
    assert kinds == [
        ["run_started", "phase_started", "phase_completed"],
        ["phase_started", "phase_completed", "run_completed"],
    ]


def test_a_script_ends_when_a_phase_fails(run, tmp_path):
    script = tmp_path / "mine.sh"
    script.write_text(
        HEADER + "set -euo pipefail\npython -m cleanrl_worker.phase 1/2 train algo=no_such\necho 'never printed'\n"
    )

    done = run(["bash", str(script)])

    assert done.returncode == 2
    assert "never printed" not in done.stdout


@pytest.mark.slow
def test_the_quick_babyai_test_trains_resumes_and_evaluates(run, tmp_path):
    path = next(script.path for script in shipped() if script.name == "babyai_quick_test")

    done = run([str(path)], total_timesteps=2048, seed=1, extras={"eval_episodes": 2})

    assert done.returncode == 0, done.stderr[-2000:]
    emitted = [event["event"] for event in events(done) if event["event"] != "heartbeat"]
    assert emitted.count("phase_started") == emitted.count("phase_completed") == 3
    assert (emitted[0], emitted[-1], emitted.count("run_completed")) == ("run_started", "run_completed", 1)
    assert "checkpoint_loaded" in emitted
    summary = json.loads((tmp_path / "eval_summary.json").read_text())
    assert (summary["checkpoint_step"], summary["episodes"]) == (2048, 2)


@pytest.mark.slow
def test_the_curriculum_goes_through_its_four_levels_and_evaluates_the_last(run, tmp_path):
    path = next(script.path for script in shipped() if script.name == "babyai_goto_curriculum")

    done = run([str(path)], total_timesteps=8192, seed=1, extras={"eval_episodes": 2})

    assert done.returncode == 0, done.stderr[-2000:]
    stages = [event["payload"]["stage"] for event in events(done) if event["event"] == "curriculum_stage"]
    assert stages == [0, 1, 2, 3]
    assert json.loads((tmp_path / "eval_summary.json").read_text())["env_id"] == "BabyAI-GoToLocal-v0"


@pytest.mark.skipif(shutil.which("bash") is None, reason="the scripts are for bash")
@pytest.mark.parametrize("script", shipped(), ids=lambda script: script.name)
def test_bash_can_read_a_shipped_script(script: "object"):
    path = Path(script.path)  # type: ignore[attr-defined]

    assert subprocess.run(["bash", "-n", str(path)], capture_output=True).returncode == 0
