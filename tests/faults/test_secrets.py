"""Only the worker sees a secret given to a run: no log, listing, provenance or process list contains it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from lab import all_pids, cmdline

from mosaic.catalog.secrets import redact, redact_arguments
from mosaic.model.states import RunState

S = RunState
MOSAIC = Path(sys.executable).with_name("mosaic")
SECRET = "hunter2hunter2hunter2"
ENVIRONMENT = {
    **dict.fromkeys(("WANDB_API_KEY", "OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY", "HF_TOKEN", "PGPASSWORD"), SECRET),
    "SSH_PASSPHRASE": SECRET,
    "DATABASE_URL": f"postgres://me:{SECRET}@box/db",
    "EXTRA_HEADER": f"Authorization: Bearer {SECRET}",
}
ARGUMENTS = ["--api-key", SECRET, f"--wandb-token={SECRET}", f"password={SECRET}", f"http://me:{SECRET}@box/"]
CONFIG = {
    "extras": {
        "wandb_api_key": SECRET,
        "llm": [{"auth": {"token": SECRET}}],
        "algo_params": {"client_secret": SECRET, "url": f"https://u:{SECRET}@h/"},
    }
}
USE = """
import os, sys, time
assert os.environ["WANDB_API_KEY"] == sys.argv[2]
print('{"type": "step", "step_index": 1}')
print("secrets arrived", flush=True)
while "wait" in sys.argv:
    time.sleep(0.05)
"""


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "use.py"
    path.write_text(USE)
    return str(path)


def spec(script, *more):
    return {"script": script, "arguments": [*ARGUMENTS, *more], "environment": ENVIRONMENT, "config": CONFIG}


def mosaic(lab, *words):
    env = {**os.environ, "MOSAIC_HOME": str(lab.root.path)}
    done = subprocess.run([MOSAIC, *words], env=env, capture_output=True, timeout=60, check=False)
    return done.stdout + done.stderr


def test_only_the_three_files_that_need_a_secret_contain_it(lab, script):
    run = lab.submit_worker(spec(script), name="secretive")
    end = lab.wait_until_over(run)
    carriers = {lab.root.config_file(run.run_id), lab.root.worker_file(run.run_id), lab.rundir(run).launch}
    carriers.add(lab.rundir(run).config / "base_config.json")

    tellers = {path for path in lab.root.path.rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()}

    assert (end.state, end.reason) == (S.TERMINATED, "")
    assert lab.text(run) == b"secrets arrived\n"
    assert lab.rundir(run).provenance.exists()
    assert tellers == carriers
    assert {path.stat().st_mode & 0o077 for path in carriers} == {0}


def test_no_listing_shows_a_secret(lab, script):
    run = lab.submit_worker(spec(script))
    lab.wait_until_over(run)

    shown = [
        *(mosaic(lab, "show", run.run_id), mosaic(lab, "show", run.run_id, "--json"), mosaic(lab, "runs", "--json")),
        *(mosaic(lab, "export", run.run_id), mosaic(lab, "logs", run.run_id), mosaic(lab, "doctor")),
        json.dumps(lab.client.get_run(run.run_id).config).encode(),
    ]

    assert all(shown)
    assert [text for text in shown if SECRET.encode() in text] == []


def test_only_the_worker_itself_has_a_secret_in_the_process_list(lab, script):
    run = lab.submit_worker(spec(script, "wait"))
    lab.wait_until_run(run, lambda now: lab.text(run) != b"", "the worker's output")
    ours = {lab.daemon_pid(), lab.holder_pid(run), lab.root_pid(run), lab.tailer_pid(run)}

    tellers = {pid for pid in all_pids() if SECRET.encode() in cmdline(pid) and pid != os.getpid()}

    assert tellers.isdisjoint(ours)
    assert len(tellers) == 1
    lab.client.cancel_run(run.run_id)
    lab.wait_until_over(run)


@pytest.mark.parametrize(
    "config",
    [
        {"metadata": {"worker": {"module": "toy_worker.cli", "environment": {"API_KEY": SECRET, "A=B": "x"}}}},
        {"metadata": {"worker": {"module": "toy_worker.cli", "config": {"api_key": SECRET}, "environment": {"1": ""}}}},
        {"metadata": {"worker": {"module": "no_such_worker.cli", "arguments": ["--token", SECRET]}}},
    ],
)
def test_a_config_that_is_refused_leaves_no_secret_behind(lab, config):
    with pytest.raises(Exception, match="metadata") as refusal:
        lab.client.submit_run(config)

    assert SECRET not in str(refusal.value)
    assert [p for p in lab.root.path.rglob("*") if p.is_file() and SECRET.encode() in p.read_bytes()] == []


def test_a_spawn_error_contains_no_secret(lab, tmp_path):
    (tmp_path / "none.sh").write_text("#!/no/such/interpreter\n")
    run = lab.submit_worker(spec(str(tmp_path / "none.sh")))

    end = lab.wait_until_over(run)

    assert end.state is S.FAULTED
    assert SECRET not in end.reason
    assert SECRET.encode() not in lab.rundir(run).holder_log.read_bytes()


def test_redaction_takes_time_proportional_to_the_text():
    for text in ("x" * 120_000, "x://" * 30_000, "x://" + ":" * 120_000, "bearer " + " " * 120_000, "key" * 40_000):
        assert redact_arguments([text])
        assert redact({"a": text, text: 1})
