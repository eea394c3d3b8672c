"""mosaic_sdk.results.summary: eval_summary.json, version 2."""

import json
import math
from pathlib import Path

import pytest
from mosaic_sdk.results.rows import row_of_episode
from mosaic_sdk.results.summary import EvalResults

OPERATORS = {"ppo": {"kind": "rl", "about": {"checkpoint": "/x.pt"}}, "chance": {"kind": "random"}}


def results(operators=OPERATORS, **more):
    return EvalResults(run_id="R1", env_id="Count-v0", mode="script", operators=operators, **more)


def add(found, operator, seed, value, **more):
    row = {"lane": operator, "operator": operator, "agent_id": operator, "episode_index": seed, "seed": seed}
    return found.add({**row, "return": value, "length": 10, **more})


def filled(returns):
    found = results(seeds=range(len(returns["ppo"])))
    for operator, values in returns.items():
        for seed, value in enumerate(values):
            add(found, operator, seed, value)
    return found


def test_the_summary_has_an_entry_per_operator_a_row_per_episode_and_the_comparison(tmp_path):
    found = results(seeds=[0, 1])
    add(found, "ppo", 0, 1.0, success=True, steps_per_s=10.0, decision_ms=1.0)
    add(found, "ppo", 1, 3.0, success=False, steps_per_s=40.0, decision_ms=4.0, length=20)
    add(found, "chance", 0, 0.0)
    add(found, "chance", 1, 0.5)

    path = found.write(tmp_path)

    document = json.loads((tmp_path / "eval_summary.json").read_text())
    assert path == str(tmp_path / "eval_summary.json")
    assert [document[key] for key in ("version", "run_id", "worker", "env_id", "mode", "seeds")] == [
        *(2, "R1", "eval", "Count-v0", "script"),
        [0, 1],
    ]
    assert document["operators"]["ppo"] == {
        **{"kind": "rl", "about": {"checkpoint": "/x.pt"}, "episodes": 2, "failed": 0, "mean_return": 2.0},
        **{"std_return": 1.0, "min_return": 1.0, "max_return": 3.0, "mean_length": 15.0, "iqm": 2.0},
        **{"interval": [1.0, 3.0], "success_rate": 0.5, "steps_per_s": 20.0, "decision_ms": 3.0},
    }
    assert document["operators"]["chance"]["success_rate"] is None
    pair = document["comparisons"][0]
    assert (pair["a"], pair["b"], pair["n"], pair["difference"], pair["wins"]) == ("ppo", "chance", 2, 1.75, 2)
    assert len(document["rows"]) == 4
    assert (document["ratings"], document["lanes"], document["ledger"]) == (None, {}, {})


def test_an_episode_that_was_cut_short_was_no_success():
    found = results()
    add(found, "ppo", 0, 1.0, success=True, terminated=True)
    add(found, "ppo", 1, 0.0, truncated=True)
    add(found, "chance", 0, 0.0, truncated=True)
    add(found, "chance", 1, 0.0, truncated=True)

    document = found.summary()

    assert [document["operators"][name]["success_rate"] for name in ("ppo", "chance")] == [0.5, 0.0]


def test_an_environment_without_success_has_no_success_rate():
    found = results()
    add(found, "ppo", 0, 500.0, truncated=True)

    assert found.summary()["operators"]["ppo"]["success_rate"] is None


def test_equal_rows_give_equal_files(tmp_path):
    returns = {"ppo": [0.1 * seed for seed in range(20)], "chance": [0.05 * seed for seed in range(20)]}

    first, second = (filled(returns).write(tmp_path / name) for name in ("a", "b"))

    assert Path(first).read_bytes() == Path(second).read_bytes()


def test_failed_episodes_are_counted_told_and_left_out():
    found = filled({"ppo": [1.0, 1.0, 1.0], "chance": [0.0, 0.0, 0.0]})
    add(found, "ppo", 1, -9.0, reason="operator ppo: no answer in 60 s.")

    document = found.summary()

    assert (document["operators"]["ppo"]["episodes"], document["operators"]["ppo"]["failed"]) == (2, 1)
    assert document["operators"]["ppo"]["mean_return"] == 1.0
    assert document["comparisons"][0]["n"] == 2
    assert document["warnings"][0] == "ppo: 1 failed episode is left out (seed 1): operator ppo: no answer in 60 s."
    assert document["rows"][1]["return"] == -9.0


def test_an_end_with_a_reason_that_is_no_failure_counts():
    found = filled({"ppo": [1.0], "chance": [0.0]})
    add(found, "ppo", 0, 0.5, reason="the model gave up", failed=False)

    assert found.summary()["operators"]["ppo"]["mean_return"] == 0.5


def test_a_row_that_is_added_again_counts_once():
    found = filled({"ppo": [1.0, 2.0], "chance": [0.0, 0.0]})

    add(found, "ppo", 1, 2.0)

    assert len(found.rows) == 4


@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf, None])
def test_returns_that_are_not_finite_are_null_told_and_left_out(tmp_path, odd):
    found = filled({"ppo": [1.0, odd], "chance": [0.0, 0.0]})

    document = json.loads(Path(found.write(tmp_path)).read_text(), parse_constant=pytest.fail)

    assert document["operators"]["ppo"]["mean_return"] == 1.0
    assert document["rows"][1]["return"] is None
    assert document["warnings"][0] == "ppo: 1 episode (seed 1) left out: the return is not a finite number."


def test_a_seed_that_is_played_twice_counts_once():
    found = filled({"ppo": [0.0, 6.0], "chance": [0.0, 0.0]})
    add(found, "ppo", 0, 2.0, episode_index=2)

    entry = found.summary()["operators"]["ppo"]

    assert entry["episodes"] == 3
    assert entry["mean_return"] == 3.5  # of 1.0 on seed 0 and 6.0 on seed 1


def test_repetitions_of_one_seed_are_compared_with_a_warning():
    found = results()
    for index in range(8):
        add(found, "ppo", 7, 1.0 + index, episode_index=index)
        add(found, "chance", 7, 0.0, episode_index=index)

    document = found.summary()

    assert document["comparisons"][0]["n"] == 8
    assert document["operators"]["ppo"]["interval"] is not None
    assert document["warnings"] == ["Only seed 7 was played: the intervals say nothing about other seeds."]


def test_few_seeds_are_told():
    warnings = filled({"ppo": [1.0, 2.0], "chance": [0.0, 0.0]}).summary()["warnings"]

    assert warnings == ["Only 2 seeds were played: intervals from fewer than 10 seeds tend to be too narrow."]


def test_an_operator_without_an_episode_has_an_entry_without_numbers():
    found = results()

    document = found.summary()

    assert document["operators"]["ppo"]["episodes"] == 0
    assert document["operators"]["ppo"]["mean_return"] is None
    assert document["comparisons"] == []


def team(found, lane, seed, players, env_index=0):
    for agent, (operator, value) in enumerate(players):
        row = {"lane": lane, "env_index": env_index, "episode_index": seed, "seed": seed, "agent_id": f"agent_{agent}"}
        found.add({**row, "operator": operator, "return": value, "length": 5})


def test_a_competition_has_ratings_and_says_whose_seat_never_changed():
    found = results()
    for seed in range(12):
        team(found, "game", seed, [("ppo", 1.0 if seed else -1.0), ("chance", -1.0 if seed else 1.0)])

    document = found.summary()

    assert list(document["ratings"]) == ["ppo", "chance"]
    assert (document["ratings"]["ppo"]["wins"], document["ratings"]["ppo"]["losses"]) == (11, 1)
    assert document["warnings"] == [
        "Each seat was always played by the same operator: an advantage of a seat is part of the result."
    ]


def test_two_players_are_compared_in_the_games_between_them():
    found = results({name: {} for name in ("ppo", "gpt", "chance")})
    for seed in range(10):
        team(found, "one", seed, [("ppo", 1.0), ("chance", -1.0)])
        team(found, "two", seed, [("gpt", 1.0), ("ppo", -1.0)], env_index=1)

    pairs = {(pair["a"], pair["b"]): pair["difference"] for pair in found.summary()["comparisons"]}

    assert pairs == {("ppo", "gpt"): -2.0, ("ppo", "chance"): 2.0}


def test_agents_that_share_a_goal_are_compared_by_lane():
    found = results()
    for seed in range(10):
        team(found, "mixed", seed, [("ppo", 2.0), ("chance", 2.0)])
        team(found, "chance", seed, [("chance", 1.0), ("chance", 1.0)], env_index=1)

    document = found.summary()

    assert document["ratings"] is None
    assert [(pair["a"], pair["b"], pair["difference"]) for pair in document["comparisons"]] == [
        ("mixed", "chance", 1.0)
    ]
    assert document["lanes"]["mixed"]["operators"] == ["ppo", "chance"]
    assert document["lanes"]["mixed"]["episodes"] == 10


def test_the_copies_of_a_lane_are_one_team():
    found = results()
    for seed in range(10):
        team(found, f"mixed.{seed % 2 + 1}", seed, [("ppo", 2.0), ("chance", 2.0)], env_index=seed % 2)
        team(found, f"chance.{seed % 2 + 1}", seed, [("chance", 1.0), ("chance", 1.0)], env_index=2 + seed % 2)

    document = found.summary()

    assert list(document["lanes"]) == ["mixed", "chance"]
    assert [(pair["a"], pair["b"], pair["n"]) for pair in document["comparisons"]] == [("mixed", "chance", 10)]


def test_lanes_with_other_operators_are_not_copies():
    found = results()
    team(found, "v.1", 0, [("ppo", 2.0), ("chance", 2.0)])
    team(found, "v.2", 0, [("chance", 1.0), ("chance", 1.0)], env_index=1)

    assert list(found.summary()["lanes"]) == ["v.1", "v.2"]


def test_a_failed_operator_takes_the_episode_from_all_its_players():
    found = results()
    for seed in range(3):
        team(found, "game", seed, [("ppo", 1.0), ("chance", -1.0)])
    row = {"lane": "game", "episode_index": 2, "seed": 2, "agent_id": "agent_1", "operator": "chance", "return": 0.0}
    found.add({**row, "reason": "operator chance: exit code 1"})

    document = found.summary()

    assert document["operators"]["ppo"]["failed"] == 1
    assert document["ratings"]["ppo"]["games"] == 2


def test_operators_that_never_met_are_told():
    found = results({name: {} for name in "abcd"})
    for seed in range(10):
        team(found, "one", seed, [("a", 1.0), ("b", -1.0)])
        team(found, "two", seed, [("c", 1.0), ("d", -1.0)], env_index=1)

    warnings = found.summary()["warnings"]

    assert "Some operators have not met, not even through others: their ratings cannot be compared." in warnings


def test_a_stored_episode_is_a_row():
    episode = {
        **{"type": "episode", "seq": 4, "episode_index": 3, "total_reward": 0.5, "steps": 20, "env_index": 1},
        **{"agent_id": "ppo", "operator": "ppo", "lane": "ppo", "episode_seed": 9, "terminated": True},
        **{"truncated": False, "success": True, "reason": "", "decision_ms": 2.0, "duration_s": 0.5},
    }

    row = row_of_episode(episode)

    assert (row["return"], row["length"], row["seed"], row["steps_per_s"]) == (0.5, 20, 9, 40.0)
    assert (row["operator"], row["lane"], row["success"], row["failed"]) == ("ppo", "ppo", True, False)
    assert "seq" not in row


def test_the_totals_of_a_ledger_are_part_of_the_summary(tmp_path):
    (tmp_path / "operators").mkdir()
    row = {"call_id": "1", "tokens_in": 100, "tokens_out": 5, "illegal": 1}
    (tmp_path / "operators" / "gpt.ledger.jsonl").write_text(json.dumps(row) + "\n" + '{"call_id": "2", "tok')

    document = results().summary(tmp_path)

    assert (document["ledger"]["gpt"]["decisions"], document["ledger"]["gpt"]["tokens_in"]) == (1, 100)


def test_an_episode_that_was_begun_again_is_paired_by_its_seed():
    found = results(seeds=[7])
    add(found, "ppo", 7, 1.0, episode_index=0)
    add(found, "chance", 7, 0.0, episode_index=0, reason="ended by a command")
    add(found, "chance", 7, 0.5, episode_index=1)

    pair = found.summary()["comparisons"][0]

    assert (pair["n"], pair["difference"]) == (1, 0.5)
