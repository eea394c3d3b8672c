"""Whole runs with the real agent, which compiles for a minute; processes that are killed or remote come back."""

import json
import os
import signal

import numpy as np
import pytest
from dreamer_worker.checkpoint import Epochs, read_arrays
from dreamer_worker.rpc import free_address
from mosaic_sdk.files import read_json
from test_faults import check_counts, wait_until_gone

REAL = {"random_agent": False, "size": "debug", "log_every_s": 1, "report_every_s": 5, "save_every_s": 3}
BATCH = 4  # sequences per update, see TINY
ROLES = ("env0", "replay", "logger", "agent", "env1", "env2")
EVERY = 100
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


@pytest.fixture
def real_run(run_of, tmp_path_factory, monkeypatch):
    """Creates runs with the real agent. Compiled programs are cached for the other tests."""
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "compiled"))
    monkeypatch.setenv("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.5")

    def make(**config):
        run = run_of(**{**REAL, **config})
        run.limit_s = 900  # a compiler on a loaded machine
        return run

    return make


def test_each_process_is_killed_while_it_compiles_and_again_while_it_learns(run_of):
    run = run_of(**REAL, steps=EVERY * (len(ROLES) + 3))
    run.limit_s = 900
    run.start().played(45)  # the learner has begun with its first update, and the limiter holds the envs
    kill(run, ROLES)  # of the agent the first compilation is lost
    run.until(lambda: run.counters["updates"] > 0)
    run.until(lambda: Epochs(run.folder / "checkpoints").committed())

    begun = run.counters["env_steps"]
    for number, role in enumerate(ROLES, start=1):
        run.played(begun + EVERY * number)
        kill(run, [role])

    assert run.wait() == 0, run.stderr
    summary = run.lines[-1]["payload"]
    assert run.lines[-1]["event"] == "run_completed"
    assert summary["restarts"] >= 2 * len(ROLES)
    assert summary["env_steps"] >= EVERY * (len(ROLES) + 3)
    check_counts(run)
    check_epoch(run)


def kill(run, roles):
    """Send SIGKILL to each role once it is running."""
    for role in roles:
        run.until(lambda role=role: role in run.children())
        os.kill(run.children()[role], signal.SIGKILL)


def check_epoch(run):
    """All parts of the newest epoch belong to the end of the run."""
    epochs = Epochs(run.folder / "checkpoints")
    epoch = epochs.newest()
    parts = {name: read_json(epochs.path(epoch) / f"{name}.json") for name in ("commit", "replay", "logger")}
    assert {part["epoch"] for part in parts.values()} == {epoch}
    assert parts["commit"]["counters"] == run.counters.to_dict()
    assert parts["logger"]["step"] == run.counters["env_steps"]
    assert parts["replay"]["limiter"]["inserts"] <= run.counters["env_steps"]
    assert learned(run)["moments/updates"] <= run.counters["updates"]


def learned(run):
    epochs = Epochs(run.folder / "checkpoints")
    return read_arrays(epochs.path(epochs.newest()) / "agent.npz")


def test_a_run_is_stopped_while_it_compiles_and_while_it_learns_and_resumes(run_of):
    run = run_of(**REAL, steps=1_000_000)
    run.limit_s = 900
    run.start().played(45)
    stop(run)
    assert run.counters["updates"] == 0
    for name in ("metrics.jsonl", "stdout.log"):  # it goes back: an update that compiles cannot be saved
        (run.folder / name).unlink()

    run.start().until(lambda: run.counters["updates"] > 20)
    stop(run)
    saved, weights = check_one_moment(run, launches=2), learned(run)
    assert run.lines[-1]["event"] == "run_cancelled"

    run.config.write_text(run.config.read_text().replace("1000000", str(saved["env_steps"] + 200)))
    assert run.start().wait() == 0, run.stderr
    ended = check_one_moment(run, launches=3)
    assert saved["env_steps"] + 200 <= ended["env_steps"] < saved["env_steps"] + 210
    assert ended["updates"] > saved["updates"]
    check_counts(run)
    # The optimizer's warm-up continues as well: fresh moments would have moved every weight by other steps.
    assert learned(run)["acted"] > weights["acted"]


def stop(run):
    children = list(run.children().values())
    assert run.terminate().wait() == 143, run.stderr
    wait_until_gone(children)


def check_one_moment(run, launches):
    """Agent, replay and counters agree on steps and updates: nothing was lost, nothing was done twice."""
    check_epoch(run)
    counters = run.counters.to_dict()
    epochs = Epochs(run.folder / "checkpoints")
    limiter = read_json(epochs.path(epochs.newest()) / "replay.json")["limiter"]
    assert limiter["inserts"] == counters["env_steps"]
    assert learned(run)["moments/updates"] == counters["updates"]
    # Batches that were on their way when it stopped are sampled but not learned from: three at most.
    assert 0 <= limiter["samples"] - BATCH * counters["updates"] <= 3 * BATCH * launches
    return counters


def test_a_report_shows_what_the_agent_dreams_of_training_and_evaluation(real_run):
    from PIL import Image

    run = real_run(env="dummy_image", steps=300, report_every_s=2, replay_gb=0.1, report_length=8).start()

    assert run.wait() == 0, run.stderr

    keys = {key for line in run.metrics for key in line}
    assert {"train/loss/total", "report/loss/total", "eval/loss/total", "eval_episode/score"} <= keys
    for kind in ("report", "eval"):
        clip = Image.open(sorted((run.folder / "videos").glob(f"{kind}_open_loop_image-*.gif"))[-1])
        assert clip.size == (BATCH * 64, 3 * 64)  # sequences side by side; real, dreamed, difference
        assert clip.n_frames > 1
        real = np.asarray(clip.convert("RGB"))[:64]
        assert real.max() > 200  # the dot
    assert run.counters["eval_episodes"] > 0


def test_roles_on_another_address_serve_the_real_agent_and_come_back_when_killed(real_run, secret):
    addresses = {
        "actor_addr": free_address("127.0.0.1"),
        "logger_addr": free_address("127.0.0.1"),
        "replay_addr": free_address("127.0.0.2"),
    }
    config = {**addresses, "secret": secret, "remote_envs": True, "remote_replay": True, "steps": 500}
    main = real_run(**config)
    replay, envs = (real_run(**config, logdir=str(main.folder)) for _ in range(2))

    main.start()
    replay.start("--role", "replay")
    envs.start("--role", "env", "--index", "0-2")
    main.until(lambda: (main.folder / "counters.bin").exists() and main.counters["updates"] > 0)
    kill(envs, ["env0", "env2"])
    kill(replay, ["replay"])

    assert main.wait() == 0, main.stderr
    assert main.counters["env_steps"] >= 500
    assert main.lines[-1]["payload"]["restarts"] == 0  # the launcher had no process to restart
    check_epoch(main)
    for role in (replay, envs):
        children = list(role.children().values())
        assert role.terminate().wait() == 0, role.stderr
        wait_until_gone(children)


def test_a_remote_replay_is_rolled_back_with_a_run_that_was_killed(run_of, secret):
    """With the random agent: this is about which steps the replay holds."""
    addresses = {name: free_address() for name in ("actor_addr", "logger_addr", "replay_addr")}
    config = {**addresses, "secret": secret, "remote_replay": True, "steps": 1_000_000}
    main = run_of(**config)
    replay = run_of(**config, logdir=str(main.folder)).start("--role", "replay")
    main.start().until(lambda: Epochs(main.folder / "checkpoints").newest())
    main.config.write_text(json.dumps({**json.loads(main.config.read_text()), "save_every_s": 1000}))
    first = replay.children()["replay"]

    main.process.kill()
    main.process.wait()
    main.start().until(lambda: main.counters["launches"] == 2)
    main.played(main.counters["env_steps"] + 100)
    stop(main)

    assert replay.children()["replay"] != first
    epochs = Epochs(main.folder / "checkpoints")
    limiter = read_json(epochs.path(epochs.newest()) / "replay.json")["limiter"]
    assert limiter["inserts"] == main.counters["env_steps"]


def test_a_launcher_that_holds_the_agent_is_stopped_while_it_compiles(run_of):
    run = run_of(**REAL, steps=1_000_000, agent_process=False)
    run.limit_s = 900
    run.start().played(45)

    stop(run)

    assert run.lines[-1]["event"] == "run_cancelled"
