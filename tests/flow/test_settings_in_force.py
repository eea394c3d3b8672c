"""Settings: unknown ones are refused, misplaced ones are moved, all are recorded with their defaults."""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from tiny_worker import DESCRIBES, write_tiny_worker

from mosaic.model.errors import BadConfig, KeyTaken
from mosaic.model.rundir import RunDir
from mosaic.model.states import RunState

S = RunState
MOSAIC = Path(sys.executable).parent / "mosaic"
SCHEMA = {
    "properties": {
        "steps": {"type": "integer", "default": 70},
        "extras": {
            "properties": {
                "algo_params": {
                    "properties": {"rate": {"type": "number", "default": 0.5}},
                    "additionalProperties": False,
                }
            },
            "additionalProperties": False,
        },
    },
    "additionalProperties": False,
}
CHECKED = f"{DESCRIBES}def get_worker_schema():\n    return {SCHEMA!r}\n"


@pytest.fixture(scope="module")
def lab(shared_lab):
    return shared_lab


@pytest.fixture(scope="module")
def mosaic(lab):
    """Runs the command; returns its exit code and its output, errors last."""

    def run(*arguments, text=None):
        env = {**os.environ, "MOSAIC_HOME": str(lab.root.path)}
        done = subprocess.run([MOSAIC, *map(str, arguments)], capture_output=True, text=True, env=env, input=text)
        return done.returncode, done.stdout + done.stderr

    return run


@pytest.fixture(scope="module")
def workers(mosaic, tmp_path_factory):
    """`tiny` has a schema, `mute` has none; `alpha` and `beta` are one module in two environments."""
    parent = tmp_path_factory.mktemp("workers")
    write_tiny_worker(parent, init=CHECKED)
    write_tiny_worker(parent, "mute")
    for name in ("alpha", "beta"):
        folder = write_tiny_worker(parent, "shared", package=f"{name}-worker", folder=name, init=CHECKED)
        project = folder / "pyproject.toml"
        project.write_text(project.read_text().replace('shared = "shared_worker', f'{name} = "shared_worker'))
    for folder in ("tiny_worker", "mute_worker", "alpha", "beta"):
        code, output = mosaic("worker", "install", parent / folder)
        assert code == 0, output


def config_of(worker, **config):
    return {"metadata": {"worker": {"module": f"{worker}_worker.cli", "config": config}}}


@pytest.mark.parametrize(
    ("config", "arguments", "sentence"),
    [
        ({"stpes": 3}, ["stpes=3"], "config.stpes: the worker has no such setting. Did you mean 'steps'?"),
        (
            {"extras": {"fastlane_slut": 3}},
            ["extras.fastlane_slut=3"],
            "config.extras.fastlane_slut: the worker has no such setting. Did you mean 'fastlane_slot'?",
        ),
        (
            {"extras": {"algo_params": {}}},
            ["extras.algo_params={}"],
            "config.extras.algo_params: the worker has no such",
        ),
        ({"algo": "ppo"}, ["algo=ppo"], "config.algo: the worker has no such setting."),
        (
            {"steps": 3, "total_timesteps": 4},
            ["steps=3", "total_timesteps=4"],
            "config.total_timesteps: is the same setting as steps but has another value. Keep one of them.",
        ),
    ],
)
def test_an_unknown_setting_is_refused_for_every_client(lab, mosaic, config, arguments, sentence):
    before = lab.client.list_runs().total

    with pytest.raises(BadConfig) as from_python:
        lab.client.submit_run(config_of("toy", **config))
    typed = mosaic("run", "toy", *arguments, "--detach")
    from_file = mosaic("submit", "-", text=json.dumps(config_of("toy", **config)))

    assert sentence in str(from_python.value)
    assert (typed[0], from_file[0]) == (1, 1)
    assert f"mosaic: {sentence.removeprefix('config.')}" in typed[1]  # as it was typed
    assert sentence in from_file[1]
    assert lab.client.list_runs().total == before


def test_settings_in_force_are_recorded_with_every_default(lab, mosaic):
    run = lab.submit(name="recorded", crash_at=None)
    end = lab.wait_until_over(run)
    _, shown = mosaic("show", run.run_id)

    assert (end.state, end.total_steps, end.progress) == (S.TERMINATED, 1000, 1.0)
    assert end.settings["steps"] == 1000
    assert end.settings["extras.fastlane_video_mode"] == "single"
    assert "total_timesteps" not in end.settings
    assert json.loads(mosaic("show", run.run_id, "--json")[1])["settings"] == end.settings
    assert "\nsettings\ncrash_at  null\ndefaults: agents=1" in shown
    assert "episode_length=50" in shown
    assert "unchecked" not in shown


@pytest.mark.parametrize("name", ["steps", "total_timesteps"])
def test_1e3_steps_are_a_thousand_steps_for_every_client(lab, mosaic, name):
    code, output = mosaic("run", "toy", f"{name}=1e3", "--json")
    typed = json.loads(output)
    text = json.dumps(config_of("toy")).replace('"config": {}', f'"config": {{"{name}": 1e3}}')
    submitted = lab.wait_until_over(lab.client.submit_run(text))

    assert (code, typed["total_steps"], submitted.total_steps) == (0, 1000, 1000)
    assert (submitted.state, submitted.progress) == (S.TERMINATED, 1.0)
    for run_id in (typed["run_id"], submitted.run_id):
        assert '"steps": 1000' in json.dumps(json.loads(lab.root.worker_file(run_id).read_text()))


def test_an_algorithms_setting_is_moved_to_its_place_for_every_client(lab, mosaic, workers):
    runs = [
        lab.client.submit_run(config_of("tiny", extras={"rate": 0.25})),
        lab.client.submit_run(config_of("tiny", rate=0.25)),
    ]
    for arguments in (["rate=0.25"], ["extras.rate=0.25"], ["extras.algo_params.rate=0.25"]):
        runs.append(
            lab.client.get_run(json.loads(mosaic("run", "tiny", *arguments, "--detach", "--json")[1])["run_id"])
        )
    with pytest.raises(
        BadConfig, match=r"extras\.rate: is the same setting as extras\.algo_params\.rate but has another"
    ):
        lab.client.submit_run(config_of("tiny", extras={"rate": 0.25, "algo_params": {"rate": 0.5}}))

    for run in runs:
        end = lab.wait_until_over(run)
        assert (end.state, end.total_steps) == (S.TERMINATED, 70)
        assert (end.settings["steps"], end.settings["extras.algo_params.rate"]) == (70, 0.25)
        assert json.loads(lab.root.worker_file(run.run_id).read_text())["extras"] == {"algo_params": {"rate": 0.25}}


def test_a_worker_without_a_schema_runs_and_is_recorded_as_unchecked(lab, mosaic, workers):
    code, output = mosaic("run", "mute", "lr=1", "extras.deep.er=2")
    detached = mosaic("run", "mute", "lr=1", "--detach")[1]
    run = lab.client.list_runs().runs[1]
    _, shown = mosaic("show", run.run_id)
    _, as_json = mosaic("show", run.run_id, "--json")

    warning = "mosaic: the settings of mute are unchecked: the worker publishes no schema"
    assert code == 0
    assert warning in output
    assert warning in detached
    assert "settings     unchecked: the worker publishes no schema\n" in shown
    assert "\nsettings\nlr              1\nextras.deep.er  2\n" in shown
    shown_run = json.loads(as_json)
    assert shown_run["settings_note"] == "the worker publishes no schema"
    assert shown_run["settings"] == {"lr": 1, "extras.deep.er": 2}


def test_a_script_is_unchecked_only_if_it_has_settings(lab, script):
    path = script("quick.sh", "#!/bin/sh\ntrue\n")

    without = lab.submit_worker({"script": path, "arguments": ["--seed", "1"]})
    with_settings = lab.submit_worker({"script": path, "config": {"seed": 1}})

    assert (without.settings_note, with_settings.settings_note) == ("", "a script has no schema")


def test_of_two_environments_with_one_module_the_named_one_runs(lab, mosaic, workers):
    for name in ("alpha", "beta"):
        typed = json.loads(mosaic("run", name, "--json")[1])
        config = config_of("shared")
        config["metadata"]["worker"]["name"] = name
        submitted = lab.wait_until_over(lab.client.submit_run(config))

        assert (typed["state"], typed["worker_name"], submitted.worker_name) == ("TERMINATED", name, name)
        for folder in (Path(typed["run_dir"]), Path(submitted.run_dir)):
            argv = json.loads(RunDir(folder).launch.read_text())["argv"]
            assert argv[0] == str(lab.root.envs / name / "bin/python")
    with pytest.raises(
        BadConfig, match=r"several environments have 'shared_worker': alpha, beta\. Name one of them with"
    ):
        lab.client.submit_run(config_of("shared"))


def test_an_idempotency_key_with_another_config_is_refused_and_names_its_run(lab, mosaic):
    first = lab.client.submit_run(config_of("toy", steps=3), "one-key")
    again = lab.client.submit_run(json.dumps(config_of("toy", steps=3), indent=3), "one-key")
    code, output = mosaic("submit", "-", "--idempotency-key", "one-key", text=json.dumps(config_of("toy", steps=4)))

    assert again.run_id == first.run_id
    assert code == 1
    assert (
        f"The idempotency key 'one-key' belongs to run {first.run_id} (toy), which was submitted with another" in output
    )
    with pytest.raises(KeyTaken):
        lab.client.submit_run(config_of("toy", steps=5), "one-key")


def test_of_configs_that_race_for_one_key_one_wins_and_the_others_leave_no_files(lab):
    folders = set((lab.root.path / "trainer/runs").iterdir())
    answers = []

    def submit(number):
        try:
            answers.append(lab.client.submit_run(config_of("toy", steps=number % 2 + 1), "raced").run_id)
        except KeyTaken as error:
            answers.append(str(error))

    threads = [threading.Thread(target=submit, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    won = {answer for answer in answers if "belongs" not in answer}
    refused = [answer for answer in answers if "belongs" in answer]
    assert (len(answers), len(won), len(refused)) == (8, 1, 4)
    assert all(f"belongs to run {next(iter(won))}" in answer for answer in refused)
    assert {path.name for path in set((lab.root.path / "trainer/runs").iterdir()) - folders} == won
