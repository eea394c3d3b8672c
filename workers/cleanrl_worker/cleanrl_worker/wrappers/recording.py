"""The wrappers around every environment of our PPO: they count returns and record videos of the first copy."""

from typing import Any

import gymnasium

from cleanrl_worker.wrappers.observations import check_actions


def record(env: Any, seed: int, idx: int, capture_video: bool, run_name: str) -> Any:
    """`env` with these wrappers and a seeded action space; ConfigError if its actions are not discrete."""
    check_actions(env.spec.id if env.spec else str(env), env.action_space)
    env = gymnasium.wrappers.RecordEpisodeStatistics(env)
    if capture_video and idx == 0:
        env = gymnasium.wrappers.RecordVideo(env, f"videos/{run_name}", disable_logger=True)
    env.action_space.seed(seed)
    return env
