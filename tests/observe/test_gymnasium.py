"""Episodes and progress from Gymnasium."""

import json

LOOP = """
import gymnasium as gym
env = gym.make("CartPole-v1", max_episode_steps=30)
env.action_space.seed(5)
seen, total, steps = [], 0.0, 0
observation, _ = env.reset(seed=5)
for _ in range(200):
    observation, reward, terminated, truncated, info = env.step(env.action_space.sample())
    total, steps = total + reward, steps + 1
    if terminated or truncated:
        seen.append([total, steps, terminated, truncated])
        total, steps = 0.0, 0
        env.reset()
import json
print(json.dumps([seen, observation.tolist(), str(env), env.spec.id, len(env.spec.additional_wrappers)]))
env.close()
"""


def rows(episodes):
    return [[line["total_reward"], line["steps"], line["terminated"], line["truncated"]] for line in episodes]


def test_each_episode_is_one_line_and_the_script_sees_its_own_env(run):
    bare, observed = run(LOOP, observed=False), run(LOOP)

    assert observed.said == bare.said
    assert observed.err == ""
    assert rows(observed.episodes) == json.loads(bare.said[0])[0]
    assert any(row[3] for row in rows(observed.episodes))
    assert observed.observing == {("episodes", "gymnasium.make"), ("progress", "gymnasium.make")}


def test_the_last_heartbeat_has_all_steps(run):
    heartbeats = run(LOOP).events("heartbeat")

    assert heartbeats[-1] == {"progress": 200}


def test_nothing_happens_unless_it_is_asked_for(run):
    assert run(LOOP, MOSAIC_OBSERVE="0").text == run(LOOP, observed=False).text


VECTORS = """
import gymnasium as gym, sys
def main():
    envs = gym.make_vec("CartPole-v1", num_envs=3, vectorization_mode=sys.argv[1])
    envs.action_space.seed(1)
    envs.reset(seed=1)
    for _ in range(60):
        observations, *_ = envs.step(envs.action_space.sample())
    print(observations.tolist())
    envs.close()
main()
"""


def test_vector_envs_of_this_process_and_of_others_have_the_same_episodes(run):
    bare = run(VECTORS, "sync", observed=False)
    sync, other = run(VECTORS, "sync"), run(VECTORS, "async")

    assert sync.said == other.said == bare.said
    assert len(sync.episodes) > 3
    without_time = [{k: v for k, v in line.items() if k != "ts_unix_ns"} for line in sync.episodes]
    assert without_time == [{k: v for k, v in line.items() if k != "ts_unix_ns"} for line in other.episodes]
    assert {line["env_index"] for line in sync.episodes} == {0, 1, 2}
    # The step after an episode's end only resets, and is not one.
    assert sync.events("heartbeat")[-1] == other.events("heartbeat")[-1] == {"progress": 180 - len(sync.episodes)}
    assert ("episodes", "gymnasium.vector.AsyncVectorEnv") in other.observing


COPIES = """
import copy, pickle
import gymnasium as gym
env = gym.make("CartPole-v1")
env.reset(seed=1)
for copied in (copy.deepcopy(env), pickle.loads(pickle.dumps(env))):
    before = env.unwrapped.state.tolist()
    copied.step(1)
    copied.step(1)
    print(type(copied).__name__, env.unwrapped.state.tolist() == before, copied.unwrapped.state.tolist() == before)
"""


def test_a_copy_of_an_env_steps_itself(run):
    assert run(COPIES).said == ["TimeLimit True False"] * 2


TWO = """
import gymnasium as gym, os

class Corridor(gym.Env):
    observation_space = action_space = gym.spaces.Discrete(2)
    def reset(self, *, seed=None, options=None):
        self.at = 0
        return 0, {}
    def step(self, action):
        self.at += 1
        return 0, self.reward, self.at == 4, False, {}

def play(env, steps):
    for _ in range(steps):
        if env.step(0)[2]:
            env.reset()

gym.register("Corridor-v0", lambda reward=1.0: setattr(Corridor, "reward", reward) or Corridor())
one = gym.make("Corridor-v0")
one.reset()
play(one, 10)
two = gym.make("Corridor-v0")
two.reset()
play(two, 5)
play(one, 2)
two.close()
one.close()
third = gym.make("Corridor-v0", reward=float("nan"))
third.reset()
play(third, 8)
child = os.fork()
if not child:
    play(third, 4)
    os._exit(0)
os.waitpid(child, 0)
"""


def test_the_steps_of_an_episode_line_are_those_of_all_envs_so_far(run):
    found = sorted(run(TWO).episodes, key=lambda line: line["episode_index"])

    at = [(line["env_index"], line["global_step"]) for line in found]
    assert at[:4] == [(0, 4), (0, 8), (1, 14), (0, 17)]
    # The two envs are closed, and their steps stay.
    assert at[4:6] == [(0, 21), (0, 25)]
    assert found[5]["total_reward"] != found[5]["total_reward"]  # NaN
    assert at[6:] == [(0, 29)]  # of the forked process, which ends without any last words
