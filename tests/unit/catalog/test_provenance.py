import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mosaic.catalog.command import Command
from mosaic.catalog.environment import Environment
from mosaic.catalog.provenance import collect, freeze, git_state, write
from mosaic.catalog.secrets import redact, redact_arguments
from mosaic.model.run import RunConfig, WorkerSpec

SECRET = "sk-very-secret-0123456789"
RUN_ID = "01ARZ3NDEKTSV4RRFFQ69G5FAV"


@pytest.mark.parametrize(
    "name",
    [
        *("WANDB_API_KEY", "apikey", "hf_token", "TOKEN", "client_secret", "DB_PASSWORD", "passwd", "credentials"),
        *("http_auth", "Authorization", "openaiKey", "API-KEY"),
    ],
)
def test_texts_under_secret_names_are_masked_at_any_depth(name):
    shown = redact({"a": {"b": [{name: SECRET}]}, name: {"inner": [SECRET]}})

    assert SECRET not in json.dumps(shown)
    assert shown["a"]["b"][0][name] == "***"


def test_numbers_under_unambiguous_names_are_masked_and_settings_are_not():
    values = {"max_tokens": 512, "key_dim": 64, "tokenizer": "bpe", "author": "me", "keyboard": "us", "monkey": "x"}

    assert redact(values) == values
    assert redact({"password": 1234, "use_auth": True, "api_key": ""}) == {
        "password": "***",
        "use_auth": True,
        "api_key": "",
    }


def test_passwords_inside_texts_are_masked_at_any_depth():
    texts = {"url": f"https://me:{SECRET}@box/v1", "header": f"Bearer {SECRET}"}

    shown = redact({"a": [texts], **texts})

    assert SECRET not in json.dumps(shown)
    assert shown["url"] == "https://me:***@box/v1"


def test_redacting_does_not_change_the_original():
    config = {"metadata": {"worker": {"environment": {"API_KEY": SECRET}, "arguments": ["--api-key", SECRET]}}}
    before = json.dumps(config)

    shown = redact(config)

    assert json.dumps(config) == before
    assert SECRET not in json.dumps(shown)


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (["--api-key", SECRET, "--lr", "1"], ["--api-key", "***", "--lr", "1"]),
        ([f"--api-key={SECRET}", "x"], ["--api-key=***", "x"]),
        ([f"api_key={SECRET}"], ["api_key=***"]),
        (["--token", "--verbose", "x"], ["--token", "--verbose", "x"]),
        (["--header", f"Authorization: Bearer {SECRET}"], ["--header", "Authorization: Bearer ***"]),
        ([f"https://me:{SECRET}@host/x"], ["https://me:***@host/x"]),
        (["/data/keys.json", "--keyboard", "us"], ["/data/keys.json", "--keyboard", "us"]),
    ],
)
def test_secrets_on_a_command_line_are_masked(arguments, shown):
    assert redact_arguments(arguments) == shown


@pytest.fixture
def checkout(tmp_path):
    if not shutil.which("git"):
        pytest.skip("no git here, and MOSAIC does not need it")
    folder = tmp_path / "checkout"
    folder.mkdir()
    (folder / "train.py").write_text("print(1)\n")
    who = ["-c", "user.name=t", "-c", "user.email=t@t", "-c", "commit.gpgsign=false"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "x"]):
        subprocess.run(["git", *who, *command], cwd=folder, check=True)
    return folder


def test_git_reports_the_commit_and_whether_the_code_was_changed(checkout):
    clean = git_state(checkout / "train.py")
    (checkout / "results.csv").write_text("")
    with_results = git_state(checkout)
    (checkout / "train.py").write_text("print(2)\n")
    changed = git_state(checkout)

    assert len(clean["commit"]) == 40
    assert (clean["dirty"], with_results["dirty"], changed["dirty"]) == (False, False, True)


def test_outside_a_checkout_there_is_no_commit(tmp_path):
    assert git_state(tmp_path) is None


def test_a_freeze_names_every_package_and_is_updated_after_installs(root, make_environment, install):
    site = make_environment("x")
    environment = Environment("x", root.envs / "x" / "bin" / "python")
    install(site, "", "first")

    before = freeze(environment)
    install(site, "", "second", version="2.0")

    assert before == ["first==1.2.3"]
    assert freeze(environment) == ["first==1.2.3", "second==2.0"]


def test_provenance_has_everything_needed_to_repeat_a_run_and_no_secret(root, checkout):
    worker = WorkerSpec(
        script=str(checkout / "train.py"),
        config={"seed": 7, "extras": {"eval_seeds": [1, 2], "speed": 3}},
        environment={"WANDB_API_KEY": SECRET, "MODE": "fast"},
    )
    config = RunConfig(RUN_ID, "n", "custom_scripts", "train.py", worker)
    command = Command(["python", "train.py", f"--api-key={SECRET}"], {"CUDA_VISIBLE_DEVICES": "GPU-a"}, "/", False)
    rundir = root.run("custom_scripts", RUN_ID)
    rundir.make()

    write(config, command, Path(sys.executable), rundir)

    text = rundir.provenance.read_text()
    record = json.loads(text)
    assert SECRET not in text
    assert record["version"] == 1
    assert record["seeds"] == {"seed": 7, "extras.eval_seeds": [1, 2]}
    assert record["worker"]["git"] == git_state(checkout)
    assert record["environment"] == {"WANDB_API_KEY": "***", "MODE": "fast"}
    assert record["hardware"]["cores"] == os.cpu_count()
    assert record["hardware"]["memory"].endswith("kB")
    assert record["cuda_visible_devices"] == "GPU-a"
    assert record["python"]["version"] == sys.version.split()[0]
    assert any(line.startswith("msgspec==") for line in record["python"]["packages"])
    assert rundir.provenance.stat().st_mode & 0o777 == 0o600


def test_another_environment_is_recorded_with_its_own_python_and_source(root, make_environment, install):
    site = make_environment("x")
    install(site, "mine", "my_worker")
    config = RunConfig(RUN_ID, "n", "runs", "mine", WorkerSpec(module="my_worker.cli"))
    python = root.envs / "x" / "bin" / "python"

    record = collect(config, Command([], {}, "/", False), python, root.run("runs", RUN_ID))

    assert record["worker"]["source"] == str(site / "my_worker")
    assert record["python"]["version"] == sys.version.split()[0]
    assert record["python"]["packages"] == ["my_worker==1.2.3"]
