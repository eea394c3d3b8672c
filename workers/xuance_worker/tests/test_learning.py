"""Learning, shown by evaluation on seeds that no training uses, against the same network untrained."""

import statistics

import pytest

EPISODES = 20
STEPS = 8_000


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_ppo_learns_cartpole(launch, capfd):
    def mean_of(steps):
        params = {"horizon_size": 128}  # six updates; XuanCe's own 256 gives three
        config = {"algo": "ppo", "env_id": "CartPole-v1", "total_timesteps": steps, "extras": {"algo_params": params}}
        run = launch(config)
        assert run.code == 0, run.err
        extras = {"mode": "policy_eval", "policy_path": run.checkpoint, "eval_episodes": EPISODES}
        tested = launch({"seed": 1_000_000, "extras": extras})
        assert tested.code == 0, tested.err
        returns = [row["return"] for row in tested.summary["rows"]]
        with capfd.disabled():
            print(f"{steps} steps: mean {statistics.fmean(returns):.1f}, {sorted(returns)}")
        return statistics.fmean(returns)

    # Ten steps fill no batch, so nothing was learned: the control.
    untrained, trained = mean_of(10), mean_of(STEPS)

    assert untrained < 100
    assert trained > 250
