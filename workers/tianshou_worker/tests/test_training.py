"""Trainings of a few hundred steps: what is reported, saved, resumed, evaluated, played and stopped."""

import json
import signal

import pytest
from mosaic_sdk.config import ConfigError
from mosaic_sdk.interactive import Session
from tianshou_worker.algorithms import CONTINUOUS, DEFAULTS, ON_POLICY
from tianshou_worker.config import TianshouConfig
from tianshou_worker.interactive import make_player

SMALL = {"collection_step_num_env_steps": 64, "update_step_num_repetitions": 1}
FEW = {"start_steps": 32, "buffer_size": 500, "batch_size": 8, "collection_step_num_env_steps": 16}


def config(**keys):
    return TianshouConfig.from_dict({"run_id": "test", **keys})


def test_a_training_is_saved_resumed_evaluated_and_played(run):
    extras = {"n_envs": 2, "checkpoint_every": 128, "report_every": 64, "algo_params": SMALL}
    first = run(algo="ppo", total_timesteps=256, extras=extras)
    assert first.code == 0, first.errors
    assert first.of("run_completed")[0]["payload"]["total_steps"] == 256
    episodes = first.of("episode")
    assert all(one["total_reward"] == one["steps"] and one["terminated"] for one in episodes)
    assert {one["env_index"] for one in episodes} == {0, 1}
    assert sum(one["steps"] for one in episodes) <= 256
    assert first.of("metric")
    assert [one["payload"]["step"] for one in first.of("checkpoint_saved")] == [128, 256]
    commit = json.loads(next(first.folder.glob("checkpoints/*256.pt.commit.json")).read_text())
    assert (commit["algo"], commit["settings"]["extras"]["n_envs"]) == ("ppo", 2)
    assert list((first.folder / "tensorboard").glob("events.*"))

    second = run(total_timesteps=384, extras={"mode": "resume_training", "policy_path": str(first.folder)})
    assert second.code == 0, second.errors
    assert second.of("checkpoint_loaded")[0]["payload"]["step"] == 256
    assert min(line["global_step"] for line in second.of("episode")) > 256

    evaluation = {"mode": "policy_eval", "policy_path": str(second.folder), "eval_episodes": 2}
    one, two = run(extras=evaluation), run(extras=evaluation)
    assert one.code == 0, one.errors
    assert (one.summary["seeds"], one.summary["checkpoint_step"]) == ([1_000_000, 1_000_001], 384)
    assert one.summary["rows"] == two.summary["rows"]

    playing = config(extras={"mode": "interactive", "policy_path": str(second.folder)})
    session = Session(lambda: make_player(playing), run_id="test", first_seed=1)
    ready = session.answer('{"cmd": "reset", "seed": 1000000}')[0]
    length = 0
    while session.answer('{"cmd": "step"}')[-1]["type"] == "step":
        length += 1
    assert (ready["policy"], length + 1) == ("checkpoint", one.summary["rows"][0]["length"])
    session.close()


@pytest.mark.parametrize("algo", [name for name in DEFAULTS if name != "ppo"])
def test_every_algorithm_trains_and_plays(run, algo):
    env_id = "Pendulum-v1" if algo in CONTINUOUS else "CartPole-v1"
    trained = run(
        algo=algo, env_id=env_id, total_timesteps=80, extras={"algo_params": SMALL if algo in ON_POLICY else FEW}
    )
    played = run(extras={"mode": "policy_eval", "policy_path": str(trained.folder), "eval_episodes": 1}, seed=7)

    assert (trained.code, played.code) == (0, 0), trained.errors + played.errors
    assert played.of("episode")[0]["episode_seed"] == 7


def test_a_training_that_is_stopped_saves_first(run, monkeypatch):
    from tianshou_worker.runtime import TianshouTraining

    before, at_step = signal.getsignal(signal.SIGTERM), TianshouTraining.at_step

    def stop_at_the_hundredth(self):
        if self.steps == 100:
            signal.raise_signal(signal.SIGTERM)
        at_step(self)

    monkeypatch.setattr(TianshouTraining, "at_step", stop_at_the_hundredth)
    try:
        done = run(algo="ppo", total_timesteps=10**8, extras={"algo_params": SMALL})
    finally:
        signal.signal(signal.SIGTERM, before)

    assert done.code == 143
    assert [line["event"] for line in done.lines if "event" in line][-2:] == ["checkpoint_saved", "run_cancelled"]
    assert done.of("checkpoint_saved")[0]["payload"]["step"] == 100


def test_what_cannot_be_run_is_refused():
    with pytest.raises(ConfigError, match=r"there is no algorithm 'pppo'\. Did you mean ppo"):
        config(algo="pppo")
    with pytest.raises(ConfigError, match=r"eps_clop: ppo has no such setting. Did you mean eps_clip\?"):
        config(extras={"algo_params": {"eps_clop": 1}})
    with pytest.raises(ConfigError, match=r"algo_params.gamma"):
        config(extras={"algo_params": {"gamma": "high"}})
    with pytest.raises(ConfigError, match="the worker has no such setting"):
        config(n_env=2)


def test_an_algorithm_refuses_actions_that_it_cannot_take(run):
    done = run(algo="dqn", env_id="Pendulum-v1", total_timesteps=10)

    assert (done.code, done.errors.startswith("algo: dqn needs discrete actions")) == (2, True)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_ppo_learns_cartpole(run):
    trained = run(algo="ppo", total_timesteps=60_000, seed=1, extras={"n_envs": 4})
    done = run(extras={"mode": "policy_eval", "policy_path": str(trained.folder), "eval_episodes": 20})

    assert done.summary["mean_return"] >= 400
