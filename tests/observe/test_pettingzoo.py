"""PettingZoo: a game in turns, and one that is played at once. mpe2 is what became of its particle games."""

import json

GAMES = """
import json
from mpe2 import simple_spread_v3
from pettingzoo.classic import tictactoe_v3

seen = []

def play_at_once():
    env = simple_spread_v3.parallel_env(max_cycles=8)
    for episode in range(2):
        env.reset(seed=episode)
        for agent in env.agents: env.action_space(agent).seed(episode)
        total = 0.0
        while env.agents:
            _, rewards, *_ = env.step({agent: env.action_space(agent).sample() for agent in env.agents})
            total += sum(rewards.values())
        seen.append(round(total, 6))
    print(type(env).__name__, str(env))

def play_in_turns():
    env = tictactoe_v3.env()
    for episode in range(2):
        env.reset(seed=episode)
        for agent in env.agents: env.action_space(agent).seed(episode)
        for agent in env.agent_iter():
            observation, _, terminated, truncated, _ = env.last()
            is_out = terminated or truncated
            env.step(None if is_out else env.action_space(agent).sample(observation["action_mask"]))
        seen.append(0.0)
    print(type(env).__name__, str(env))

play_at_once()
play_in_turns()
print(json.dumps(seen))
"""


def test_one_episode_of_a_game_is_one_line_with_the_return_of_each_agent(run):
    bare, observed = run(GAMES, observed=False), run(GAMES)

    assert observed.said == bare.said
    assert [round(line["total_reward"], 6) for line in observed.episodes] == json.loads(bare.said[-1])
    assert [line["steps"] for line in observed.episodes][:2] == [8, 8]
    at_once, in_turns = observed.episodes[0], observed.episodes[-1]
    assert sorted(at_once["metadata"]["returns"]) == ["agent_0", "agent_1", "agent_2"]
    assert (at_once["terminated"], at_once["truncated"]) == (False, True)
    assert sorted(in_turns["metadata"]["returns"]) == ["player_1", "player_2"]
    assert (in_turns["terminated"], in_turns["truncated"]) == (True, False)
    # The turns in which agents only leave the game are not steps.
    assert observed.events("heartbeat")[-1] == {"progress": sum(line["steps"] for line in observed.episodes)}
    assert ("episodes", "mpe2.simple_spread_v3.parallel_env") in observed.observing
