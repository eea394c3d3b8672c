"""The agent learns: a task small enough for a CPU, in a loop small enough to read."""

import jax
import numpy as np
import pytest
from dreamer_worker.agent import Space, make_agent

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]
jax.config.update("jax_disable_most_optimizations", True)  # so small that compiling takes longer than learning

ENVS, BATCH, LENGTH, UPDATES = 8, 16, 12, 1500
OBS = {"cue": Space("float32", (2,)), "reward": Space("float32")}
OBS |= {key: Space("bool") for key in ("is_first", "is_last", "is_terminal")}
ACT = {"side": Space("int32", (), 0, 2)}
TINY = {
    "size": "debug",
    "rssm": {"deter": 32, "hidden": 16, "stoch": 8, "classes": 4},
    "nets": {"units": 32, "bins": 41},
    "learning": {"imagined_steps": 5, "entropy": 3e-3},
    "optimizer": {"lr": 2e-3, "warmup": 100},
    "compute": {"dtype": "float32", "policy_sync_every": 1},
}


class Cues:
    """Two observations: a cue, the end. Who answers the cue with its side gets a reward, one step later."""

    def __init__(self, seed):
        self.rng, self.clock, self.side = np.random.default_rng(seed), 0, np.zeros(ENVS, int)

    def step(self, answer):
        clock, self.clock = self.clock, (self.clock + 1) % 2
        if clock == 0:
            self.side = self.rng.integers(0, 2, ENVS)
        return {
            "cue": 3 * np.eye(2, dtype=np.float32)[self.side] * (clock == 0),
            "reward": ((clock == 1) & (answer == self.side)).astype(np.float32),
            "is_first": np.full(ENVS, clock == 0),
            "is_last": np.full(ENVS, clock == 1),
            "is_terminal": np.full(ENVS, clock == 1),
        }


def play(agent, cues, mode):
    """Step after step, without end: all that replay would keep."""
    carry, actions = agent.init_policy(ENVS), {"side": np.zeros(ENVS, int)}
    while True:
        obs = cues.step(actions["side"])
        carry, actions, outs = agent.policy(carry, obs, mode)
        yield {**obs, **actions, **outs}


def score(agent, mode="eval", episodes=100):
    """The mean return."""
    player = play(agent, Cues(seed=1), mode)
    return sum(next(player)["reward"].mean() for _ in range(2 * episodes)) / episodes


def batch_of(steps, rng):
    starts, rows = rng.integers(0, len(steps) - LENGTH, BATCH), rng.integers(0, ENVS, BATCH)
    spans = [(steps[start : start + LENGTH + 1], row) for start, row in zip(starts, rows, strict=True)]
    return {key: np.stack([[one[key][row] for one in span] for span, row in spans]) for key in steps[0]}


def test_an_agent_learns_which_answer_is_rewarded():
    agent, rng = make_agent(OBS, ACT, TINY), np.random.default_rng(0)
    player, carry = play(agent, Cues(seed=0), "train"), agent.init_train(BATCH)
    steps = [next(player) for _ in range(2 * LENGTH)]
    found = [score(agent, "train")]

    while found[-1] < 0.95 and len(found) <= UPDATES // 100:
        for _ in range(100):
            steps.append(next(player))
            carry, _, metrics = agent.train(carry, batch_of(steps, rng))
        found.append(score(agent))
        print(100 * (len(found) - 1), "updates:", found[-1], {k: round(float(v), 3) for k, v in metrics.items()})

    assert 0.4 < found[0] < 0.6
    assert found[-1] >= 0.95
