"""One episode is one line, and the script sees its own env: wrappers, frames, other processes, odd envs."""

import contextlib
import os
import sys

import pytest

WRAPPED = """
import gymnasium as gym
from gymnasium.wrappers import RecordEpisodeStatistics, TimeLimit, TransformReward

def play(env, steps):
    env.action_space.seed(3)
    env.reset(seed=3)
    for _ in range(steps):
        *_, terminated, truncated, info = env.step(env.action_space.sample())
        if terminated or truncated:
            env.reset()
    env.close()

made = RecordEpisodeStatistics(TransformReward(gym.make("CartPole-v1"), lambda reward: reward / 100))
play(made, 200)
play(TimeLimit(gym.make("CartPole-v1"), 5), 15)
play(RecordEpisodeStatistics(TimeLimit(gym.envs.classic_control.CartPoleEnv(), 5)), 15)
"""


def test_wrappers_of_the_script_neither_double_nor_change_nor_hide_an_episode(run):
    observed = run(WRAPPED)

    at = [line["global_step"] for line in observed.episodes]
    assert len([step for step in at if step <= 200]) > 3
    assert [step for step in at if step > 200] == [205, 210, 215, 220, 225, 230]
    assert all(line["total_reward"] == line["steps"] for line in observed.episodes)
    assert [line["truncated"] for line in observed.episodes[-6:]] == [True] * 6
    assert observed.events("heartbeat")[-1] == {"progress": 230}


FAITHFUL = """
import gc, weakref
import gymnasium as gym
from gymnasium.utils.env_checker import check_env

env = gym.make("CartPole-v1")
env._max_episode_steps = 7  # a trick of many scripts
env.reset(seed=1)
steps = 0
while True:
    *_, terminated, truncated, _ = env.step(steps % 2)
    steps += 1
    if terminated or truncated:
        break
print(steps, type(env), env, env.spec, env.unwrapped.spec, env.has_wrapper_attr("gravity"))
check_env(env.unwrapped, skip_render_check=True)
gone = weakref.ref(env.unwrapped)
env.close()
print("step" in vars(env), env.step.__func__ is type(env).step)
del env
print(gone() is None)
"""


def test_the_env_is_the_object_that_make_returned(run):
    bare, observed = run(FAITHFUL, observed=False), run(FAITHFUL)

    assert observed.said == bare.said
    assert observed.said[0].startswith("7 ")
    assert observed.said[1:] == ["False True", "True"]


def test_an_error_in_the_observer_ends_only_the_observation(run):
    odd = """
import gymnasium as gym
class Odd(gym.Env):
    observation_space = action_space = gym.spaces.Discrete(2)
    def reset(self, seed=None, options=None): return 0, {}
    def step(self, action): return 0, 1.0, object.__new__(Ambiguous), False, {}
class Ambiguous:
    def __bool__(self): raise ValueError("neither")
gym.register("Odd-v0", Odd)
env = gym.make("Odd-v0", disable_env_checker=True)
env.reset()
print(len([env.step(0) for _ in range(3)]))
"""
    bare, observed = run(odd, observed=False), run(odd)

    assert observed.said == bare.said == ["3"]
    assert observed.err.count("no more episodes of OrderEnforcing: ValueError: neither") == 1


FRAMES = """
import gymnasium as gym
env = gym.make("CartPole-v1")
env.action_space.seed(1)
env.reset(seed=1)
for _ in range(50):
    *_, terminated, truncated, _ = env.step(env.action_space.sample())
    if terminated or truncated: env.reset()
print(type(env).__name__, env.render_mode, len(env.render().shape))
env.close()
"""


def test_an_env_that_is_shown_is_observed_too(run):
    run_id = f"observe-{os.getpid()}"
    try:
        observed = run(FRAMES, MOSAIC_RUN_ID=run_id, GYM_GUI_FASTLANE_ONLY="1")
    finally:
        for name in os.listdir("/dev/shm"):
            if run_id in name:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(f"/dev/shm/{name}")
    alone = run(FRAMES.replace("print", "#"))

    assert observed.said == ["FastLaneWrapper rgb_array 3"]
    assert [line["steps"] for line in observed.episodes] == [line["steps"] for line in alone.episodes]


CHILDREN = """
import multiprocessing, subprocess, sys
import gymnasium as gym

def play(number):
    env = gym.make("CartPole-v1", max_episode_steps=5)
    env.reset(seed=1)
    for step in range(5): env.step(step % 2)

if __name__ == "__main__":
    context = multiprocessing.get_context(sys.argv[1])
    children = [context.Process(target=play, args=(n,)) for n in range(2)]
    for child in children: child.start()
    for child in children: child.join()
"""


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes_of_the_script_tell_their_own_episodes_and_no_progress(run, tmp_path, method):
    file = tmp_path / "play.py"
    file.write_text(CHILDREN)
    observed = run(
        f"import runpy, sys; sys.argv = [{str(file)!r}, {method!r}]; runpy.run_path({str(file)!r}, run_name='__main__')"
    )

    assert [line["steps"] for line in observed.episodes] == [5, 5]
    assert sorted(line["env_index"] for line in observed.episodes) == [0, 1]
    assert observed.events("heartbeat") == []


ARGUMENTS = """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--total-timesteps", type=int, default=40)
print(parser.parse_args(["--total-timesteps", "30"]).total_timesteps)
import gymnasium as gym
env = gym.make("CartPole-v1")
env.reset(seed=1)
for step in range(int(__import__("sys").argv[1])):
    *_, terminated, truncated, _ = env.step(step % 2)
    if terminated or truncated: env.reset()
"""


def test_a_total_of_the_command_line_is_the_total_until_it_is_passed(run):
    assert run(ARGUMENTS, "30").events("heartbeat")[-1] == {"progress": 30, "total": 30}
    assert run(ARGUMENTS, "60").events("heartbeat")[-1] == {"progress": 60}


def test_a_script_that_imports_no_library_loads_nothing(run):
    script = "import sys, argparse, json; print(sorted(m for m in sys.modules if 'mosaic' in m), len(sys.meta_path))"

    assert run(script, python=sys.executable).said[0].startswith("[] ")
