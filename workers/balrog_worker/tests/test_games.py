"""The games: the same seed is the same episode, the views are words, and progress is what the paper defines."""

import random

import pytest
from balrog_worker.config import BalrogConfig
from balrog_worker.games import make_game
from balrog_worker.tasks import Task

SMALL = {"treasure_hunter_level": 1, "coin_collector_level": 1, "cooking_rooms": 1}


def game_of(name, tmp_path, **settings):
    config = BalrogConfig(run_id="R1", agent="random", **{**SMALL, **settings})
    return make_game(Task(*name.split("/")), config, str(tmp_path))


def episode(game, seed, steps=12):
    """What is seen in an episode with random actions."""
    chance = random.Random(seed)
    seen = [game.reset(seed=seed)[0], game.goal]
    for _ in range(steps):
        view, reward, terminated, truncated, _ = game.step(chance.choice(game.choices()))
        seen.append((view, reward, game.progress))
        if terminated or truncated:
            break
    return seen


@pytest.mark.parametrize(
    "name",
    ["babyai/putnext", "crafter/default", "textworld/coin_collector", "minihack/Quest-Easy", "nle/NetHackChallenge"],
)
def test_the_same_seed_is_the_same_episode_and_another_is_not(name, tmp_path):
    game = game_of(name, tmp_path)

    first, again, other = (episode(game, seed) for seed in (5, 5, 6))
    picture = game.render()
    game.close()

    assert first == again
    assert first != other
    assert game.default in game.actions.names or name.startswith("textworld")
    assert game.noop in game.actions.names
    assert name.startswith("textworld") or (picture.ndim == 3 and picture.shape[2] == 3)


@pytest.mark.parametrize("kind", ["goto", "pickup", "open", "putnext", "pick_up_seq_go_to"])
def test_babyai_counts_an_instruction_that_was_followed(kind, tmp_path):
    from minigrid.utils.baby_ai_bot import BabyAIBot

    game = game_of(f"babyai/{kind}", tmp_path)
    game.reset(seed=3)
    bot, over = BabyAIBot(game._env), False
    steps = 0
    while not over:
        assert game.progress == 0
        _, _, terminated, truncated, _ = game.step(game.actions.names[int(bot.replan())])
        over, steps = terminated or truncated, steps + 1

    assert game.progress == 100
    assert steps < game.max_steps
    words = {"goto": "go to", "pickup": "pick up", "open": "open", "putnext": "put", "pick_up_seq_go_to": "pick up"}
    assert words[kind] in game.details()["mission"]
    assert game.details()["mission"] in game.goal


def test_babyai_says_where_things_are(tmp_path):
    from minigrid.core.world_object import Ball, Key

    game = game_of("babyai/goto", tmp_path)
    game.reset(seed=3)
    env = game._env
    for cell in range(len(env.grid.grid)):
        if env.grid.grid[cell] is not None and env.grid.grid[cell].type != "wall":
            env.grid.grid[cell] = None
    env.agent_pos, env.agent_dir = (2, 2), 0  # facing east
    env.grid.set(5, 2, Ball("red"))
    env.grid.set(3, 4, Key("blue"))

    view = game._view()

    lines = view.lasting.splitlines()
    assert "red ball: 3 steps forward" in lines
    assert "blue key: 1 step forward and 2 steps right" in lines
    assert "wall: 2 steps left" in lines
    assert lines[-1] == "You carry nothing."


def test_crafter_counts_achievements(tmp_path):
    game = game_of("crafter/default", tmp_path)
    view, _ = game.reset(seed=1)
    assert "You face south: grass." in view.lasting
    assert "health 9/9" in view.passing

    while "collect_sapling" not in game.details()["achievements"]:
        game.step("do")  # a sapling is found in every tenth tuft of grass
    game.step("place plant")

    assert game.details()["achievements"] == ["collect_sapling", "place_plant"]
    assert game.progress == pytest.approx(100 * 2 / 22)


def test_crafter_plays_the_same_episode_when_it_is_watched(tmp_path):
    game = game_of("crafter/default", tmp_path)

    def ended(is_watched):
        game.reset(seed=1)
        game._env._step = 270  # soon it is night, and pictures have noise
        for _ in range(15):
            game.step("noop")
            if is_watched:
                game.render()
        return game._env._world.random.randint(2**31)

    assert ended(True) == ended(False)


def test_textworld_counts_the_score_and_hides_the_solution(tmp_path):
    game = game_of("textworld/coin_collector", tmp_path, max_steps=3)
    view, _ = game.reset(seed=2)

    seen = [game.step("dance with the coin"), game.step("take coin")]

    assert "take coin" in game.goal or "coin" in game.goal
    assert "objective" not in view.lasting
    assert ">" not in view.lasting
    assert [turn[2] for turn in seen] == [False, True]
    assert game.progress == 100
    assert game.details() == {"score": 1, "max_score": 1, "won": True}
    game.reset(seed=2)
    assert [game.step("look")[3] for _ in range(3)] == [False, False, True], "its steps are limited"
    assert sorted(path.suffix for path in (tmp_path / "games").iterdir()) == [".json", ".z8"]


def test_minihack_counts_a_level_that_was_solved(tmp_path):
    from balrog_worker.games.minihack import MiniHack

    game = MiniHack("Room-5x5", 100)
    view, _ = game.reset(seed=3)
    words = {(0, -1): "north", (0, 1): "south", (1, 0): "east", (-1, 0): "west"}
    words.update({(1, -1): "northeast", (1, 1): "southeast", (-1, 1): "southwest", (-1, -1): "northwest"})
    assert "staircase down: " in view.lasting
    over = False
    while not over:
        rows = view.lasting.partition("Map:\n")[2].splitlines()
        where = {mark: (row.index(mark), y) for y, row in enumerate(rows) for mark in "@>" if mark in row}
        (x, y), (to_x, to_y) = where["@"], where[">"]
        direction = ((to_x > x) - (to_x < x), (to_y > y) - (to_y < y))
        assert game.progress == 0
        view, _, over, _, _ = game.step(words[direction])
    game.close()

    assert game.progress == 100


def test_nethack_ends_when_nothing_happens_any_more(tmp_path):
    from balrog_worker.games.nethack import PATIENCE

    game = game_of("nle/NetHackChallenge", tmp_path)
    game.reset(seed=3)
    steps = 1
    while not game.step("esc")[3]:
        steps += 1
    game.close()

    assert PATIENCE <= steps <= PATIENCE + 2
    assert game.details() == {"dungeon_level": 1, "experience_level": 1}


def test_nethacks_progress_is_linear_or_from_a_table_of_the_user(tmp_path):
    from balrog_worker.games.nethack import Table
    from mosaic_sdk.config import ConfigError

    path = tmp_path / "table.json"
    path.write_text('{"Dlvl:3": 0.02, "Xp:4": 0.05}')

    assert [Table().progress(*place) for place in ((1, 1), (50, 1), (60, 1), (1, 30))] == [0, 100, 100, 100]
    assert Table().progress(2, 4) == pytest.approx(100 * 3 / 29)
    assert [Table(str(path)).progress(*place) for place in ((1, 1), (3, 1), (3, 4))] == [0, 2, 5]
    path.write_text('{"Dlvl:3": 2}')
    with pytest.raises(ConfigError, match="must be a number from 0 to 1"):
        Table(str(path))


def test_messages_of_several_pages_are_read_to_their_end(tmp_path):
    game = game_of("nle/NetHackChallenge", tmp_path)
    chance, steps, keys = random.Random(1), 0, 0
    press = game._env.step

    def counted(key):
        nonlocal keys
        keys += 1
        return press(key)

    game._env.step = counted
    view, over = game.reset(seed=3)[0], False
    while steps < 150 and not over:
        assert "--More--" not in view.lasting
        view, _, over, _, _ = game.step(chance.choice(game.choices()))
        steps += 1
    game.close()

    assert keys > steps, "no message had several pages"
