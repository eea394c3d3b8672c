"""How episodes ended, in each of the formats in which environments report it."""

import json
import os

import gymnasium
import numpy as np
import pytest
from cleanrl_worker.ends import End, Ends, read_ends
from cleanrl_worker.telemetry import Scalars
from mosaic_sdk.emit import Emitter


@pytest.fixture
def recorded(tmp_path):
    """Scalars over an empty spool, and the episodes in it."""
    fd = os.open(tmp_path / "spool", os.O_RDWR | os.O_CREAT | os.O_APPEND)
    scalars = Scalars(Emitter(fd, run_id="01A"))
    yield (
        scalars,
        lambda: [
            line
            for line in map(json.loads, (tmp_path / "spool").read_text().splitlines())
            if line["event_type"] == "episode"
        ],
    )
    os.close(fd)


def make(max_steps):
    def thunk():
        return gymnasium.wrappers.RecordEpisodeStatistics(gymnasium.make("CartPole-v1", max_episode_steps=max_steps))

    return thunk


def report(scalars, end, step):
    scalars.record("charts/episodic_return", end.total_reward, step)
    scalars.record("charts/episodic_length", end.length, step)


def test_gymnasiums_environments_distinguish_a_fall_from_a_time_limit():
    envs = gymnasium.vector.SyncVectorEnv([make(5), make(500)])
    envs.reset(seed=1)
    found = []
    for _ in range(30):
        found += read_ends(envs.step(np.array([1, 1])))

    assert End(5.0, 5, terminated=False, truncated=True) in found
    assert any(end.terminated and not end.truncated and end.length > 5 for end in found)
    assert not any(end.terminated == end.truncated for end in found)


def test_gym_023s_single_flag_and_the_shims_two_flags_are_read():
    infos = [
        {},
        {"episode": {"r": 3.0, "l": 3}, "TimeLimit.truncated": True},
        {"episode": {"r": np.float32(4.0), "l": np.int32(4)}},
        {"episode": {"r": 5.0, "l": 5}, "terminated": True, "truncated": True, "TimeLimit.truncated": False},
    ]

    found = list(read_ends((None, None, np.ones(4, bool), infos)))

    assert found == [End(3.0, 3, False, True), End(4.0, 4, True, False), End(5.0, 5, True, True)]


def test_a_life_lost_in_envpool_does_not_end_the_episode():
    infos = {
        "r": np.array([7.0, 8.0], np.float32),
        "l": np.array([70, 80]),
        "lives": np.array([2, 0]),
        "terminated": np.array([0, 1]),
        "TimeLimit.truncated": np.array([False, False]),
    }

    assert list(read_ends((None, None, np.array([True, True]), infos))) == [End(8.0, 80, True, False)]


@pytest.mark.parametrize("outcome", [None, (1, 2), (None, None, [True], {"x": 1})])
def test_a_result_in_another_format_has_no_ends(outcome):
    assert list(read_ends(outcome)) == []


class Two:
    """Two environments whose episodes end in the same step."""

    num_envs = 2

    def step(self, actions):
        episodes = [{"episode": {"r": np.array([float(9 + n)]), "l": np.array([9])}} for n in range(2)]
        return None, None, np.array([True, False]), np.array([False, True]), {"final_info": np.array(episodes)}


def test_episodes_that_a_script_does_not_log_are_emitted_and_none_twice(recorded):
    scalars, episodes = recorded
    envs = Two()
    scalars.ends.watch(envs)

    envs.step(None)
    report(scalars, End(9.0, 9), 100)
    envs.step(None)
    report(scalars, End(9.0, 9), 200)
    report(scalars, End(10.0, 9), 200)

    emitted = [
        (line["total_reward"], line["terminated"], line["truncated"], line["global_step"]) for line in episodes()
    ]
    assert emitted == [
        (9.0, True, False, 100),
        (10.0, False, True, 100),
        (9.0, True, False, 200),
        (10.0, False, True, 200),
    ]
    assert [line["episode_index"] for line in episodes()] == [0, 1, 2, 3]


def test_an_episode_of_unwatched_environments_is_emitted_without_its_end(recorded):
    scalars, episodes = recorded

    report(scalars, End(3.0, 3), 50)

    assert "terminated" not in episodes()[0]
    assert (episodes()[0]["total_reward"], episodes()[0]["global_step"]) == (3.0, 50)


def test_a_script_that_counts_steps_from_0_has_completed_one_more():
    assert (Ends(counts_steps=True).env_steps(99), Ends().env_steps(100)) == (100, 100)
