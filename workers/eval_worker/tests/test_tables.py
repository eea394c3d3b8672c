"""Hosted lanes with real environments: single-agent, turn-based and simultaneous games, and what fails in them."""

from conftest import players
from PIL import Image, ImageSequence

CONNECT_FOUR = {
    "env": "pettingzoo/connect_four_v3",
    "operators": {"chance": "random", "lazy": "passive"},
    "lanes": [{"name": "game", "agents": {"player_0": "chance", "player_1": "lazy"}}],
    "seeds": [0, 1],
}


def test_operators_play_against_each_other_in_both_seats(evaluate):
    run = evaluate({**CONNECT_FOUR, "rotate": True})

    assert run.finish() == 0

    seats = {row["lane"]: {} for row in run.episodes()}
    for row in run.episodes():
        seats[row["lane"]][row["agent_id"]] = row["operator"]
    assert seats == {
        "game": {"player_0": "chance", "player_1": "lazy"},
        "game-r1": {"player_0": "lazy", "player_1": "chance"},
    }
    for lane in seats:
        assert sum(row["total_reward"] for row in run.episodes(lane)) == 0
    assert run.summary["ratings"]


def test_a_game_of_two_seats_prints_the_same_lines_again(evaluate):
    runs = [evaluate(CONNECT_FOUR) for _ in range(2)]

    for run in runs:
        run.finish()

    assert runs[0].results() == runs[1].results()


def test_agents_of_a_group_share_a_process_in_a_simultaneous_game(evaluate):
    script = {
        "env": {"id": "mpe2/simple_spread_v3", "kwargs": {"max_cycles": 3}},
        "operators": {"chance": "random", **players("troupe", owns_env=False)},
        "groups": {"pair": ["agent_0", "agent_1"]},
        "lanes": [{"name": "team", "agents": {"pair": "troupe", "agent_2": "chance"}}],
        "seeds": [0],
    }
    run = evaluate(script, operators={"troupe": {"action": 1}})

    assert run.finish() == 0

    assert {row["agent_id"]: row["operator"] for row in run.episodes()} == {
        "agent_0": "troupe",
        "agent_1": "troupe",
        "agent_2": "chance",
    }
    assert [step["action"] for step in run.steps() if step["agent_id"] == "agent_1"] == [1, 1, 1]
    assert len(run.steps()) == 9


def test_an_operator_that_crashes_ends_its_lane_and_not_the_other(evaluate):
    operators = {**players("frail", owns_env=False), "chance": "random"}
    script = {"env": "CartPole-v1", "operators": operators, "seeds": [0, 1, 2], "max_steps": 5}
    run = evaluate(script, operators={"frail": {"crash": [1, 2]}})

    assert run.finish() == 0

    assert [failure["reason"] for failure in run.events("lane_failed")] == [
        "operator frail: exited with code 7: asked to crash"
    ]
    assert [(row["steps"], row["failed"]) for row in run.episodes("frail")] == [(5, False), (2, True), (5, False)]
    assert [row["steps"] for row in run.episodes("chance")] == [5, 5, 5]


def test_an_episode_that_an_operator_forfeits_counts(evaluate):
    script = {"env": "CartPole-v1", "operators": players("weak", owns_env=False), "seeds": [0, 1], "max_steps": 5}
    run = evaluate(script, operators={"weak": {"forfeit": [0, 2]}})

    assert run.finish() == 0

    rows = [(row["steps"], row["failed"], row["reason"]) for row in run.episodes()]
    assert rows == [(2, False, "operator weak: No legal action after 3 tries."), (5, False, "")]
    assert run.summary["operators"]["weak"]["episodes"] == 2
    again = evaluate(script, operators={"weak": {}}, resume_from=run.journal)
    again.finish()
    assert again.results() == run.results()


def test_an_illegal_action_ends_the_episode_with_the_environments_own_words(evaluate):
    script = {"env": "CartPole-v1", "operators": players("wild", owns_env=False), "seeds": [0]}
    run = evaluate(script, operators={"wild": {"action": 9}})

    assert run.finish() == 1

    assert "9 is not an integer from 0 to 1" in run.events("lane_failed")[0]["reason"]


def test_an_environment_that_does_not_exist_ends_the_run_at_once(evaluate):
    run = evaluate({"env": "NoSuchEnv-v0", "operators": {"chance": "random"}, "seeds": "0-3"})

    assert run.finish() == 1

    assert "NoSuchEnv" in run.lines[-1]["payload"]["error"]
    assert not run.events("lane_failed")


def test_a_player_goes_on_where_no_host_can_make_the_environment(evaluate):
    script = {"env": "NoSuchEnv-v0", "operators": {**players("a"), "chance": "random"}, "seeds": "0-3"}
    run = evaluate(script, operators={"a": {}})

    assert run.finish() == 0

    failures = run.events("lane_failed")
    assert [(failure["name"], failure["given_up"]) for failure in failures] == [("chance", True)]
    assert "NoSuchEnv" in failures[0]["reason"]
    assert len(run.episodes("a")) == 4


def test_lanes_that_do_not_fit_the_agents_are_refused(evaluate):
    lanes = [{"name": "game", "agents": {"player_7": "chance", "*": "lazy"}}]
    run = evaluate({**CONNECT_FOUR, "lanes": lanes})

    assert run.finish() == 2
    assert "player_7" in run.lines[-1]["payload"]["error"]


def test_the_first_episodes_become_clips(evaluate):
    operators = {"chance": "random"}
    run = evaluate(
        {"env": "MiniGrid-Empty-5x5-v0", "operators": operators, "seeds": [3, 4], "max_steps": 5, "video": 1}
    )

    assert run.finish() == 0

    clips = list((run.folder / "videos").iterdir())
    assert [clip.name for clip in clips] == ["chance-3.gif"]
    with Image.open(clips[0]) as clip:  # equal pictures are one frame that is shown for longer
        durations = [frame.info["duration"] for frame in ImageSequence.Iterator(clip)]
    assert sum(durations) == 600


def test_the_seed_of_the_config_changes_operators_and_not_environments(evaluate):
    script = {"env": "CartPole-v1", "operators": {"chance": "random"}, "seeds": [0], "max_steps": 10}
    runs = [evaluate(script), evaluate(script, seed=1)]

    for run in runs:
        run.finish()

    digests = [run.events("lane_ready")[0]["first_observation"] for run in runs]
    actions = [[step["action"] for step in run.steps()] for run in runs]
    assert digests[0] == digests[1]
    assert actions[0] != actions[1]


def test_a_seed_that_is_played_again_is_another_episode_with_a_clip_of_its_own(evaluate):
    script = {"env": "MiniGrid-Empty-5x5-v0", "operators": {"chance": "random"}, "max_steps": 12, "video": 3}
    run = evaluate({**script, "seeds": [7, 7, 8, 7]})

    assert run.finish() == 0

    played = [[step["action"] for step in run.steps() if step["episode_index"] == episode] for episode in range(4)]
    assert len(set(map(tuple, played))) == 4, "random operators must not repeat themselves"
    assert len({ready["first_observation"] for ready in run.events("lane_ready") if ready["seed"] == 7}) == 1
    clips = sorted(path.name for path in (run.folder / "videos").iterdir())
    assert clips == ["chance-7-2.gif", "chance-7.gif", "chance-8.gif"]


def test_an_operator_may_be_called_like_a_host(evaluate):
    operators = {"a": "random", **players("host-a", owns_env=False)}
    run = evaluate(
        {"env": "CartPole-v1", "operators": operators, "seeds": [0], "max_steps": 2}, operators={"host-a": {}}
    )
    config = run.folder / "operators" / "host-a.json"

    assert run.finish() == 0

    assert not config.exists(), "the daemon writes the config of the operator there"
