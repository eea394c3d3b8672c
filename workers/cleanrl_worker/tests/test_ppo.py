"""Our PPO: its pieces against the definitions, its flags against upstream's, and whole trainings."""

import json
import os

import numpy as np
import pytest
import torch
from cleanrl_worker.agents import CHOICES
from cleanrl_worker.algorithms.ppo import estimate_advantages, policy_loss, value_loss
from cleanrl_worker.checkpoints import load_checkpoint, save_checkpoint
from cleanrl_worker.registry import find
from cleanrl_worker.upstream import find_script

SHORT = {"algo": "ppo", "env_id": "CartPole-v1", "total_timesteps": 1024, "seed": 1}
# CartPole is learned quickly with many passes over small batches.
CARTPOLE = {
    "num_envs": 8,
    "num_steps": 32,
    "num_minibatches": 1,
    "update_epochs": 20,
    "gamma": 0.98,
    "gae_lambda": 0.8,
    "learning_rate": 1e-3,
    "ent_coef": 0.0,
    "clip_vloss": False,
}


def test_it_has_the_flags_of_upstreams_ppo_and_a_choice_of_networks():
    ours, theirs = dict(find_script(find("ppo")).flags), find_script(find("ppo_upstream")).flags

    agent = ours.pop("agent")
    assert (agent.default, agent.choices) == ("auto", CHOICES)
    assert {name: (flag.kind, flag.default) for name, flag in ours.items() if name != "exp_name"} == {
        name: (flag.kind, flag.default) for name, flag in theirs.items() if name != "exp_name"
    }


def first_of_each_step(trial):
    """(step, return) of every episode; if several end in one step only the first, as upstream reports it."""
    lines = [line for line in trial.measurements() if line.get("name") == "charts/episodic_return"]
    found: dict[int, float] = {}
    for line in lines:
        found.setdefault(line["step"], line["value"])
    return list(found.items())


def test_with_the_same_seed_it_plays_the_same_episodes_as_cleanrls_ppo(launch):
    config = {**SHORT, "total_timesteps": 4096}
    ours, theirs = launch(config), launch({**config, "algo": "ppo_upstream"})

    assert (ours.code, theirs.code) == (0, 0), (ours.last_words, theirs.last_words)
    played = first_of_each_step(ours)
    assert len(played) > 100
    assert played == first_of_each_step(theirs)
    one, other = (load_checkpoint(trial.ground.run).modules["agent"] for trial in (ours, theirs))
    assert list(one) == list(other)
    assert all(torch.equal(one[name], other[name]) for name in one)


def discounted_errors(rewards, values, dones, last_value, last_done, gamma, lam):
    """The definition: the sum of (gamma lambda)^k times the k-th error from here, up to the episode's end."""
    steps, envs = rewards.shape
    found = np.zeros((steps, envs))
    next_values = np.vstack([values[1:], last_value[None]])
    ends = np.vstack([dones[1:], last_done[None]])
    errors = rewards + gamma * next_values * (1 - ends) - values
    for env in range(envs):
        for start in range(steps):
            for t in range(start, steps):
                found[start, env] += (gamma * lam) ** (t - start) * errors[t, env]
                if ends[t, env]:
                    break
    return found


def test_advantages_are_the_discounted_sums_of_errors_up_to_the_end_of_the_episode():
    rng = np.random.default_rng(1)
    rewards, values = rng.normal(size=(2, 12, 3))
    dones = (rng.random((12, 3)) < 0.2).astype(float)
    last_value, last_done = rng.normal(size=3), np.array([0.0, 1.0, 0.0])
    given = (rewards, values, dones, last_value, last_done)

    found = estimate_advantages(*(torch.tensor(part) for part in given), 0.9, 0.8)

    assert np.allclose(found.numpy(), discounted_errors(*given, 0.9, 0.8))


def test_the_policy_loss_does_not_reward_going_beyond_the_clip():
    advantages = torch.tensor([1.0, -1.0])
    near = policy_loss(torch.tensor([1.1, 0.9]), advantages, 0.2)
    edge = policy_loss(torch.tensor([1.2, 0.8]), advantages, 0.2)
    beyond = policy_loss(torch.tensor([3.0, 0.1]), advantages, 0.2)
    wrong_way = policy_loss(torch.tensor([0.5, 2.0]), advantages, 0.2)

    assert near == pytest.approx(-0.1)
    assert edge == beyond == pytest.approx(-0.2)
    assert wrong_way == pytest.approx(0.75)  # not clipped: the policy must be able to return


def test_the_value_loss_is_half_the_squared_error_or_the_worse_of_two():
    new, old, returns = torch.tensor([5.0]), torch.tensor([0.0]), torch.tensor([6.0])

    assert value_loss(new, old, returns, None) == pytest.approx(0.5)
    assert value_loss(new, old, returns, 0.2) == pytest.approx(0.5 * 5.8**2)


def test_it_trains_and_logs_what_upstream_logs(launch):
    trial = launch({**SHORT, "total_timesteps": 512})

    assert trial.code == 0, trial.last_words
    logged = {line["name"] for line in trial.measurements() if line.get("event_type") == "metric"}
    assert {"charts/episodic_return", "charts/episodic_length", "charts/learning_rate", "charts/SPS"} <= logged
    names = "value_loss policy_loss entropy old_approx_kl approx_kl clipfrac explained_variance"
    assert {f"losses/{name}" for name in names.split()} <= logged
    saved = load_checkpoint(trial.ground.run)
    assert (saved.algo, saved.global_step, set(saved.modules), set(saved.optimizers)) == (
        "ppo",
        512,
        {"agent"},
        {"optimizer"},
    )


@pytest.mark.slow
def test_it_resumes_bit_for_bit(launch):
    extras = {"checkpoint_every": 512, "algo_params": {"num_envs": 4}}
    whole = launch({**SHORT, "extras": extras})
    half = os.path.join(whole.ground.run, "checkpoints", "checkpoint-000000000512.pt")
    resumed = launch({**SHORT, "extras": {**extras, "mode": "resume_training", "policy_path": half}})

    assert (whole.code, resumed.code) == (0, 0), (whole.last_words, resumed.last_words)
    one, other = load_checkpoint(whole.ground.run), load_checkpoint(resumed.ground.run)
    assert one.global_step == other.global_step == 1024
    for name, weights in one.modules["agent"].items():
        assert torch.equal(weights, other.modules["agent"][name]), name


def test_a_checkpoint_without_the_setting_agent_resumes_with_its_shared_network(launch, tmp_path):
    trained = launch({**SHORT, "total_timesteps": 512, "extras": {"algo_params": {"agent": "mlp"}}})
    now = load_checkpoint(trained.ground.run)
    old = {name: value for name, value in vars(now).items() if name not in ("path", "curriculum")}
    del old["params"]["agent"]
    save_checkpoint(tmp_path, old)

    resumed = launch({"total_timesteps": 1024, "extras": {"mode": "resume_training", "policy_path": str(tmp_path)}})

    assert resumed.code == 0, resumed.last_words
    found = load_checkpoint(resumed.ground.run)
    assert (found.global_step, found.params["agent"]) == (1024, "mlp")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("env_id", "message"),
    [("Pendulum-v1", "has continuous actions, but ppo needs discrete ones"), ("CartPoel-v1", "Did you mean CartPole")],
)
def test_an_unsupported_environment_is_refused_before_training(launch, env_id, message):
    trial = launch({**SHORT, "env_id": env_id})

    assert trial.code == 2
    assert message in trial.events("run_failed")[0]["payload"]["error"]


@pytest.mark.slow
def test_videos_are_recorded(launch):
    trial = launch({**SHORT, "extras": {"capture_video": True}})

    assert trial.code == 0, trial.last_words
    videos = [name for _, _, files in os.walk(os.path.join(trial.ground.run, "videos")) for name in files]
    assert any(name.endswith(".mp4") for name in videos)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_it_learns_to_balance_a_pole(launch, seed):
    trained = launch({**SHORT, "total_timesteps": 100_000, "seed": seed, "extras": {"algo_params": CARTPOLE}})
    assert trained.code == 0, trained.last_words

    requested = {"mode": "policy_eval", "policy_path": trained.ground.run, "eval_episodes": 20}
    evaluated = launch({"seed": 100, "extras": requested})

    with open(os.path.join(evaluated.ground.run, "eval_summary.json")) as file:
        summary = json.load(file)
    assert summary["episodes"] == 20
    assert summary["mean_return"] >= 400, summary["returns"]
