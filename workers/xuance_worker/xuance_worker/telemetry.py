"""Forwards what XuanCe reports: its callback gives episodes and safe points, its `log_infos` the metrics.

An episode of several agents is one row. Its return is the mean of the agents' returns, which is XuanCe's own score; the
return of each agent is in `metadata.returns`.
"""

from collections.abc import Mapping
from typing import Any

from mosaic_sdk import emit
from mosaic_sdk.library.training import Training


def score(value: Any) -> tuple[float, dict[str, float]]:
    """The return of an episode, and that of each agent if there are several."""
    if not isinstance(value, Mapping):
        return float(value), {}
    returns = {str(agent): float(part) for agent, part in value.items()}
    return sum(returns.values()) / len(returns), returns


def forward_metrics(agent: Any) -> None:
    """Report everything that the agent logs, under XuanCe's names.

    A table with a value for each environment is left to TensorBoard: these are the episodes, which are reported.
    """
    log = agent.log_infos

    def log_and_report(info: Mapping[str, Any], x_index: int) -> None:
        log(info, x_index)
        values = {name: float(value) for name, value in info.items() if _is_number(value)}
        if values:
            emit.metrics(values, int(x_index))

    agent.log_infos = log_and_report


def _is_number(value: Any) -> bool:
    """A number, or an array or tensor with one element."""
    if value is None or isinstance(value, (Mapping, str)):
        return False
    count = value.numel() if hasattr(value, "numel") else getattr(value, "size", 1)
    return bool(count == 1)


class Callback:
    """XuanCe's callback interface. Its safe points are between two steps, when nothing is half done."""

    def __init__(self, training: Training) -> None:
        self._training = training
        self._ends: tuple[Any, Any] = ((), ())

    def on_update_start(self, *args: Any, **more: Any) -> dict[str, Any]:
        return {}

    def on_update_end(self, *args: Any, **more: Any) -> dict[str, Any]:
        return {}

    def on_update_agent_wise(self, *args: Any, **more: Any) -> dict[str, Any]:
        return {}

    def on_train_step(self, current_step: int, **more: Any) -> None:
        self._ends = (more.get("terminals", ()), more.get("truncations", ()))

    def on_test_step(self, *args: Any, test_mode: bool = True, **more: Any) -> None:
        """Recurrent multi-agent trainings collect their episodes with the loop that also tests."""
        if not test_mode:
            self.on_train_step(0, **more)
            self._training.at_step()

    def on_train_episode_info(self, *, env_id: int, infos: Any, current_step: int, envs: Any, **more: Any) -> None:
        info = infos[env_id]
        total, returns = score(info["episode_score"])
        # The loop over whole episodes has counted this one already; the others count after the step.
        step = int(current_step) + (0 if "n_episodes" in more else int(envs.num_envs))
        named: dict[str, Any] = {"metadata": {"returns": returns}} if returns else {}
        ends = self._end(env_id)
        self._training.report_episode(total, info["episode_step"], env_index=env_id, global_step=step, **ends, **named)

    def on_train_epochs_end(self, *args: Any, **more: Any) -> None:
        self._training.at_step()

    def on_train_step_end(self, *args: Any, **more: Any) -> None:
        self._training.at_step()

    def on_test_end(self, *args: Any, **more: Any) -> None:
        pass

    def _end(self, env: int) -> dict[str, Any]:
        terminals, truncations = self._ends
        if len(terminals) <= env or len(truncations) <= env:
            return {}
        terminated = terminals[env]
        is_over = all(terminated.values()) if isinstance(terminated, Mapping) else bool(terminated)
        return {"terminated": is_over, "truncated": bool(truncations[env])}
