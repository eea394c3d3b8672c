"""The lanes of a script, once the agents are known."""

import pytest
from mosaic_sdk.config import ConfigError
from mosaic_sdk.operators.lane_plan import Seat
from mosaic_sdk.operators.script import EvalScript

TWO = {"a": "random", "b": "passive"}
PLAYERS = ["p0", "p1"]


def plan(agents=None, **keys):
    keys = {"env": "x", "operators": TWO, "seeds": "0-3", **keys}
    return EvalScript.parse(keys).lane_plan(agents)


def test_a_single_agent_script_has_one_lane_per_operator():
    lanes = plan()

    assert [(lane.index, lane.name, lane.operator, lane.agents) for lane in lanes] == [
        (0, "a", "a", {}),
        (1, "b", "b", {}),
    ]
    assert lanes[0].seats == (Seat("a", ("",)),)
    assert lanes[0].episodes == ((0, 0), (1, 1), (2, 2), (3, 3))
    assert lanes[0].describe() == {"index": 0, "name": "a", "operator": "a"}


def test_copies_of_a_lane_share_its_seeds():
    lanes = plan(seeds=[5, 6, 7], parallel=2, operators={"a": "random"})

    assert [lane.name for lane in lanes] == ["a.1", "a.2"]
    assert [lane.episodes for lane in lanes] == [((0, 5), (2, 7)), ((1, 6),)]


def test_there_are_no_more_copies_than_seeds():
    assert len(plan(seeds=[5, 6], parallel=8, operators={"a": "random"})) == 2


def test_one_operator_plays_all_agents_of_a_multi_agent_env():
    (lane,) = plan(PLAYERS, operators={"a": "random"})

    assert (lane.operator, lane.agents) == (None, {"p0": "a", "p1": "a"})
    assert lane.seats == (Seat("a", ("p0",)), Seat("a", ("p1",)))


def test_an_agent_is_bound_by_its_id_then_its_group_then_the_star():
    agents = {"p1": "b", "red": "a", "*": "b"}

    (lane,) = plan(["p0", "p1", "p2", "p3"], lanes=[{"name": "x", "agents": agents}], groups={"red": ["p0", "p3"]})

    assert lane.agents == {"p0": "a", "p1": "b", "p2": "b", "p3": "a"}
    assert lane.seats == (Seat("a", ("p0", "p3")), Seat("b", ("p1",)), Seat("b", ("p2",)))
    assert lane.describe() == {"index": 0, "name": "x", "agents": lane.agents}


def test_every_rotation_of_the_operators_is_a_lane():
    lanes = plan(PLAYERS, lanes=[{"name": "x", "agents": {"p0": "a", "p1": "b"}}], rotate=True)

    assert [(lane.name, lane.agents) for lane in lanes] == [
        ("x", {"p0": "a", "p1": "b"}),
        ("x-r1", {"p0": "b", "p1": "a"}),
    ]


def test_groups_rotate_as_one_and_equal_seatings_are_played_once():
    agents, groups = ["p0", "p1", "p2", "p3"], {"red": ["p0", "p2"], "blue": ["p1", "p3"]}

    teams = plan(agents, lanes=[{"name": "x", "agents": {"red": "a", "blue": "b"}}], groups=groups, rotate=True)
    same = plan(agents, operators={"a": "random"}, groups=groups, rotate=True)

    assert [lane.agents for lane in teams] == [
        {"p0": "a", "p1": "b", "p2": "a", "p3": "b"},
        {"p0": "b", "p1": "a", "p2": "b", "p3": "a"},
    ]
    assert len(same) == 1


def test_rotations_and_copies_multiply():
    lanes = plan(PLAYERS, lanes=[{"name": "x", "agents": {"p0": "a", "p1": "b"}}], rotate=True, parallel=2)

    assert [(lane.index, lane.name) for lane in lanes] == [(0, "x.1"), (1, "x.2"), (2, "x-r1.1"), (3, "x-r1.2")]


@pytest.mark.parametrize(
    ("agents", "keys", "message"),
    [
        (PLAYERS, {}, "lanes is missing: the environment has the agents p0, p1, and there are 2 operators."),
        (None, {"lanes": [{"agents": {"p0": "a", "*": "b"}}]}, "lanes[0].agents: the environment has one agent."),
        (None, {"rotate": True}, "rotate: the environment has one agent. Remove rotate."),
        (None, {"groups": {"red": ["p0"]}}, "groups: the environment has one agent. Remove groups."),
        (
            PLAYERS,
            {"lanes": ["a", "b"], "groups": {"red": ["p7"]}},
            'groups.red: there is no agent "p7". Choose from: p0, p1.',
        ),
        (
            PLAYERS,
            {"lanes": [{"agents": {"p0": "a", "p2": "b"}}]},
            'there is no agent or group "p2". Choose from: p0, p1, *.',
        ),
        (
            PLAYERS,
            {"lanes": [{"agents": {"p0": "a"}}, "b"]},
            'lanes.lane-0.agents: p1 has no operator. Add it, or "*" for all the others.',
        ),
        (
            PLAYERS,
            {"lanes": [{"agents": {"p0": "a", "p1": "b"}}], "groups": {"red": ["p0", "p1"]}},
            "the agents of the group red must have the same operator.",
        ),
        (
            PLAYERS,
            {
                "lanes": [{"name": "x", "agents": {"p0": "a", "p1": "b"}}, {"name": "x-r1", "operator": "a"}],
                "rotate": True,
            },
            "lanes: two lanes have the name x-r1. Give each a name of its own.",
        ),
    ],
)
def test_what_does_not_match_the_environment_is_refused(agents, keys, message):
    with pytest.raises(ConfigError) as refused:
        plan(agents, **keys)

    assert message in str(refused.value)
