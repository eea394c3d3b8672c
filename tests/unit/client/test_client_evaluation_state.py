"""The lanes of an evaluation, from the events of its run."""

import pytest
from evaluation_events import asked, episode, said, started, step

from mosaic.client.evaluation import act_command
from mosaic.client.evaluation_state import EvaluationState
from mosaic.client.lanes import ASKING, DONE, FAILED, PLAYING, STARTING
from mosaic.model.errors import MosaicError


@pytest.fixture
def state():
    state = EvaluationState()
    state.receive([started("ppo", "me")])
    return state


def test_lanes_exist_when_the_evaluation_has_started(state):
    assert [(lane.index, lane.name, lane.state) for lane in state.lanes] == [(0, "ppo", STARTING), (1, "me", STARTING)]
    assert (state.env_id, state.mode, state.seeds) == ("Corridor", "manual", [0, 1])
    assert [lane.episodes_total for lane in state.lanes] == [2, 2]


def test_a_lane_shows_its_last_step(state):
    state.receive([said("lane_ready", lane=0, episode_index=0, seed=7, text="@..")])
    more = {"action": 2, "action_name": "forward", "episode_return": 0.75, "text": "Ahead!", "view": ".@."}
    state.receive([step(index=3, **more)])

    lane = state.lanes[0]

    assert (lane.state, lane.seed, lane.step_index, lane.view) == (PLAYING, 7, 3, ".@.")
    assert (lane.action, lane.action_name, lane.reward, lane.episode_return) == (2, "forward", 0.5, 0.75)
    assert lane.text == "Ahead!"


def test_only_the_newest_step_of_a_batch_is_read(state):
    broken = step(index=0)
    broken.extra_json = b"not read"

    state.receive([broken, step(index=1, action=3)])

    assert state.lanes[0].action == 3


def test_the_next_episode_begins_without_the_last_step(state):
    state.receive([step(index=3, action=2, text="Ahead!"), said("lane_done", lane=0, episode_index=0, seed=0)])
    assert state.lanes[0].state == DONE

    state.receive([said("lane_ready", lane=0, episode_index=1, seed=1, text="@..")])

    lane = state.lanes[0]
    assert (lane.state, lane.step_index, lane.action, lane.text, lane.episode_return) == (PLAYING, -1, None, "", 0.0)
    assert state.lanes[1].state == STARTING  # the other lane is not disturbed


def test_episodes_failures_and_means_are_counted(state):
    state.receive([episode(index=0, total=1.0), episode(index=1, total=0.0)])
    state.receive([episode(index=2, total=9.0, reason="operator ppo: no answer in 60 s", failed=True, episode_seed=2)])
    state.receive([said("lane_failed", lane=0, episode_index=2, seed=2, reason="operator ppo: no answer in 60 s")])

    lane = state.lanes[0]

    assert (lane.episodes_done, lane.failures, lane.mean_return) == (3, 1, 0.5)
    assert (lane.state, lane.reason) == (FAILED, "operator ppo: no answer in 60 s")
    assert lane.failure == "seed 2: operator ppo: no answer in 60 s"


def test_a_multi_agent_episode_counts_once():
    state = EvaluationState()
    lanes = [{"index": 0, "name": "match", "agents": {"a": "ppo", "b": "me"}, "episodes": 5}]
    state.receive([said("evaluation_started", env_id="E", mode="script", lanes=lanes, seeds=[0])])
    state.receive([step(agent="a", operator="ppo", action=1), step(agent="b", operator="me", action=2)])
    state.receive([episode(agent="a"), episode(agent="b", total=-1.0)])

    lane = state.lanes[0]

    assert (lane.episodes_done, lane.episodes_total) == (1, 5)
    assert {name: (one.operator, one.action) for name, one in lane.agents.items()} == {"a": ("ppo", 1), "b": ("me", 2)}


def test_a_request_is_open_until_the_step_or_the_answer(state):
    state.receive([asked(lane=1, request=4, text="@..", deadline_s=30)])
    request = state.lanes[1].request

    assert (state.lanes[1].state, state.lanes[1].view) == (ASKING, "@..")
    assert (request.request, request.operator, request.time_left_s(1010.0)) == (4, "me", 20.0)
    assert [(choice.name, choice.keys) for choice in request.choices] == [("left", ("a",)), ("right", ("d",))]

    state.receive([said("command_done", seq=9, cmd="act", ok=True, message="", request=4)])
    assert state.lanes[1].request is None

    state.receive([asked(lane=1, request=5), step(lane=1, agent="me")])
    assert (state.lanes[1].request, state.lanes[1].state) == (None, PLAYING)


def test_a_refused_answer_leaves_the_request_open(state):
    state.receive([asked(lane=1, request=4)])
    state.receive([said("command_done", seq=9, cmd="act", ok=False, message="not now", request=4)])

    assert state.lanes[1].request.request == 4
    assert (state.answers[9].ok, state.answers[9].message) == (False, "not now")


def test_two_people_of_one_lane_are_asked_at_once():
    state = EvaluationState()
    lanes = [{"index": 0, "name": "match", "agents": {"a": "ann", "b": "bob"}}]
    state.receive([said("evaluation_started", env_id="E", mode="script", lanes=lanes, seeds=[0])])
    state.receive([asked(agent="a", operator="ann", request=1), asked(agent="b", operator="bob", request=2)])

    assert [request.operator for request in state.requests_for()] == ["ann", "bob"]
    assert [request.request for request in state.requests_for("bob")] == [2]
    assert [request.request for request in state.requests_for("b")] == [2]


def test_differing_first_observations_are_a_warning(state):
    state.receive([said("observations_differ", seed=3, lanes={"ppo": "aa", "me": "bb"})])

    assert state.warnings == ["The first observations of seed 3 differ between the lanes ppo, me."]


def test_the_time_left_follows_from_the_episodes(state):
    state.receive([episode(lane=0, at_s=1010.0)])

    assert state.eta_s == 30.0  # one of four took 10 s


@pytest.mark.parametrize(
    "event",
    [
        said("lane_ready", lane="x"),
        said("lane_ready", lane=9, seed=1),
        said("lane_done"),
        said("action_requested", lane=0, actions="?", request=[1]),
        said("command_done", seq=None),
        said("evaluation_state", state=4),
        said("something_else", lane=0),
        step(lane=7),
        episode(lane=-3),
    ],
)
def test_an_event_that_makes_no_sense_disturbs_nothing(state, event):
    state.receive([event, said("lane_ready", lane=1, episode_index=0, seed=5)])

    assert state.lanes[1].seed == 5


def test_an_action_is_sent_by_its_name_its_key_or_its_value(state):
    state.receive([asked(lane=1, request=4)])
    request = state.lanes[1].request

    actions = [act_command(request, action)["action"] for action in ("right", "d", "1", 1, [0.5])]

    assert actions == [1, 1, 1, 1, [0.5]]
    with pytest.raises(MosaicError, match="action: 'up' is not one of the actions"):
        act_command(request, "up")
