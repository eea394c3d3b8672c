"""Images as our scripts see them: four greyscale pictures of 84 x 84 pixels, newest last.

For Atari games with the usual treatment of Mnih et al. (2015): random no-ops, four frames per step, a lost life ends
the learner's episode, rewards are clipped to their sign. Other environments with images are only resized.
"""

from typing import Any

import gymnasium
from gymnasium import wrappers

SIZE, STACK = (84, 84), 4


def make_pixels(env_id: str, seed: int, idx: int, capture_video: bool, run_name: str) -> Any:
    """The environment with these wrappers and one that counts returns."""
    options: dict[str, Any] = {"render_mode": "rgb_array"} if capture_video else {}
    env: Any = gymnasium.make(env_id, **options)
    env = wrappers.RecordEpisodeStatistics(env)
    if capture_video and idx == 0:
        env = wrappers.RecordVideo(env, f"videos/{run_name}", disable_logger=True)
    if is_atari(env):
        env = _as_game(env)
    if len(env.observation_space.shape) == 3:
        env = wrappers.GrayScaleObservation(env)
    if env.observation_space.shape != SIZE:
        env = wrappers.ResizeObservation(env, SIZE)
    env = wrappers.FrameStack(env, STACK)
    env.action_space.seed(seed)
    return env


def is_atari(env: Any) -> bool:
    return hasattr(env.unwrapped, "get_action_meanings")


def _as_game(env: Any) -> Any:
    from stable_baselines3.common import atari_wrappers

    env = atari_wrappers.NoopResetEnv(env, noop_max=30)
    env = atari_wrappers.MaxAndSkipEnv(env, skip=4)
    env = atari_wrappers.EpisodicLifeEnv(env)
    if "FIRE" in env.unwrapped.get_action_meanings():
        env = atari_wrappers.FireResetEnv(env)
    return atari_wrappers.ClipRewardEnv(env)
