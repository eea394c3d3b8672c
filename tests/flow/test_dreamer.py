"""The Dreamer worker through the real daemon: what is refused at submit, a run from end to end, its checkpoint played.

It needs the worker's environment, which `make test` creates; the worker's own suite is in workers/dreamer_worker/tests.
The agent acts at random here, because compiling takes minutes and the tests are about MOSAIC's side.
"""

import json
import os
import signal
from pathlib import Path

import pytest
from lab import all_pids, cmdline, environ, wait_until

from mosaic.model.errors import BadConfig
from mosaic.model.states import RunState

S = RunState
REPO = Path(__file__).parents[2]
ENVIRONMENT = REPO / ".venv-dreamer"
LONG_S = 300  # numpy and gymnasium are imported by seven processes on a busy machine
MODULE = {"module": "dreamer_worker.cli"}
TINY = {
    "env": "dummy_grid",
    "random_agent": True,
    "envs": 2,
    "batch_size": 4,
    "batch_length": 8,
    "train_ratio": 8,
    "replay_gb": 0.01,
    "log_every_s": 0.5,
    "save_every_s": 0.5,
    "report_every_s": 1,
}

pytestmark = pytest.mark.skipif(
    not (ENVIRONMENT / ".ready").exists(), reason="the worker's environment is missing: make .venv-dreamer/.ready"
)


@pytest.fixture(autouse=True)
def installed(home):
    """As if `mosaic worker install dreamer` had created it in this home."""
    (home / "envs").mkdir()
    (home / "envs/dreamer").symlink_to(ENVIRONMENT)


def submit(lab, **config):
    return lab.submit_worker({**MODULE, "config": {**TINY, **config}})


def stderr_of(lab, run):
    """Its stderr, which `mosaic logs` shows."""
    return lab.text(run, "stderr").decode()


def kinds(lab, run):
    return [event["event"] for event in lab.events(run, "lifecycle") if event["event"] != "heartbeat"]


def process_of(run, role):
    """The pid of one of the run's processes, or 0 while there is none."""
    mark, last = run.run_id.encode(), role.encode() + b"\0"
    found = [
        pid
        for pid in all_pids()
        if b"dreamer_worker.life" in cmdline(pid) and cmdline(pid).endswith(last) and mark in environ(pid)
    ]
    return found[0] if found else 0


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"env": "nosuite_thing"}, r"config\.env: must look like crafter_reward or atari_pong or .* does not"),
        ({"size": "13m"}, r"config\.size: must look like debug or 1m or 12m"),
        ({"suite": "attari"}, r"config\.suite: must look like atari or atari100k"),
        ({"step": 100}, r"config\.step: the worker has no such setting\. Did you mean 'steps'"),
        ({"agent": {"optimizer": {"lrr": 1}}}, r"config\.agent\.optimizer\.lrr: .* Did you mean 'lr'"),
        ({"replay_shares": {"unifrom": 1}}, r"config\.replay_shares\.unifrom: .* Did you mean 'uniform'"),
        ({"outputs": ["wandb"]}, r"config\.outputs\[0\]: must be one of jsonl, tensorboard, mosaic, terminal"),
        ({"replay_addr": "7002"}, r"config\.replay_addr: must look like auto or 10\.0\.0\.1:7001"),
        ({"checkpoint": "../other"}, r"config\.checkpoint: '\.\./other' is neither an existing path nor a run"),
        ({"script": "eval", "checkpoint": "/nowhere"}, r"config\.checkpoint: '/nowhere' does not exist"),
        ({"extras": {"mode": "policy_eval", "policy_path": "/nowhere"}}, r"policy_path: '/nowhere' does not exist"),
        ({"extras": {"mode": "policy_evil"}}, r"mode: must be one of train, resume_training, policy_eval"),
    ],
)
def test_an_invalid_config_is_refused_at_submit_with_the_reason(lab, config, words):
    with pytest.raises(BadConfig, match=words):
        lab.submit_worker({**MODULE, "config": config})

    assert lab.client.list_runs().total == 0


def test_the_help_names_every_setting_with_its_choices(mosaic):
    text = mosaic("run", "dreamer", "--help")

    for word in ("parallel|train|eval", "agent ", "replay_shares ", "policy_path ", "debug, 1m, 12m"):
        assert word in text, word


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"env": "dummy_gird"}, "env: there is no environment dummy_gird. Did you mean dummy_grid"),
        ({"suite": "procgen", "env": None}, "suite: there is no adapter for procgen_coinrun"),
        ({"script": "eval", "random_agent": False, "size": "debug", "checkpoint": "/tmp"}, "no complete checkpoint in"),
    ],
)
def test_an_error_that_only_the_worker_finds_ends_the_run_in_one_sentence(lab, config, words):
    run = submit(lab, **{key: value for key, value in config.items() if value is not None})

    end = lab.wait_until_over(run, LONG_S)

    assert end.state is S.FAULTED
    assert words in end.reason.splitlines()[-1]
    assert "Traceback" not in end.reason


@pytest.mark.timeout(600)
def test_a_parallel_run_prints_its_settings_and_survives_a_killed_env(lab):
    run = submit(lab, steps=1_000_000)
    lab.wait_until_run(run, lambda now: now.summary.episodes > 3, "episodes", LONG_S)
    wait_until(lambda: process_of(run, "env0") > 0, LONG_S)
    killed = process_of(run, "env0")

    os.kill(killed, signal.SIGKILL)

    wait_until(lambda: process_of(run, "env0") not in (0, killed), LONG_S)
    wait_until(lambda: "the env0 process ended" in stderr_of(lab, run), LONG_S)
    wait_until(lambda: any(lab.rundir(run).checkpoints.glob("epoch-*/commit.json")), LONG_S)
    lab.client.cancel_run(run.run_id)
    end = lab.wait_until_over(run, LONG_S)
    assert end.state is S.CANCELLED
    assert stderr_of(lab, run).startswith(
        "dummy_grid: an agent that acts at random, 2 training and 1 evaluation envs, until"
    )
    assert kinds(lab, run)[:3] == ["run_started", "settings", "addresses"]
    assert "checkpoint_saved" in kinds(lab, run)
    assert kinds(lab, run)[-1] == "run_cancelled"
    assert not [pid for pid in lab.processes() if b"dreamer_worker" in cmdline(pid)]


@pytest.mark.timeout(600)
def test_a_finished_run_is_evaluated_by_its_folder_and_resumed(lab, mosaic):
    first = lab.wait_until_over(submit(lab, script="train", steps=200), LONG_S)
    assert (first.state, first.progress, first.summary.last_step) == (S.TERMINATED, 1.0, 200)

    words = ("run", "dreamer", "mode=policy_eval", f"policy_path={first.run_dir}", "episodes=3", "--json")
    played = lab.client.get_run(json.loads(mosaic(*words))["run_id"])
    resumed = lab.client.get_run(json.loads(mosaic("resume", first.run_id, "steps=300", "--json"))["run_id"])

    assert (played.state, played.area, played.summary.episodes) == (S.TERMINATED, "evals", 3)
    summary = json.loads((lab.rundir(played).path / "eval_summary.json").read_text())
    assert (summary["episodes"], len(summary["rows"])) == (3, 3)
    assert "3 episodes played: mean return" in stderr_of(lab, played)
    assert resumed.state is S.TERMINATED
    assert [(run.parent_run_id, run.relation) for run in (played, resumed)] == [
        (first.run_id, "eval"),
        (first.run_id, "resume"),
    ]
    assert "The run continues from a checkpoint at step 200" in stderr_of(lab, resumed)
    [done] = [event for event in lab.events(resumed, "lifecycle") if event["event"] == "run_completed"]
    assert done["payload"]["env_steps"] == 300
    [settings] = [event for event in lab.events(resumed, "lifecycle") if event["event"] == "settings"]
    assert (settings["payload"]["env"], settings["payload"]["batch_length"]) == ("dummy_grid", 8)


def parts_of(lab, run):
    return [lab.client.get_run(child) for child in lab.client.get_run(run.run_id).children]


@pytest.mark.timeout(600)
def test_a_fleet_of_envs_that_is_killed_is_replaced_and_the_run_plays_all_its_steps(lab):
    worker = {**MODULE, "config": {**TINY, "eval_envs": 0, "steps": 5000}}
    parts = [{"name": "env", "count": 2, "resources": {"cpus": 0.1}}]
    run = lab.client.submit_run({"metadata": {"worker": worker}, "payload": {"parts": parts}})
    lab.wait_until_run(run, lambda now: now.summary.env_steps > 20, "steps", LONG_S)
    lost = next(part for number, part in enumerate(parts_of(lab, run)) if process_of(part, f"env{number}"))

    os.kill(lab.root_pid(lost), signal.SIGKILL)
    wait_until(lambda: len(parts_of(lab, run)) == 3, LONG_S, "the fleet that replaces it")
    end = lab.wait_until_over(run, LONG_S)
    wait_until(lambda: all(part.state.is_over for part in parts_of(lab, run)), LONG_S, "the end of the parts")

    assert (end.state, end.progress) == (S.TERMINATED, 1.0)
    assert lab.client.get_run(lost.run_id).state is S.FAULTED
    assert stderr_of(lab, run).count("has joined the run.") == 3
    assert not [pid for pid in lab.processes() if b"dreamer_worker" in cmdline(pid)]


@pytest.mark.timeout(600)
def test_a_replay_that_is_lost_is_replaced_from_the_newest_checkpoint_and_the_run_plays_all_its_steps(lab):
    worker = {**MODULE, "config": {**TINY, "eval_envs": 0, "steps": 4000}}
    parts = [{"name": "replay", "count": 1, "resources": {"cpus": 0.1}}]
    run = lab.client.submit_run({"metadata": {"worker": worker}, "payload": {"parts": parts}})
    checkpoints = lab.rundir(run).checkpoints
    wait_until(lambda: any(checkpoints.glob("epoch-*/commit.json")), LONG_S, "a checkpoint")
    [lost] = parts_of(lab, run)
    agent = process_of(run, "agent")

    os.kill(lab.root_pid(lost), signal.SIGKILL)
    wait_until(lambda: process_of(run, "agent") not in (0, agent), LONG_S, "an agent at the replay that replaces it")
    end = lab.wait_until_over(run, LONG_S)
    wait_until(lambda: all(part.state.is_over for part in parts_of(lab, run)), LONG_S, "the end of the parts")

    assert (end.state, end.progress) == (S.TERMINATED, 1.0)
    newest = max(checkpoints.glob("epoch-*/commit.json")).parent
    saved = json.loads((newest / "replay.json").read_text())
    assert saved["buffers"]["train"]["blocks"]
    replaced = parts_of(lab, run)[-1]
    assert "The replay continues from checkpoint" in stderr_of(lab, replaced)
    assert not list(lab.rundir(replaced).path.rglob("*.npz"))


@pytest.mark.parametrize(
    ("config", "count", "words"),
    [({"script": "train"}, 1, "script: train is one process"), ({}, 4, "there are 3 envs for 4 runs of the part env")],
    ids=["one process", "too many"],
)
def test_parts_that_a_run_cannot_have_end_it_in_one_sentence(lab, config, count, words):
    worker = {**MODULE, "config": {**TINY, "steps": 200, **config}}
    payload = {"parts": [{"name": "env", "count": count}]}
    run = lab.client.submit_run({"metadata": {"worker": worker}, "payload": payload})

    end = lab.wait_until_over(run, LONG_S)

    assert end.state is S.FAULTED
    assert words in end.reason
    assert parts_of(lab, run) == []
