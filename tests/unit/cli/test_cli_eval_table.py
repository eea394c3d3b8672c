"""The table that `mosaic eval` prints: 80 columns, honest sentences, warnings."""

import pytest
from mosaic_sdk.results.summary import EvalResults
from mosaic_sdk.results.wording import sentence

from mosaic.cli.eval_table import render

OPERATORS = {"ppo": {"kind": "rl"}, "chance": {"kind": "random"}}


def evaluation(returns, **more):
    """`returns`: {operator: [return on seed 0, on seed 1, …]}"""
    found = EvalResults(run_id="R1", env_id="Count-v0", operators={name: {} for name in returns})
    for index, (operator, values) in enumerate(returns.items()):
        for seed, value in enumerate(values):
            row = {"lane": operator, "env_index": index, "operator": operator, "agent_id": operator}
            found.add({**row, "episode_index": seed, "seed": seed, "return": value, "length": 10, **more})
    return found


def pair(returns):
    [found] = evaluation(returns).summary()["comparisons"]
    return found


def test_each_operator_has_a_line_and_each_pair_a_sentence():
    found = evaluation({"ppo": [1.0] * 12, "chance": [0.5, 0.0] * 6}, success=True, decision_ms=1.5, steps_per_s=20.0)

    assert render(found.summary(), width=100).splitlines() == [
        "OPERATOR  EPISODES  RETURN [95 %]         IQM  SUCCESS  LENGTH  STEPS/S  LATENCY",
        "ppo             12  1 [1, 1]                1    100 %      10       20   1.5 ms",
        "chance          12  0.25 [0.125, 0.375]  0.25    100 %      10       20   1.5 ms",
        "",
        "ppo beats chance by 0.75 [0.625, 0.875] on 12 seeds, better on 12, worse on 0, probability of",
        "  improvement 1.00.",
    ]


def test_a_wide_table_loses_its_least_important_columns():
    found = evaluation(
        {"ppo-of-last-tuesday": [0.125, 0.25] * 10, "chance": [0.1, 0.2] * 10},
        **{"success": True, "decision_ms": 1.5, "steps_per_s": 20.0},
    )

    lines = render(found.summary(), width=80).splitlines()

    assert max(map(len, lines)) <= 80
    assert "RETURN [95 %]" in lines[0]
    assert "STEPS/S" not in lines[0]


def test_failed_episodes_are_in_the_table_and_in_a_warning():
    found = evaluation({"ppo": [1.0] * 10, "chance": [0.0] * 10})
    found.add({"lane": "ppo", "operator": "ppo", "agent_id": "ppo", "episode_index": 3, "seed": 3, "reason": "it died"})

    text = render(found.summary())

    assert "ppo        9 of 10  1 [1, 1]" in text
    assert "warning: ppo: 1 failed episode is left out (seed 3): it died." in text


def test_control_characters_of_strangers_do_not_reach_the_terminal():
    found = evaluation({"ppo": [1.0] * 10})
    found.warn("the env said \x1b[2J\x07 boo")

    assert "\x1b" not in render(found.summary())


def test_games_have_a_record_and_ratings():
    found = EvalResults(run_id="R1", env_id="connect_four_v3", operators=OPERATORS)
    for seed in range(10):
        for seat, (operator, value) in enumerate((("ppo", 1.0), ("chance", -1.0))):
            row = {"lane": "game", "episode_index": seed, "seed": seed, "agent_id": f"player_{seat}", "length": 9}
            found.add({**row, "operator": operator, "return": value})

    lines = render(found.summary()).splitlines()

    assert "OPERATOR  GAMES  WON  DRAWN  LOST  RATING [95 %]" in lines
    assert "ppo          10   10      0     0  1290 or more" in lines
    assert "chance       10    0      0    10  710 or less" in lines
    assert not any(line.startswith("LANE") for line in lines)


def test_the_ledger_tells_bad_play_from_a_bad_server():
    summary = evaluation({"gpt": [1.0]}).summary()
    totals = {"decisions": 1200, "tokens_in": 812345, "tokens_out": 24000, "cost": None, "illegal": 31, "fallbacks": 4}
    summary["ledger"] = {"gpt": {**totals, "infrastructure": {"timeout": 2, "http 500": 1}}}

    assert "gpt      1,200    812,345  24,000     –       31          4              3" in render(summary)


def test_many_comparisons_are_cut_short():
    found = evaluation({f"op{index}": [float(index)] * 2 for index in range(8)})

    assert "… and 13 more comparisons in eval_summary.json" in render(found.summary())


def test_many_warnings_are_cut_short():
    found = evaluation({"ppo": [1.0] * 10})
    for seed in range(20):
        found.warn(f"Seed {seed}: the first observations differ.")

    lines = render(found.summary()).splitlines()

    assert lines[-2:] == [
        "warning: Seed 7: the first observations differ.",
        "… and 12 more warnings in eval_summary.json",
    ]


def test_an_evaluation_without_an_episode_is_a_table_of_dashes():
    assert render(evaluation({"ppo": []}).summary()).splitlines() == [
        "OPERATOR  EPISODES  RETURN [95 %]",
        "ppo              0  –",
    ]


@pytest.mark.parametrize(
    ("returns", "expected"),
    [
        (
            {"a": [0.0] * 10, "b": [0.5, 1.0] * 5},
            "b beats a by 0.75 [0.6, 0.9] on 10 seeds, better on 10, worse on 0, probability of improvement 1.00.",
        ),
        (
            {"a": [0.0, 1.0] * 5, "b": [1.0, 0.0] * 5},
            "a and b: no clear difference: 0 [-0.6, 0.6] on 10 seeds, better on 5, worse on 5, "
            "probability of improvement 0.50.",
        ),
        ({"a": [0.5] * 4, "b": [0.5] * 4}, "a and b score the same on all 4 seeds."),
        (
            {"a": [1.0] * 5, "b": [0.0] * 5},
            "a and b: no clear difference: +1 [1, 1] on 5 seeds, better on 5, worse on 0, "
            "probability of improvement 1.00; too few seeds to rule out luck.",
        ),
        ({"a": [1.0], "b": [0.0]}, "a and b have one seed in common: +1. One seed says nothing about others."),
    ],
    ids=["the second wins", "no difference", "equal", "five seeds", "one seed"],
)
def test_a_sentence_claims_no_more_than_the_seeds_show(returns, expected):
    assert sentence(pair(returns)) == expected


def test_without_common_seeds_the_sentence_says_so():
    found = evaluation({"a": [1.0]})
    found.add({"lane": "b", "operator": "b", "agent_id": "b", "episode_index": 0, "seed": 7, "return": 1.0})

    [it] = found.summary()["comparisons"]

    assert sentence(it) == "a and b have no seed in common, so they cannot be compared."
