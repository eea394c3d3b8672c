"""The worker learns: a policy trained by it plays well on seeds that the training did not use. Run with -m slow."""

import json

import pytest

pytestmark = pytest.mark.slow

POLE = {"n_steps": 256, "batch_size": 64}
PENDULUM = {"learning_rate": 1e-3}
# Those of RL Baselines3 Zoo; with the library's defaults, which are for Atari, it does not learn.
DQN = {
    "learning_rate": 2.3e-3,
    "batch_size": 64,
    "buffer_size": 100_000,
    "learning_starts": 1000,
    "target_update_interval": 10,
    "train_freq": 256,
    "gradient_steps": 128,
    "exploration_fraction": 0.16,
    "exploration_final_eps": 0.04,
    "policy_kwargs": {"net_arch": [256, 256]},
}


def mean_return(run, trained, episodes=20, at=""):
    assert trained.code == 0, trained.errors
    extras = {"mode": "policy_eval", "policy_path": str(trained.folder / at), "eval_episodes": episodes}
    done = run(kind="evals", extras=extras)
    assert done.code == 0, done.errors
    return json.loads((done.folder / "eval_summary.json").read_text())["mean_return"]


@pytest.mark.timeout(1800)
def test_ppo_learns_cartpole(run):
    trained = run(algo="ppo", env_id="CartPole-v1", total_timesteps=30_000, seed=1)

    assert mean_return(run, trained) >= 400


@pytest.mark.timeout(1800)
def test_sac_learns_pendulum(run):
    trained = run(algo="sac", env_id="Pendulum-v1", total_timesteps=5_000, seed=1, extras={"algo_params": PENDULUM})

    assert mean_return(run, trained) >= -250


@pytest.mark.timeout(1800)
def test_dqn_learns_cartpole_with_tuned_hyperparameters(run):
    extras = {"eval_every": 5000, "eval_episodes": 5, "save_replay_buffer": False, "algo_params": DQN}
    trained = run(algo="dqn", env_id="CartPole-v1", total_timesteps=50_000, seed=1, extras=extras)

    # The last policy may be a bad one: DQN's return varies strongly during the training.
    assert mean_return(run, trained, at="checkpoints/best") >= 300


@pytest.mark.timeout(1800)
def test_sbx_learns_cartpole_and_its_checkpoint_plays(run):
    pytest.importorskip("sbx")
    extras = {"n_envs": 4, "algo_params": POLE}
    trained = run(algo="sbx_ppo", env_id="CartPole-v1", total_timesteps=60_000, seed=1, extras=extras)

    assert mean_return(run, trained) >= 400


@pytest.mark.timeout(1800)
def test_environments_in_processes_of_their_own_train_and_are_saved(run):
    extras = {"n_envs": 2, "vec_env": "subproc"}
    trained = run(algo="a2c", env_id="CartPole-v1", total_timesteps=200, extras=extras)

    assert mean_return(run, trained, episodes=1) > 0


@pytest.mark.timeout(1800)
def test_an_atari_policy_plays_whole_games_with_their_own_rewards(run):
    extras = {"frame_stack": 4, "algo_params": {"n_steps": 16, "batch_size": 16, "n_epochs": 1}}
    trained = run(algo="ppo", env_id="ALE/Pong-v5", total_timesteps=16, extras=extras)

    assert mean_return(run, trained, episodes=1) <= -15  # a game of Pong that is lost, not one life of it
