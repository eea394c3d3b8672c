"""The table in the paper's form."""

import math

from balrog_worker.results import standard_error, summarise, table


def row(task, progression, **more):
    about = {"task": task, "environment": task.partition("/")[0], "progression": progression, "length": 10}
    return {**about, "invalid": 1, "tokens_in": 5, "tokens_out": 2, "cost": None, **more}


ROWS = [
    row("babyai/goto", 100.0),
    row("babyai/goto", 0.0),
    row("babyai/open", 100.0),
    row("babyai/open", 100.0),
    row("crafter/default", 20.0, cost=0.5),
    row("crafter/default", 30.0, cost=0.25),
]
ABOUT = {"agent": "naive", "model": "m", "left_out": {}}


def test_the_overall_average_weighs_environments_equally():
    found = summarise(ROWS, 6, ABOUT)

    assert found["environments"]["babyai"]["progression"] == 75
    assert found["environments"]["babyai"]["standard_error"] == 25
    assert found["environments"]["crafter"]["progression"] == 25
    assert found["average"]["progression"] == 50
    assert math.isclose(found["average"]["standard_error"], math.sqrt(25**2 + 5**2) / 2)
    assert (found["complete"], found["tokens_in"], found["cost"]) == (True, 30, 0.75)


def test_a_single_episode_has_no_standard_error():
    assert math.isnan(standard_error([3.0]))
    assert standard_error([1.0, 3.0]) == 1.0


def test_the_table_has_a_line_for_each_environment_and_says_what_is_missing():
    text = table(summarise(ROWS[:5], 6, {**ABOUT, "left_out": {"minihack/Boxoban-Hard": "needs levels"}}))

    assert "| BabyAI | 75.0 ± 25.0 | 4 |" in text
    assert "| Crafter | 20.0 | 1 |" in text
    assert "| babyai/open | 100.0 ± 0.0 | 2 | 10.0 | 10.0 |" in text
    assert "Not complete: 5 of 6 episodes." in text
    assert "minihack/Boxoban-Hard is left out: it needs levels" in text
    assert "Baba Is AI cannot be played here" in text
    assert "price 0.5000" in text
