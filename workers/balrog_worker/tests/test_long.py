"""Every task as it is played without settings: the games are as large as the defaults say."""

import random

import pytest
from balrog_worker.config import BalrogConfig
from balrog_worker.games import make_game, unavailable

TASKS = BalrogConfig(run_id="R1", agent="random").chosen_tasks()


@pytest.mark.slow
@pytest.mark.parametrize("task", TASKS, ids=str)
def test_every_task_can_be_played(task, tmp_path):
    if unavailable(task):
        pytest.skip(unavailable(task))
    game, chance = make_game(task, BalrogConfig(run_id="R1", agent="random"), str(tmp_path)), random.Random(1)

    view, _ = game.reset(seed=0)
    over, steps = False, 0
    while not over and steps < 80:
        assert view.lasting
        view, _, terminated, truncated, _ = game.step(chance.choice(game.choices()))
        over, steps = terminated or truncated, steps + 1
    game.close()

    assert 0 <= game.progress <= 100
    assert game.goal
