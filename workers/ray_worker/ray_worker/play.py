"""Episodes of a policy, in an environment with one or several agents."""

from typing import Any

from mosaic_sdk.library.evaluating import Played

from ray_worker.envs import mask_of

ALL = "__all__"


def play(policies: Any, env: Any, seed: int, max_steps: int = 0) -> Played:
    """One episode; `max_steps`: cut it after so many steps, 0: never. The return is the sum over the agents."""
    table = Table(env)
    policies.begin(seed)
    table.reset(seed)
    while not table.is_over and not (max_steps and table.steps >= max_steps):
        table.step(table.choose(policies))
    cut = not table.is_over
    each = {"agent_returns": table.returns} if len(table.returns) > 1 else {}
    return Played(sum(table.returns.values()), table.steps, table.terminated, table.truncated or cut, each)


class Table:
    """An environment with its agents; a single agent is called ""."""

    def __init__(self, env: Any) -> None:
        self.env = env
        self.is_single = not hasattr(env, "possible_agents")
        self.observations: dict[str, Any] = {}
        self.returns: dict[str, float] = {}
        self.steps = 0
        self.terminated = self.truncated = False

    @property
    def is_over(self) -> bool:
        return self.terminated or self.truncated

    def reset(self, seed: int | None, options: dict[str, Any] | None = None) -> None:
        observations, _ = self.env.reset(seed=seed, options=options)
        self.observations = {"": observations} if self.is_single else observations
        agents = [""] if self.is_single else self.env.possible_agents
        self.returns, self.steps = dict.fromkeys(agents, 0.0), 0
        self.terminated = self.truncated = False

    def choose(self, policies: Any) -> dict[str, Any]:
        """The policies' actions for all agents whose turn it is."""
        return {
            agent: policies.act(one, agent, None if self.is_single else mask_of(self.env, agent))
            for agent, one in self.observations.items()
        }

    def step(self, actions: dict[str, Any]) -> float:
        """Returns the reward, summed over the agents."""
        self.steps += 1
        if self.is_single:
            self.observations[""], reward, terminated, truncated, _ = self.env.step(actions[""])
            self.terminated, self.truncated = bool(terminated), bool(truncated)
            rewards = {"": float(reward)}
        else:
            self.observations, rewards, terminateds, truncateds, _ = self.env.step(actions)
            is_over = terminateds[ALL] or truncateds[ALL] or not self.observations
            self.truncated = bool(is_over and any(truncateds.values()))
            self.terminated = bool(is_over and not self.truncated)
        for agent, reward in rewards.items():
            self.returns[agent] = self.returns.get(agent, 0.0) + float(reward)
        return float(sum(rewards.values()))
