"""Policy evaluation: the right seeds, the environment's own rewards, every kind of network, the files it writes."""

import json
import os
import signal
import sys

import gymnasium
import numpy as np
import pytest
import torch
from cleanrl_worker.agents import MLPAgent
from cleanrl_worker.checkpoints import save_checkpoint
from cleanrl_worker.config import CleanRLWorkerConfig
from cleanrl_worker.evaluate import evaluate
from cleanrl_worker.gyms import SHIM_FOLDER
from mosaic_sdk.checkpoints import CheckpointError
from mosaic_sdk.config import ConfigError


@pytest.fixture(scope="module", autouse=True)
def our_gym():
    """A worker plays one algorithm with one gym. These tests play several with the shim, even if gym is loaded.

    Tests of other modules in this process get the gym back that they had: envpool needs the real one.
    """
    path, loaded = list(sys.path), take_gym()
    sys.path.insert(0, str(SHIM_FOLDER))
    import gym

    assert gym.__file__.startswith(str(SHIM_FOLDER))
    yield
    take_gym()
    sys.path[:] = path
    sys.modules.update(loaded)


def take_gym():
    """Remove gym and its modules from the imported ones, and return them."""
    names = [name for name in sys.modules if name.partition(".")[0] == "gym"]
    return {name: sys.modules.pop(name) for name in names}


@pytest.fixture(autouse=True)
def run_dir(tmp_path, monkeypatch):
    """The working directory is the run's folder, as when the daemon starts a worker."""
    folder = tmp_path / "run"
    folder.mkdir()
    before = dict(os.environ)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("MOSAIC_RUN_DIR", str(folder))
    yield folder
    os.environ.clear()
    os.environ.update(before)


def config_for(path, algo="", env_id="", seed=7, **extras):
    given = {name: value for name, value in (("algo", algo), ("env_id", env_id)) if value}
    extras = {"mode": "policy_eval", "policy_path": str(path), **extras}
    return CleanRLWorkerConfig.from_dict({"run_id": "R1", "seed": seed, "extras": extras, **given})


def leaning_agent():
    """Pushes in the direction in which the pole leans; lasts about forty steps."""
    agent = MLPAgent(4, 2)
    with torch.no_grad():
        for part in agent.parameters():
            part.zero_()
        agent.features[0].weight[0] = torch.tensor([0.0, 0.0, 3.0, 0.0])
        agent.features[2].weight[0, 0] = 3.0
        agent.actor.weight[:, 0] = torch.tensor([-20.0, 20.0])
    return agent


@pytest.fixture
def ppo_checkpoint(tmp_path):
    return save_checkpoint(
        tmp_path / "made",
        {
            "algo": "ppo",
            "env_id": "CartPole-v1",
            "global_step": 1000,
            "modules": {"agent": leaning_agent().state_dict()},
            "params": {"gamma": 0.99},
        },
    )


def played_by_hand(seed, gamma=0.99):
    """One episode of that agent, without the worker's code."""
    env = gymnasium.make("CartPole-v1")
    observation, _ = env.reset(seed=seed)
    agent, steps, discounted = leaning_agent(), 0, 0.0
    while True:
        action = int(agent.best_action(torch.as_tensor(observation)[None])[0])
        observation, reward, terminated, truncated, _ = env.step(action)
        discounted += gamma**steps * reward
        steps += 1
        if terminated or truncated:
            return steps, discounted


def summary(run_dir):
    return json.loads((run_dir / "eval_summary.json").read_text())


def test_episode_n_is_played_with_the_seed_plus_n(ppo_checkpoint, run_dir):
    evaluate(config_for(ppo_checkpoint, eval_episodes=5, eval_batch_size=3, eval_deterministic=True))

    by_hand = [played_by_hand(7 + number) for number in range(5)]
    written = summary(run_dir)
    assert written["seeds"] == [7, 8, 9, 10, 11]
    assert written["returns"] == [steps for steps, _ in by_hand]
    assert written["mean_return"] == pytest.approx(np.mean([steps for steps, _ in by_hand]))
    assert written["avg_discounted_return"] == pytest.approx(np.mean([discounted for _, discounted in by_hand]))
    assert len(set(written["returns"])) > 1  # otherwise the seeds have no effect


@pytest.mark.parametrize("batch_size", [1, 4, 64])
def test_the_batch_size_changes_nothing_for_a_deterministic_policy(ppo_checkpoint, run_dir, batch_size):
    evaluate(config_for(ppo_checkpoint, eval_episodes=4, eval_batch_size=batch_size, eval_deterministic=True))

    assert summary(run_dir)["returns"] == [played_by_hand(seed)[0] for seed in (7, 8, 9, 10)]


def test_the_same_seed_gives_the_same_sampled_episodes_and_another_seed_others(tmp_path, run_dir):
    untrained = save_checkpoint(
        tmp_path,
        {"algo": "ppo", "env_id": "CartPole-v1", "global_step": 0, "modules": {"agent": MLPAgent(4, 2).state_dict()}},
    )
    returns = []
    for seed in (7, 7, 8):
        evaluate(config_for(untrained, seed=seed, eval_episodes=6))
        returns.append(summary(run_dir)["returns"])

    assert returns[0] == returns[1] != returns[2]


def test_the_summary_has_the_keys_that_every_worker_writes(ppo_checkpoint, run_dir):
    evaluate(config_for(ppo_checkpoint, eval_episodes=2, eval_deterministic=True))

    written = summary(run_dir)
    first, second = (played_by_hand(seed)[0] for seed in (7, 8))
    assert (written["version"], written["run_id"], written["worker"]) == (1, "R1", "cleanrl")
    assert (written["algo"], written["env_id"], written["deterministic"]) == ("ppo", "CartPole-v1", True)
    assert (written["checkpoint"], written["checkpoint_step"]) == (str(ppo_checkpoint), 1000)
    assert (written["episodes"], written["seeds"]) == (2, [7, 8])
    assert (written["min_return"], written["max_return"]) == (min(first, second), max(first, second))
    assert written["mean_length"] == written["mean_return"] == (first + second) / 2
    row = {"episode_index": 1, "seed": 8, "return": second, "length": second, "terminated": True, "truncated": False}
    assert written["rows"][1] == row


def test_gamma_is_the_trainings_unless_given(ppo_checkpoint, run_dir):
    evaluate(config_for(ppo_checkpoint, eval_episodes=1, eval_deterministic=True))
    assert summary(run_dir)["gamma"] == 0.99

    evaluate(config_for(ppo_checkpoint, eval_episodes=1, eval_gamma=0.5, eval_deterministic=True))
    assert summary(run_dir)["avg_discounted_return"] == pytest.approx(played_by_hand(7, gamma=0.5)[1])


def test_repetitions_continue_with_the_next_seeds_and_stay_in_the_history(ppo_checkpoint, run_dir):
    evaluate(config_for(ppo_checkpoint, eval_episodes=2, eval_repeat=3, eval_deterministic=True))

    written = summary(run_dir)
    assert [part["seeds"] for part in written["history"]] == [[7, 8], [9, 10], [11, 12]]
    assert [part["batch_index"] for part in written["history"]] == [0, 1, 2]
    assert written["returns"] == written["history"][-1]["returns"]
    assert written["version"] == 1


def test_it_emits_episodes_metrics_a_heartbeat_and_the_checkpoint(ppo_checkpoint, capfd):
    result = evaluate(config_for(ppo_checkpoint, eval_episodes=2, eval_deterministic=True))

    lines = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    episodes = [line for line in lines if line.get("event_type") == "episode"]
    assert [line["episode_seed"] for line in episodes] == [7, 8]
    assert [line["total_reward"] for line in episodes] == [played_by_hand(7)[0], played_by_hand(8)[0]]
    metrics = [line["values"] for line in lines if line.get("event_type") == "metric"]
    assert metrics[0]["eval/mean_return"] == result["mean_return"]
    events = [line["event"] for line in lines if "event" in line]
    assert "heartbeat" in events
    assert "checkpoint_loaded" in events
    assert (result["algo"], result["env_id"], result["checkpoint_step"]) == ("ppo", "CartPole-v1", 1000)


def test_tensorboard_has_it_under_eval(ppo_checkpoint, run_dir):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    evaluate(config_for(ppo_checkpoint, eval_episodes=3, eval_deterministic=True))

    curves = EventAccumulator(str(run_dir / "tensorboard")).Reload()
    returns = [point.value for point in curves.Scalars("eval/episode_return")]
    assert returns == [played_by_hand(seed)[0] for seed in (7, 8, 9)]
    assert curves.Scalars("eval/mean_return")[0].value == pytest.approx(np.mean(returns))


def test_analytics_lists_the_results(ppo_checkpoint, run_dir):
    evaluate(config_for(ppo_checkpoint, eval_episodes=1))

    written = json.loads((run_dir / "analytics.json").read_text())
    assert written["artifacts"]["tensorboard"]["log_dir"] == "tensorboard"
    assert written["metadata"]["summary"]["episodes"] == 1


def test_an_episode_can_be_cut_short(ppo_checkpoint, run_dir):
    evaluate(config_for(ppo_checkpoint, eval_episodes=2, eval_max_episode_steps=5))

    assert summary(run_dir)["returns"] == [5, 5]


def test_a_video_is_recorded_on_request(ppo_checkpoint, run_dir):
    evaluate(config_for(ppo_checkpoint, eval_episodes=1, eval_capture_video=True, eval_max_episode_steps=20))

    assert list((run_dir / "videos").rglob("*.mp4"))


def networks():
    """Algorithm, environment, name of the module that acts, its arguments, further keys of the checkpoint."""
    pendulum = {"obs_rms": [{"mean": np.zeros(3), "var": np.ones(3), "count": 10.0}]}
    return [
        ("ppo_upstream", "CartPole-v1", "agent", {}, {}),
        ("dqn", "CartPole-v1", "q_network", {}, {}),
        ("c51", "CartPole-v1", "q_network", {"n_atoms": 21, "v_min": -10, "v_max": 30}, {}),
        ("ppo_continuous_action", "Pendulum-v1", "agent", {}, {"normalisation": pendulum}),
        ("rpo_continuous_action", "Pendulum-v1", "agent", {"rpo_alpha": 0.5}, {"normalisation": pendulum}),
        ("ddpg_continuous_action", "Pendulum-v1", "actor", {}, {}),
        ("td3_continuous_action", "Pendulum-v1", "actor", {}, {}),
        ("sac_continuous_action", "Pendulum-v1", "actor", {}, {}),
    ]


def untrained_checkpoint(folder, algo, env_id, name, params, more):
    """A checkpoint with the weights of the script's own, untrained network."""
    from cleanrl_worker import policy
    from cleanrl_worker.lanes import make_lanes

    config = CleanRLWorkerConfig.from_dict({"run_id": "R1", "algo": algo, "env_id": env_id})
    algorithm, script = policy.load_script(config)
    lane = make_lanes(algorithm, script, env_id, 1, None)[0]
    network = getattr(script, policy.ACTING[name])(policy._as_envs(lane), **params)
    lane.close()
    state = {"algo": algo, "env_id": env_id, "global_step": 5, "modules": {name: network.state_dict()}}
    return save_checkpoint(folder, {**state, "params": params, **more})


@pytest.mark.parametrize(("algo", "env_id", "name", "params", "more"), networks(), ids=[row[0] for row in networks()])
@pytest.mark.parametrize("deterministic", [False, True], ids=["sampled", "greedy"])
def test_every_kind_of_network_is_rebuilt_and_plays(tmp_path, run_dir, algo, env_id, name, params, more, deterministic):
    path = untrained_checkpoint(tmp_path / "made", algo, env_id, name, params, more)

    evaluate(config_for(path, eval_episodes=2, eval_max_episode_steps=30, eval_deterministic=deterministic))

    written = summary(run_dir)
    assert (written["algo"], written["episodes"]) == (algo, 2)
    if env_id == "Pendulum-v1":  # rewards are the environment's own, though PPO normalises them for its learner
        assert all(-16.3 * 30 <= one < 0 for one in written["returns"])
    else:
        assert all(1 <= one <= 30 for one in written["returns"])


MOST_LIKELY = {
    "ppo_upstream": lambda network, batch: network.actor(batch).argmax(1),
    "ppo_continuous_action": lambda network, batch: network.actor_mean(batch),
    "sac_continuous_action": lambda network, batch: network.get_action(batch)[2],
}


@pytest.mark.parametrize("algo", MOST_LIKELY)
def test_a_greedy_policy_always_takes_the_most_likely_action(tmp_path, algo):
    from cleanrl_worker import policy
    from cleanrl_worker.checkpoints import load_checkpoint
    from cleanrl_worker.lanes import make_lanes

    row = next(row for row in networks() if row[0] == algo)
    checkpoint = load_checkpoint(untrained_checkpoint(tmp_path, *row))
    algorithm, script = policy.load_script(config_for(checkpoint.path, algo=algo, env_id=row[1]))
    lane = make_lanes(algorithm, script, row[1], 1, checkpoint)[0]
    greedy = policy.load_policy(checkpoint, script, lane, deterministic=True)
    batch = torch.randn(50, *lane.observation_space.shape)

    actions = greedy.act(batch.numpy(), list(range(50)))

    with torch.no_grad():
        assert np.allclose(actions, MOST_LIKELY[algo](greedy.network, batch).numpy(), atol=1e-6)
    sampled = policy.load_policy(checkpoint, script, lane).act(batch.numpy(), list(range(50)))
    assert not np.allclose(actions, sampled)


def test_observations_are_normalised_as_at_the_trainings_end_and_rewards_are_not(tmp_path):
    from cleanrl_worker import policy
    from cleanrl_worker.checkpoints import load_checkpoint
    from cleanrl_worker.lanes import make_lanes

    rms = {"mean": np.array([1.0, 2.0, 3.0]), "var": np.array([4.0, 4.0, 4.0]), "count": 1000.0}
    path = untrained_checkpoint(
        tmp_path, "ppo_continuous_action", "Pendulum-v1", "agent", {}, {"normalisation": {"obs_rms": [rms]}}
    )
    config = CleanRLWorkerConfig.from_dict({"run_id": "R1", "algo": "ppo_continuous_action", "env_id": "Pendulum-v1"})
    algorithm, script = policy.load_script(config)
    lane = make_lanes(algorithm, script, "Pendulum-v1", 1, load_checkpoint(path))[0]
    bare = gymnasium.make("Pendulum-v1")

    first, steps = lane.reset(3), [lane.step([0.5]) for _ in range(20)]
    raw_first, raw_steps = bare.reset(seed=3)[0], [bare.step([0.5]) for _ in range(20)]

    seen, raw = [first, *(step.observation for step in steps)], [raw_first, *(step[0] for step in raw_steps)]
    assert np.allclose(seen, (np.array(raw) - rms["mean"]) / 2.0, atol=1e-4)
    # The script normalises rewards for its learner; returns use the environment's own.
    assert np.allclose([step.reward for step in steps], [step[1] for step in raw_steps])


@pytest.mark.parametrize(
    ("extras", "message"),
    [
        ({"eval_episodes": 0}, "extras.eval_episodes: must be at least 1, not 0"),
        ({"eval_episodes": "ten"}, 'must be an integer, not "ten"'),
        ({"eval_gamma": 1.5}, "extras.eval_gamma: must be at most 1, not 1.5"),
        ({"eval_deterministic": 1}, "extras.eval_deterministic: must be true or false, not 1"),
    ],
)
def test_an_invalid_setting_is_refused(ppo_checkpoint, extras, message):
    with pytest.raises(ConfigError, match=message):
        evaluate(config_for(ppo_checkpoint, **extras))


def test_a_missing_checkpoint_is_reported(tmp_path):
    with pytest.raises(CheckpointError, match=r"There is no checkpoint .*nowhere\.pt"):
        evaluate(config_for(tmp_path / "nowhere.pt"))


def test_a_checkpoint_of_another_algorithm_is_refused(ppo_checkpoint):
    with pytest.raises(CheckpointError, match="is a checkpoint of the algorithm ppo, but this run's is dqn"):
        evaluate(config_for(ppo_checkpoint, algo="dqn"))


def test_a_checkpoint_of_another_environment_is_refused_unless_requested(ppo_checkpoint, run_dir):
    with pytest.raises(
        CheckpointError, match="is a checkpoint of the environment CartPole-v1, but this run's is CartPole"
    ):
        evaluate(config_for(ppo_checkpoint, env_id="CartPole-v0"))

    evaluate(config_for(ppo_checkpoint, env_id="CartPole-v0", eval_on_other_env=True, eval_episodes=1))
    assert summary(run_dir)["env_id"] == "CartPole-v0"


def test_weights_that_do_not_fit_are_refused_with_what_differs(ppo_checkpoint):
    with pytest.raises(CheckpointError, match=r"does not fit: in agent, features\.0\.weight is \(64, 4\) and must be"):
        evaluate(config_for(ppo_checkpoint, env_id="Acrobot-v1", eval_on_other_env=True))


def test_a_file_that_is_not_a_checkpoint_is_refused(tmp_path):
    (tmp_path / "notes.pt").write_text("hello")

    with pytest.raises(CheckpointError, match=r"notes\.pt is damaged or not a checkpoint"):
        evaluate(config_for(tmp_path / "notes.pt"))


def test_a_checkpoint_without_a_network_that_acts_is_refused(tmp_path):
    path = save_checkpoint(tmp_path, {"algo": "ppo", "env_id": "CartPole-v1", "global_step": 0, "modules": {"qf1": {}}})

    with pytest.raises(CheckpointError, match=r"has no network that acts .*; it has qf1"):
        evaluate(config_for(path))


def test_a_policy_that_saw_normalised_observations_needs_their_normalisation(tmp_path):
    path = untrained_checkpoint(tmp_path, "ppo_continuous_action", "Pendulum-v1", "agent", {}, {})

    with pytest.raises(CheckpointError, match="has no normalisation of the observations"):
        evaluate(config_for(path))


def test_an_upstream_model_is_evaluated_when_its_algorithm_and_environment_are_named(tmp_path, run_dir):
    made = untrained_checkpoint(tmp_path, "dqn", "CartPole-v1", "q_network", {}, {})
    weights = torch.load(made, weights_only=True)["modules"]["q_network"]
    torch.save(weights, tmp_path / "dqn.cleanrl_model")

    with pytest.raises(ConfigError, match=r"does not state its algorithm and environment. Set algo and env_id"):
        evaluate(config_for(tmp_path / "dqn.cleanrl_model"))
    evaluate(config_for(tmp_path / "dqn.cleanrl_model", algo="dqn", env_id="CartPole-v1", eval_episodes=1))

    assert summary(run_dir)["algo"] == "dqn"


def test_a_stop_waits_until_the_results_are_written(ppo_checkpoint, run_dir, monkeypatch):
    """A stop inside TensorBoard's queue would leave a lock behind, and the evaluation would never end."""
    from cleanrl_worker import evaluate as module
    from mosaic_sdk.cli import WorkerStopped, _sigterm_raises

    report = module._report

    def report_and_be_stopped(*arguments):
        os.kill(os.getpid(), signal.SIGTERM)
        report(*arguments)

    monkeypatch.setattr(module, "_report", report_and_be_stopped)
    with pytest.raises(WorkerStopped), _sigterm_raises():
        evaluate(config_for(ppo_checkpoint, eval_episodes=1, eval_repeat=0))
    signal.signal(signal.SIGTERM, signal.SIG_DFL)

    assert len(summary(run_dir)["history"]) == 1


@pytest.mark.slow
def test_an_evaluation_without_end_is_stopped_and_its_history_stays(ppo_checkpoint, launch):
    requested = {"mode": "policy_eval", "policy_path": str(ppo_checkpoint), "eval_episodes": 1, "eval_repeat": 0}
    trial = launch({"seed": 7, "extras": requested}, wait=False)
    assert trial.wait_for(lambda: len(trial.measurements()) > 4, 600), trial.last_words

    trial.terminate()

    assert trial.wait(60) == 143
    assert trial.events("run_cancelled")
    with open(os.path.join(trial.ground.run, "eval_summary.json")) as file:
        assert len(json.load(file)["history"]) >= 2
