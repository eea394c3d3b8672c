"""The real libraries, in their own environment, as for a worker: requirements/frames.txt, built by `make test`.

Elsewhere MOSAIC_FRAMES_PYTHON names its Python; without either these tests are skipped.
"""

import os
import sys
from pathlib import Path

import pytest
from lanes import AUTOWRAP, ROOT, SDK, segments

PYTHON = Path(os.environ.get("MOSAIC_FRAMES_PYTHON") or ROOT / ".venv-frames" / "bin" / "python")
pytestmark = pytest.mark.skipif(not PYTHON.exists(), reason=f"gymnasium's environment is missing: {PYTHON}")

HEAD = """
import os, sys
import gymnasium as gym
import numpy as np
RUN = os.environ["MOSAIC_RUN_ID"]
def watch():
    from mosaic_sdk.fastlane import FastLaneReader
    return FastLaneReader.attach(RUN, lease_s=1000)
def lanes(): return sorted(name.replace(RUN, "RUN") for name in os.listdir("/dev/shm") if RUN in name)
"""


@pytest.fixture
def script(scripts, run_id):
    """Runs a script as a worker would: with the injected sitecustomize and without mosaic_sdk in its environment."""

    def run(text, **variables):
        env = {"MOSAIC_RUN_ID": run_id, "GYM_GUI_FASTLANE_ONLY": "1", "CLEANRL_FASTLANE_INTERVAL_MS": "0"}
        env |= {"SDL_VIDEODRIVER": "dummy", "XDG_RUNTIME_DIR": "/tmp"} | variables
        return scripts.run(HEAD + text, env=env, path=(AUTOWRAP,), python=PYTHON)

    return run


def test_an_env_of_a_script_is_shown_and_its_lane_removed_afterwards(script, run_id):
    out, err = script("""
env = gym.make("CartPole-v1")
reader = watch()
env.reset(seed=1)
env.action_space.seed(1)  # an episode that ends with the last step would show the next one's first picture
for _ in range(30):
    if any(env.step(env.action_space.sample())[2:4]): env.reset()
frame = reader.latest_frame()
print(frame.pixels.shape, frame.pixels.std() > 1, frame.metrics.last_reward, frame.metrics.rolling_return > 5)
print(env.spec.id, env.spec.additional_wrappers, env.unwrapped.render_mode, lanes())
""")

    assert out.splitlines() == [
        "(400, 600, 3) True 1.0 True",
        "CartPole-v1 () rgb_array ['mosaic.fastlane.RUN', 'mosaic.fastlane.RUN.1']",
    ]
    assert err == ""
    assert segments(run_id) == []


def test_a_script_plays_the_same_game_with_and_without_frames(script):
    game = """
env = gym.make("CartPole-v1")
if %r: watch()
env.action_space.seed(3)
obs = [env.reset(seed=3)[0]]
for _ in range(50):
    step = env.step(env.action_space.sample())
    obs.append(env.reset()[0] if step[2] or step[3] else step[0])
print(np.concatenate(obs).tobytes().hex())
"""
    watched, _ = script(game % True)
    unwatched, _ = script(game % False)
    off, _ = script(game % False, GYM_GUI_FASTLANE_ONLY="0")

    assert watched == unwatched == off


@pytest.mark.parametrize("mode", ["human", "rgb_array", "ansi"])
def test_a_render_mode_that_the_script_chose_is_kept(script, mode):
    env_id = "FrozenLake-v1"

    out, _ = script(f"print(gym.make({env_id!r}, render_mode={mode!r}).render_mode)")

    assert out == f"{mode}\n"


def test_an_env_without_pictures_trains_on_with_a_note(script, run_id):
    out, err = script("""
class Blind(gym.Env):
    metadata = {"render_modes": ["ansi"]}
    observation_space = action_space = gym.spaces.Discrete(2)
    def __init__(self, render_mode=None): self.render_mode = render_mode
    def reset(self, seed=None, options=None): return 0, {}
    def step(self, action): return 0, 1.0, False, False, {}
gym.register("Blind-v0", Blind)
env = gym.make("Blind-v0")
env.reset()
print(env.step(1)[1], env.render_mode, lanes())
""")

    assert out == "1.0 None []\n"
    assert err.count("mosaic: no frames of") == 1


def test_errors_of_make_are_passed_on_unchanged(script):
    text = """
try: gym.make("NoSuchEnv-v0")
except gym.error.Error as error: print(type(error).__name__, error)
"""
    assert script(text)[0] == script(text, GYM_GUI_FASTLANE_ONLY="0")[0]


@pytest.mark.parametrize("vector", ["SyncVectorEnv", "AsyncVectorEnv"])
def test_a_grid_of_vectorised_envs_shows_each_of_them(script, run_id, vector):
    out, err = script(
        f"""
class Painted(gym.Env):
    metadata = {{"render_modes": ["rgb_array"], "render_fps": 30}}
    observation_space = action_space = gym.spaces.Discrete(2)
    def __init__(self, value=0, render_mode=None): self.value, self.render_mode = value, render_mode
    def reset(self, seed=None, options=None): return 0, {{}}
    def step(self, action): return 0, 1.0, False, False, {{}}
    def render(self): return np.full((4, 6, 3), self.value, np.uint8)
gym.register("Painted-v0", Painted)
if __name__ == "__main__":
    envs = gym.vector.{vector}([lambda value=value: gym.make("Painted-v0", value=value) for value in (10, 20, 30)])
    reader = watch()
    envs.reset()
    for _ in range(5): envs.step(np.zeros(3, int))
    pixels = reader.latest_frame().pixels
    print([sorted(set(pixels[y:y + 4, x:x + 6].ravel().tolist())) for y in (0, 4) for x in (0, 6)])
    envs.close()
    print(lanes())
""",
        GYM_GUI_FASTLANE_VIDEO_MODE="grid",
    )

    assert (out, err) == ("[[10], [20], [30], [0]]\n[]\n", "")


@pytest.mark.parametrize("slot", [0, 2])
@pytest.mark.parametrize("mode", ["sync", "async"])
def test_single_shows_the_vectorised_env_of_its_slot(script, run_id, mode, slot):
    out, _ = script(
        f"""
if __name__ == "__main__":
    envs = gym.make_vec("Acrobot-v1", 3, vectorization_mode={mode!r})
    reader = watch()
    envs.reset(seed=1)
    for _ in range(3): envs.step(np.zeros(3, int))
    print(reader.latest_frame().pixels.shape, lanes())
    envs.close()
    print(lanes())
""",
        GYM_GUI_FASTLANE_SLOT=str(slot),
    )

    assert out == "(500, 500, 3) ['mosaic.fastlane.RUN', 'mosaic.fastlane.RUN.1']\n[]\n"


@pytest.mark.parametrize(("mode", "shape"), [("single", (400, 600, 3)), ("grid", (800, 1200, 3))])
def test_a_vector_env_without_single_envs_is_shown(script, mode, shape):
    out, err = script(
        """
envs = gym.make_vec("CartPole-v1", 3)
reader = watch()
envs.reset(seed=1)
for _ in range(5): rewards = envs.step(np.zeros(3, int))[1]
frame = reader.latest_frame()
print(type(envs.unwrapped).__name__, rewards, frame.pixels.shape, frame.metrics.last_reward)
envs.close()
print(lanes())
""",
        GYM_GUI_FASTLANE_VIDEO_MODE=mode,
        GYM_GUI_FASTLANE_SLOT="2",
    )

    assert (out, err) == (f"CartPoleVectorEnv [1. 1. 1.] {shape} 1.0\n[]\n", "")


def test_an_attribute_is_set_in_the_env_that_has_it(script):
    out, _ = script("""
env = gym.make("CartPole-v1")
env.set_wrapper_attr("gravity", 1.5)
print(env.unwrapped.gravity, env.get_wrapper_attr("gravity"), env.has_wrapper_attr("no_such_thing"))
""")

    assert out == "1.5 1.5 False\n"


def test_an_unwatched_env_can_be_copied(script):
    out, _ = script("""
import copy
env = gym.make("CartPole-v1")
env.reset(seed=1)
twin = copy.deepcopy(env)
print((env.step(0)[0] == twin.step(0)[0]).all(), "FastLane" in str(env), "FastLane" in str(twin))
""")

    assert out == "True True False\n"


@pytest.mark.skipif(sys.version_info < (3, 9), reason="the SDK's own limit")
def test_the_hook_does_not_affect_a_script_without_gymnasium(scripts, run_id):
    text = "import sys, json; print('numpy' in sys.modules, any('mosaic' in name for name in sys.modules))"

    env = {"MOSAIC_RUN_ID": run_id, "GYM_GUI_FASTLANE_ONLY": "1"}
    out, err = scripts.run(text, env=env, path=(AUTOWRAP,), python=PYTHON)

    assert (out, err) == ("False False\n", "")


def test_importing_gymnasium_imports_nothing_of_the_sdk(script):
    out, _ = script("print(any(name.startswith('mosaic') for name in sys.modules), gym.make.__module__)")

    assert out == "False gymnasium.envs.registration\n"


ENVS = """
import importlib
importlib.import_module(%r)
env = gym.make(%r)
reader = watch()
env.reset(seed=1)
for _ in range(5): env.step(env.action_space.sample())
frame = reader.latest_frame()
print(frame.pixels.shape, frame.pixels.std() > 1, frame.number, reader.cost_ns > 0)
env.close()
print(lanes())
"""


@pytest.mark.parametrize(
    ("package", "env_id", "shape"),
    [
        ("minigrid", "MiniGrid-Empty-8x8-v0", (256, 256, 3)),
        ("ale_py", "ALE/Breakout-v5", (210, 160, 3)),
        ("gymnasium", "CartPole-v1", (400, 600, 3)),
    ],
)
def test_the_envs_of_other_packages_are_shown(script, package, env_id, shape):
    out, _ = script(ENVS % (package, env_id))

    assert out.splitlines() == [f"{shape} True 6 True", "[]"]


PETTINGZOO = """
import warnings
warnings.simplefilter("ignore")
import pettingzoo
env = make()
reader = watch()
play(env)
frame = reader.latest_frame()
print(type(env).__name__, frame.pixels.ndim, frame.pixels.std() > 1, frame.number > 3, env.render_mode)
env.close()
print(lanes())
"""

TURNS = """
def make():
    from pettingzoo.classic import tictactoe_v3
    return tictactoe_v3.env()
def play(env):
    env.reset(seed=1)
    for agent in env.agent_iter():
        observation, reward, terminated, truncated, info = env.last()
        over = terminated or truncated
        env.step(None if over else int(np.flatnonzero(observation["action_mask"])[0]))
"""

PARALLEL = """
def make():
    from pettingzoo.classic import rps_v2
    return rps_v2.parallel_env()
def play(env):
    env.reset(seed=1)
    while env.agents: env.step({agent: env.action_space(agent).sample() for agent in env.agents})
"""

REGISTERED = """
def make(): return pettingzoo.make("parallel", "classic/rps-v2")
def play(env):
    env.reset(seed=1)
    while env.agents: env.step({agent: env.action_space(agent).sample() for agent in env.agents})
"""


@pytest.mark.parametrize("text", [TURNS, PARALLEL, REGISTERED], ids=["aec", "parallel", "registered"])
def test_a_game_of_pettingzoo_is_shown(script, text):
    out, err = script(text + PETTINGZOO)

    assert (out, err) == ("FastLaneWrapper 3 True True rgb_array\n[]\n", "")


GAME = """
import warnings
warnings.simplefilter("ignore")
from pettingzoo.classic import rps_v2
env = rps_v2.parallel_env()
if %r: watch()
seen = [env.reset(seed=3)[0]]
for agent in env.agents: env.action_space(agent).seed(3)
while env.agents: seen.append(env.step({agent: env.action_space(agent).sample() for agent in env.agents})[:4])
print(str(seen))
"""


def test_a_game_of_pettingzoo_is_played_the_same_with_and_without_frames(script):
    watched, _ = script(GAME % True)
    unwatched, _ = script(GAME % False)
    off, _ = script(GAME % False, GYM_GUI_FASTLANE_ONLY="0")

    assert watched == unwatched == off


PAINTED = """
from mosaic_sdk.fastlane import maybe_wrap_env
from pettingzoo import ParallelEnv
class Painted(ParallelEnv):
    metadata = {"render_modes": ["rgb_array"], "name": "painted"}
    possible_agents = ["a", "b"]
    render_mode = "rgb_array"
    def reset(self, seed=None, options=None):
        self.agents = ["a", "b"]
        return {"a": 0, "b": 0}, {"a": {}, "b": {}}
    def step(self, actions):
        self.agents = []
        return {}, {"a": 1.0, "b": 2.0}, {"a": True, "b": True}, {}, {}
    def render(self): return np.arange(72, dtype=np.uint8).reshape(4, 6, 3)
env = maybe_wrap_env(Painted())
reader = watch()
env.reset()
assert env.step({"a": 0, "b": 0})[1] == {"a": 1.0, "b": 2.0}
print(env.agents, reader.latest_frame().metrics.last_reward)
"""


def test_the_reward_of_a_parallel_game_is_the_sum_of_its_agents(script):
    assert script(PAINTED, PYTHONPATH=os.pathsep.join(map(str, (AUTOWRAP, SDK)))) == ("[] 3.0\n", "")
