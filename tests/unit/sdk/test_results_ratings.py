"""mosaic_sdk.results: games between operators, and the ratings that follow from them."""

import pytest
from mosaic_sdk.results.games import games_of, is_competition, is_multi_agent
from mosaic_sdk.results.ratings import Game, rate
from mosaic_sdk.results.rows import row_of


def played(*results):
    return [Game(a, b, score, index) for index, (a, b, score) in enumerate(results)]


def episode(index, returns, operators=("ppo", "chance"), lane="game"):
    return [
        row_of(
            {
                **{"lane": lane, "episode_index": index, "seed": index, "agent_id": f"player_{seat}"},
                **{"operator": operators[seat], "return": value},
            }
        )
        for seat, value in enumerate(returns)
    ]


def rows(*returns, **more):
    return [row for index, each in enumerate(returns) for row in episode(index, each, **more)]


def test_ratings_are_the_most_likely_ones():
    games = played(
        *[("a", "b", 1.0)] * 7,
        *[("a", "b", 0.0)] * 3,
        *[("b", "c", 1.0)] * 6,
        *[("b", "c", 0.5)] * 2,
        *[("b", "c", 0.0)] * 2,
        *[("a", "c", 1.0)] * 5,
    )

    found = rate(games)

    # By scipy.optimize.minimize on the likelihood with the same imaginary draws.
    assert {name: it.rating for name, it in found.items()} == pytest.approx({"a": 1176.678, "b": 1000, "c": 823.322})
    assert list(found) == ["a", "b", "c"]
    assert (found["b"].games, found["b"].wins, found["b"].draws, found["b"].losses) == (20, 9, 2, 9)
    assert all(it.interval[0] < it.rating < it.interval[1] for it in found.values())


def test_ten_to_one_is_about_400_points():
    found = rate(played(*[("a", "b", 1.0)] * 1000, *[("a", "b", 0.0)] * 100))

    assert found["a"].rating - found["b"].rating == pytest.approx(400, abs=3)


def test_who_wins_every_game_gets_a_bound_that_grows_with_the_games():
    few, many = rate(played(*[("a", "b", 1.0)] * 2)), rate(played(*[("a", "b", 1.0)] * 20))

    assert (few["a"].bound, few["b"].bound, few["a"].interval) == ("lower", "upper", None)
    assert 1000 < few["a"].rating < many["a"].rating < 2000


def test_one_draw_leaves_both_at_the_average():
    found = rate(played(("a", "b", 0.5)))

    assert {name: (it.rating, it.interval) for name, it in found.items()} == {"a": (1000, None), "b": (1000, None)}


def test_two_computations_give_equal_ratings():
    games = played(*[("a", "b", 1.0)] * 3, ("a", "b", 0.0))
    assert rate(games) == rate(games)


def test_a_zero_sum_game_is_a_competition():
    won = rows((1, -1), (-1, 1), (0, 0))

    assert is_competition(won)
    assert [(game.a, game.b, game.score) for game in games_of(won)] == [
        ("chance", "ppo", 0.0),
        ("chance", "ppo", 1.0),
        ("chance", "ppo", 0.5),
    ]


def test_an_illegal_move_loses_the_game():
    assert is_competition(rows((0, -1), (1, -1)))
    assert [game.score for game in games_of(rows((0, -1)))] == [0.0]


@pytest.mark.parametrize("returns", [(3, 3), (-2.5, -3.0), (5, -1)], ids=["shared", "local penalties", "roles"])
def test_agents_that_do_not_play_against_each_other_are_not_rated(returns):
    assert is_multi_agent(rows(returns))
    assert not is_competition(rows(returns, returns))


def test_team_mates_do_not_meet():
    teams = rows((1, 1, -1, -1), operators=("ppo", "gpt", "chance", "chance"))

    assert is_competition(teams)
    assert {(game.a, game.b) for game in games_of(teams)} == {("chance", "gpt"), ("chance", "ppo")}


def test_an_operator_that_plays_itself_is_not_rated():
    assert not is_competition(rows((1, -1), operators=("ppo", "ppo")))


def test_episodes_of_one_agent_are_not_games():
    alone = [*rows((1,), operators=("ppo",), lane="a"), *rows((0,), operators=("chance",), lane="b")]

    assert not is_multi_agent(alone)
    assert not is_competition(alone)
