"""Whole runs with a random agent: every process is a real one."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
from dreamer_worker.checkpoint import Epochs, read_arrays
from dreamer_worker.cli import names_of
from dreamer_worker.config import LAB, DreamerConfig, make_schema
from dreamer_worker.envs import split_task
from dreamer_worker.parallel import prepare, variables_of
from dreamer_worker.rpc import free_address
from mosaic_sdk.config import ConfigError

pytestmark = pytest.mark.timeout(400)


def test_a_run_plays_its_steps_learns_at_its_ratio_and_ends(run_of):
    run = run_of(steps=600, outputs=["jsonl", "tensorboard", "mosaic"]).start()

    assert run.wait() == 0, run.stderr

    counters = run.counters
    assert 600 <= counters["env_steps"] < 610
    replayed = counters["updates"] * 4 * 8
    owed = 8 * (counters["env_steps"] - 4 * 9)
    assert abs(replayed - owed) <= 8 * 4 * 4 + 3 * 4 * 8  # the limiter's tolerance, and what was on its way
    assert counters["episodes"] > 0
    assert counters["eval_episodes"] > 0
    assert list((run.folder / "tensorboard").iterdir())
    assert Epochs(run.folder / "checkpoints").newest(), run.stderr
    lines = run.lines
    assert (lines[0]["event"], lines[-1]["event"]) == ("run_started", "run_completed")
    assert lines[-1]["payload"]["restarts"] == 0
    assert any(line.get("event_type") == "episode" for line in lines)


def test_every_process_reports_its_metrics_under_its_own_name(run_of):
    run = run_of(steps=10**9).start()
    expected = {"train/loss/total", "learner/fps", "actor/fps", "env0/fps", "replay/train/steps", "logger/usage/cores"}
    expected |= {"report/loss/total", "eval/loss/total"}

    run.until(lambda: expected <= {key for line in run.metrics for key in line})


def test_a_finished_run_plays_no_step_when_it_is_started_again(run_of):
    run = run_of(steps=200)
    assert run.start().wait() == 0, run.stderr
    before = run.counters

    assert run.start().wait() == 0, run.stderr

    assert run.counters["env_steps"] == before["env_steps"]
    assert "No steps are left" in run.stderr


@pytest.mark.slow
def test_the_agent_may_run_in_the_launcher(run_of):
    run = run_of(steps=200, agent_process=False).start()
    run.played(1)

    assert "agent" not in run.children()
    assert run.wait() == 0, run.stderr
    assert Epochs(run.folder / "checkpoints").newest(), run.stderr


@pytest.mark.slow
def test_the_processes_of_a_blocked_run_sleep(run_of):
    run = run_of(steps=1_000_000).start().played(100)
    helpers = run.children()
    agent = helpers.pop("agent")

    os.kill(agent, signal.SIGSTOP)
    time.sleep(2)  # pending work finishes
    before = sum(map(cpu_seconds, helpers.values()))
    time.sleep(5)
    used = sum(map(cpu_seconds, helpers.values())) - before

    assert used / 5 < 0.05  # cores, all of them together; the reference implementation uses 1.15


def cpu_seconds(pid):
    return sum(int(path.read_text().split()[0]) for path in Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e9


def test_envs_and_replay_may_be_started_elsewhere(run_of, secret):
    addresses = {
        "actor_addr": free_address("127.0.0.2"),
        "replay_addr": free_address("127.0.0.3"),
        "logger_addr": free_address("127.0.0.2"),
    }
    config = {**addresses, "secret": secret, "remote_envs": True, "remote_replay": True, "steps": 200, "eval_envs": 0}
    main = run_of(**config)
    roles = [run_of(**config, logdir=str(main.folder)) for _ in range(3)]

    main.start()
    roles[0].start("--role", "replay")
    for index in (0, 1):
        roles[1 + index].start("--role", "env", "--index", str(index))

    assert main.wait() == 0, main.stderr
    assert main.counters["env_steps"] >= 200
    for role in roles:
        assert role.terminate().wait() == 0, role.stderr


@pytest.fixture
def networks():
    """Two machines, as far as a network is concerned: `(prefix, prefix)` of 10.77.0.1 and 10.77.0.2.

    In user namespaces, which need no root; skipped where the kernel does not allow them.
    """
    holders = []

    def hold(*prefix):
        try:
            process = subprocess.Popen([*prefix, "sh", "-c", "echo; exec sleep 600"], stdout=subprocess.PIPE)
        except FileNotFoundError as error:
            pytest.skip(f"there is no {error.filename} here")
        holders.append(process)
        if not process.stdout.readline():
            pytest.skip("this machine allows no network namespaces")
        return ["nsenter", "-t", str(process.pid), "-U", "-n", "--preserve-credentials"]

    try:
        left = hold("unshare", "-Urn")
        right = hold(*left, "unshare", "-n")
        subprocess.run(
            [*left, "ip", "link", "add", "west", "type", "veth", "peer", "east", "netns", right[2]], check=True
        )
        for prefix, name, address in ((left, "west", "10.77.0.1/24"), (right, "east", "10.77.0.2/24")):
            setup = f"ip addr add {address} dev {name} && ip link set {name} up && ip link set lo up"
            subprocess.run([*prefix, "sh", "-c", setup], check=True)
        yield left, right
    finally:
        for process in holders:
            process.kill()
            process.wait()
            process.stdout.close()


@pytest.mark.slow
def test_replay_and_envs_in_another_network_serve_the_run(run_of, secret, networks):
    addresses = {"actor_addr": "10.77.0.1:7001", "logger_addr": "10.77.0.1:7003", "replay_addr": "10.77.0.2:7002"}
    config = {**addresses, "secret": secret, "remote_envs": True, "remote_replay": True, "steps": 200}
    main = run_of(**config)
    replay, envs = (run_of(**config, logdir=str(main.folder)) for _ in range(2))
    main.prefix, (replay.prefix, envs.prefix) = networks[0], [networks[1]] * 2

    main.start()
    replay.start("--role", "replay")
    envs.start("--role", "env", "--index", "0-2")

    assert main.wait() == 0, main.stderr
    assert main.counters["env_steps"] >= 200
    assert main.counters["updates"] > 0
    assert Epochs(main.folder / "checkpoints").newest()
    for role in (replay, envs):
        assert role.terminate().wait() == 0, role.stderr


def test_a_role_alone_needs_addresses(run_of):
    run = run_of().start("--role", "replay")

    assert run.wait() == 2
    assert "needs actor_addr" in run.stderr


def test_a_role_alone_needs_the_secret(run_of, monkeypatch):
    monkeypatch.delenv("DREAMER_SECRET", raising=False)
    addresses = {name: free_address() for name in ("actor_addr", "logger_addr", "replay_addr")}

    run = run_of(**addresses).start("--role", "replay")

    assert run.wait() == 2
    assert "A role needs the run's secret" in run.stderr


@pytest.mark.parametrize("which", ["remote_envs", "remote_replay"])
def test_a_run_with_remote_roles_creates_no_secret_of_its_own(tmp_path, monkeypatch, which):
    monkeypatch.delenv("DREAMER_SECRET", raising=False)
    config = DreamerConfig(run_id="T", logdir=str(tmp_path), **{which: True})

    with pytest.raises(ConfigError, match="Set DREAMER_SECRET"):
        prepare(config)
    monkeypatch.setenv("DREAMER_SECRET", "given")
    assert prepare(config).secret == "given"


@pytest.mark.parametrize(
    ("index", "names"), [("2", ["env2"]), ("0-1", ["env0", "env1"]), ("1-1", ["env1"]), ("0-4", None), ("-1", None)]
)
def test_a_role_may_be_several_envs(index, names):
    config = DreamerConfig(run_id="T", envs=3, eval_envs=1)

    if names:
        assert names_of("env", index, config) == names
    else:
        with pytest.raises(ConfigError, match="this run has envs 0 to 3"):
            names_of("env", index, config)


@pytest.mark.slow
def test_a_run_switches_between_the_scripts_parallel_and_train(run_of):
    run = run_of(steps=200).start()
    assert run.wait() == 0, run.stderr
    many = dict(run.counters.to_dict())

    run.config.write_text(run.config.read_text().replace('"steps": 200', '"steps": 400'))
    assert run.start("--script", "train").wait() == 0, run.stderr
    one = dict(run.counters.to_dict())
    run.config.write_text(run.config.read_text().replace('"steps": 400', '"steps": 600'))
    assert run.start("--script", "parallel").wait() == 0, run.stderr

    assert many["env_steps"] < one["env_steps"] < run.counters["env_steps"]
    assert many["updates"] < one["updates"] < run.counters["updates"]
    epochs = Epochs(run.folder / "checkpoints")
    learned = read_arrays(epochs.path(epochs.newest()) / "agent.npz")
    assert int(learned["updates"]) == run.counters["updates"]


def test_the_same_seed_gives_the_same_run_in_one_process(run_of):
    runs = [run_of(steps=200, script="train", emit_steps=True, eval_envs=0).start() for _ in range(2)]

    rewards = []
    for run in runs:
        assert run.wait() == 0, run.stderr
        rewards.append([line["reward"] for line in run.lines if line.get("event_type") == "step"])

    assert len(rewards[0]) > 150
    assert rewards[0] == rewards[1]


def test_script_train_saves_when_it_is_stopped(run_of):
    run = run_of(steps=10_000_000, script="train", save_every_s=1000).start().played(50)

    assert run.terminate().wait() == 143, run.stderr

    epochs = Epochs(run.folder / "checkpoints")
    assert epochs.read(epochs.newest())["counters"]["env_steps"] == run.counters["env_steps"]


def test_a_checkpoint_is_evaluated(run_of):
    trained = run_of(steps=100, script="train").start()
    assert trained.wait() == 0, trained.stderr

    checkpoints = str(trained.folder / "checkpoints")
    run = run_of(extras={"mode": "policy_eval"}, checkpoint=checkpoints, episodes=3).start()
    assert run.wait() == 0, run.stderr

    summary = json.loads((run.folder / "eval_summary.json").read_text())
    assert (summary["episodes"], summary["checkpoint_epoch"]) == (3, 1)
    assert np.isclose(summary["mean_return"], np.mean([row["return"] for row in summary["rows"]]))
    assert sum(line.get("event_type") == "episode" for line in run.lines) == 3


@pytest.mark.slow
def test_evaluation_without_a_checkpoint_says_what_to_do(run_of):
    run = run_of(script="eval", random_agent=False, size="debug")
    pytest.importorskip("jax")

    assert run.start().wait() == 1

    failed = next(line for line in run.lines if line.get("event") == "run_failed")
    assert "no complete checkpoint" in failed["payload"]["error"]


def test_addresses_are_free_and_on_this_machine_unless_given(tmp_path):
    config = prepare(DreamerConfig(run_id="T", logdir=str(tmp_path), logger_addr="10.0.0.1:5000"))

    assert config.logger_addr == "10.0.0.1:5000"
    assert config.actor_addr.startswith("127.0.0.1:")
    assert config.actor_addr != config.replay_addr
    assert len(config.secret) == 32


def test_what_the_agent_compiles_is_kept_with_the_run_unless_the_user_says_where(tmp_path, monkeypatch):
    config = DreamerConfig(run_id="T", logdir=str(tmp_path))
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR", raising=False)

    assert variables_of("agent", config)["JAX_COMPILATION_CACHE_DIR"] == str(tmp_path / "compiled")
    assert "JAX_COMPILATION_CACHE_DIR" not in variables_of("replay", config)

    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", "/elsewhere")
    assert "JAX_COMPILATION_CACHE_DIR" not in variables_of("agent", config)


def test_a_suite_sets_what_the_config_leaves_out(tmp_path):
    config = DreamerConfig(run_id="T", suite="crafter", steps=500, logdir=str(tmp_path)).resolved()

    assert (config.env, config.train_ratio, config.envs, config.steps) == ("crafter_reward", 512, 1, 500)


def test_a_suite_may_set_options_of_its_env(tmp_path):
    config = DreamerConfig(run_id="T", suite="dmc_vision", env_options={"repeat": 2}, logdir=str(tmp_path)).resolved()

    assert config.env_options == {"image": True, "proprio": False, "repeat": 2}


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"batchsize": 3}, "no such setting"),
        ({"envs": "two"}, "envs: must be an integer"),
        ({"script": "dance"}, "script: must be one of"),
        ({"outputs": ["paper"]}, "outputs: 'paper' is not valid"),
    ],
)
def test_an_unknown_key_is_named(keys, words):
    with pytest.raises(ConfigError, match=words):
        DreamerConfig.from_dict({"run_id": "T", **keys})


def test_the_schema_has_every_key_and_the_lab():
    schema = make_schema()

    assert {"env", "env_id", "total_timesteps", "train_ratio", "extras"} <= set(schema["properties"])
    assert schema["x-mosaic-lab"] == LAB


def test_the_schema_states_no_default_that_a_suite_decides_and_no_unused_key():
    properties = make_schema()["properties"]

    assert not [name for name in ("env", "steps", "envs", "train_ratio", "size") if "default" in properties[name]]
    assert not {"algo", "name", "variant"} & set(properties)
    assert properties["env_id"]["x-mosaic-same-as"] == "env"


def test_as_an_operator_it_knows_gymnasiums_names():
    way = make_schema()["x-mosaic-interactive"]

    assert set(way["settings"]) <= set(make_schema()["properties"])
    names = [name.replace("{env}", "MiniGrid-Empty-8x8-v0") for name in way["env_ids"]]
    assert {split_task(name)[1] for name in names} == {"MiniGrid-Empty-8x8-v0"}
