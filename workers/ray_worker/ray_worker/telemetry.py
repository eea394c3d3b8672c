"""What a training reports: episodes as they end, and the numbers in RLlib's results."""

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from mosaic_sdk import emit
from mosaic_sdk.cli import WorkFailed

# The parts of a result that are curves. The others are the config, times of day, and names of machines.
PARTS = ("env_runners", "learners", "replay_buffer")
# How long each of RLlib's own parts took.
_TIMES = ("connector", "timer", "throughput")
_TRAINED = "num_module_steps_trained"
MOST_METRICS = 500
LONGEST_NAME = 200
_ROWS = "mosaic_episodes"  # attribute of an env runner in another process


class Watch:
    """RLlib calls it at every environment step and at the end of every episode.

    It is part of RLlib's config, which is copied and sent to other processes. In this process there is only one; one in
    another process keeps its episodes until `take_rows` fetches them.
    """

    def __init__(self) -> None:
        self.steps, self.episodes, self.last_return = 0, 0, math.nan
        self._check: Callable[[], None] | None = None

    def watch_with(self, check: Callable[[], None]) -> None:
        """Report the episodes of this process, and call `check` after every step: it may raise to stop the training."""
        self._check = check

    def __deepcopy__(self, memo: Any) -> "Watch":
        return self

    def __reduce__(self) -> Any:
        return Watch, ()

    def on_episode_step(self, **_: Any) -> None:
        self.steps += 1
        if self._check:
            self._check()

    def on_episode_end(self, *, episode: Any, env_runner: Any, env_index: int = 0, **_: Any) -> None:
        row = row_of(episode, env_index)
        if self._check:
            self.report(row)
            self._check()
        else:
            vars(env_runner).setdefault(_ROWS, []).append(row)

    def report(self, row: Mapping[str, Any]) -> None:
        emit.episode(self.episodes, **row, global_step=self.steps)
        self.episodes, self.last_return = self.episodes + 1, row["total_reward"]


def take_rows(env_runner: Any) -> list[dict[str, Any]]:
    """The episodes that ended in an env runner of another process since the last call."""
    taken: list[dict[str, Any]] = vars(env_runner).pop(_ROWS, [])
    return taken


def row_of(episode: Any, env_index: int) -> dict[str, Any]:
    """An episode of RLlib. With several agents the return is the sum over them, and each one's is in `metadata`."""
    row = {
        "total_reward": float(episode.get_return()),
        "env_index": env_index,
        "terminated": bool(episode.is_terminated),
        "truncated": bool(episode.is_truncated),
    }
    agents = getattr(episode, "agent_episodes", None)
    if agents is None:
        return {**row, "steps": len(episode)}
    returns = {str(agent): float(one.get_return()) for agent, one in agents.items()}
    return {**row, "steps": int(episode.env_t), "metadata": {"agent_returns": returns}}


def metrics_of(result: Mapping[str, Any]) -> dict[str, float]:
    """The finite numbers of a result, by their path: learners/default_policy/total_loss."""
    found = (pair for part in PARTS if part in result for pair in _numbers(part, result[part]))
    kept = [(name, value) for name, value in found if math.isfinite(value) and _is_curve(name)]
    return dict(kept[:MOST_METRICS])


def _is_curve(name: str) -> bool:
    return len(name) <= LONGEST_NAME and not any(word in name for word in _TIMES)


def refuse_divergence(result: Mapping[str, Any]) -> None:
    """WorkFailed if a loss is NaN or infinite.

    IMPALA and APPO learn beside the sampling: RLlib reports NaN for everything of a module that was not updated.
    """
    values = dict(_numbers("learners", result.get("learners", {})))
    for name, value in values.items():
        trained = values.get(f"{name.rpartition('/')[0]}/{_TRAINED}", 1.0)
        if name.endswith("loss") and not math.isfinite(value) and trained > 0:  # not true of NaN
            raise WorkFailed(
                f"{name} is {value}: the training has diverged. Lower lr, check the environment's rewards, "
                "or set stop_on_nan=false to continue anyway."
            )


def _numbers(path: str, value: Any) -> Iterator[tuple[str, float]]:
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield from _numbers(f"{path}/{key}", part)
    elif not isinstance(value, (bool, str, bytes, list, tuple)) and value is not None:
        plain = value.item() if getattr(value, "size", 0) == 1 or hasattr(value, "numel") else value
        if isinstance(plain, (int, float)) and not isinstance(plain, bool):
            yield path, float(plain)
