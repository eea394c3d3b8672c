"""Recorded episodes: files that survive a kill, and the Minari datasets that are made of them."""

import json
import random

import numpy as np
import pytest
from eval_worker.demonstrations import Recording, episodes_in, read_episode
from eval_worker.minari_export import export, main
from hosting import Asked, open_host
from mosaic_sdk.config import ConfigError
from mosaic_sdk.operators.arrays import decode

MINIGRID = "MiniGrid-Empty-5x5-v0"


def record(folder, env, record, seeds=(3,), lane="a", steps=1000):
    """Play episodes of random actions; what was recorded must equal what was told: the answers by seed."""
    host = Asked(env, demonstrations=str(folder), lane=lane)
    told = {}
    for index, seed in enumerate(seeds):
        ready = host.reset(seed, record=record, episode_index=index)
        told[seed] = [ready, *host.play(ready, random.Random(seed), steps)]
    host.host.close()
    return told


def load(folder, monkeypatch, dataset_id):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(folder))
    import minari

    return minari.load_dataset(dataset_id)


def test_an_episode_is_one_file_with_what_the_agent_saw_did_and_got(tmp_path):
    told = record(tmp_path, "CartPole-v1", {"agent_0": "me"})[3]

    (path,) = episodes_in(tmp_path)
    about, columns = read_episode(path)

    assert path.relative_to(tmp_path).as_posix() == "episodes/me/agent_0/a-000000.npz"
    assert (about["operator"], about["agent"], about["seed"], about["env"]["id"]) == ("me", "agent_0", 3, "CartPole-v1")
    seen = [answer["views"]["agent_0"]["observation"] for answer in told]
    assert np.array_equal(columns["observations"], np.array(seen, dtype=np.float32))
    assert columns["rewards"].tolist() == [answer["rewards"]["agent_0"] for answer in told[1:]]
    assert columns["terminations"].tolist() == [answer["terminated"]["agent_0"] for answer in told[1:]]
    assert not columns["truncations"].any()
    assert len(columns["actions"]) == len(told) - 1
    assert path.stat().st_mode & 0o077 == 0


def test_an_array_that_the_environment_reuses_is_recorded_as_it_was(tmp_path):
    recording = Recording({"operator": "me", "agent": "a", "lane": "l", "episode_index": 0})
    state = np.zeros(2)

    for value in (1.0, 2.0):
        state[:] = value
        recording.act(state, 0)
        recording.note(0.0, False, False)
    path = recording.save(tmp_path, np.array([3.0, 3.0]))

    assert read_episode(path)[1]["observations"].tolist() == [[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]]


def test_an_agent_whose_name_is_a_path_is_recorded_in_the_folder(tmp_path):
    recording = Recording({"operator": "me", "agent": "../../../out", "lane": "l", "episode_index": 0})
    recording.act(0.0, 1)

    path = recording.save(tmp_path / "run" / "demonstrations", 0.0)

    assert path.resolve().is_relative_to(tmp_path / "run" / "demonstrations" / "episodes" / "me")


def test_pictures_are_recorded_without_loss_and_kept_small(tmp_path, monkeypatch):
    host = Asked("ALE/Pong-v5", demonstrations=str(tmp_path))
    ready = host.reset(record=["agent_0"])
    told = [ready, *host.play(ready, steps=20)]

    kept = host.host._episode._recorder._open["agent_0"]._observations
    host.ask("end")

    (path,) = episodes_in(tmp_path)
    seen = [decode(answer["views"]["agent_0"]["observation"]) for answer in told]
    assert np.array_equal(read_episode(path)[1]["observations"], seen)
    assert sum(len(one._data) for one in kept) < sum(one.nbytes for one in seen) / 10
    (about,) = export(tmp_path)
    (episode,) = load(tmp_path, monkeypatch, about["id"]).iterate_episodes()
    assert np.array_equal(episode.observations, seen)


def test_only_recorded_agents_have_files(tmp_path):
    record(tmp_path, "pettingzoo/tictactoe_v3", {"player_2": "me"})
    record(tmp_path, "CartPole-v1", {})

    assert [path.parent.name for path in episodes_in(tmp_path)] == ["player_2"]


def test_an_abandoned_episode_is_recorded_as_truncated(tmp_path):
    record(tmp_path, MINIGRID, {"agent_0": "me"}, seeds=(3, 4), steps=5)  # a reset, then the end of the host

    ends = [read_episode(path)[1] for path in episodes_in(tmp_path)]

    assert [columns["truncations"].tolist() for columns in ends] == [[False] * 4 + [True]] * 2
    assert not any(columns["terminations"].any() for columns in ends)


def test_end_writes_the_episode_at_once(tmp_path):
    host = Asked(MINIGRID, demonstrations=str(tmp_path))
    host.reset(record=["agent_0"])
    host.step(agent_0=1)

    assert host.ask("end") == {"type": "ended"}
    assert len(episodes_in(tmp_path)) == 1
    assert "Send reset first" in host.step(agent_0=1)["message"]


def test_a_repeated_episode_replaces_its_file(tmp_path):
    record(tmp_path, "CartPole-v1", {"agent_0": "me"}, seeds=(3,))
    record(tmp_path, "CartPole-v1", {"agent_0": "me"}, seeds=(4,))

    assert [read_episode(path)[0]["seed"] for path in episodes_in(tmp_path)] == [4]


def test_a_killed_host_keeps_the_episodes_that_were_over(tmp_path):
    process = open_host(tmp_path, "CartPole-v1", demonstrations=str(tmp_path))

    def ask(**command):
        process.stdin.write(json.dumps(command) + "\n")
        process.stdin.flush()
        return json.loads(process.stdout.readline())

    ask(cmd="reset", seed=1, options={"record": {"agent_0": "me"}})
    while not ask(cmd="step", actions={"agent_0": 0})["done"]:
        pass
    ask(cmd="reset", seed=2, options={"record": {"agent_0": "me"}})
    ask(cmd="step", actions={"agent_0": 0})
    process.kill()
    process.communicate()

    assert [read_episode(path)[0]["seed"] for path in episodes_in(tmp_path)] == [1]
    assert [dataset["episodes"] for dataset in export(tmp_path)] == [1]


@pytest.mark.parametrize("operator", ["../../me", "..", "/me", ".hidden"])
def test_names_cannot_leave_the_folder(tmp_path, operator):
    record(tmp_path / "demonstrations", "CartPole-v1", {"agent_0": operator}, lane="../x")

    (path,) = episodes_in(tmp_path / "demonstrations")
    assert path.resolve().parents[2] == tmp_path / "demonstrations" / "episodes"
    assert list(tmp_path.iterdir()) == [tmp_path / "demonstrations"]


def test_a_minari_dataset_holds_the_recorded_observations_actions_and_rewards(tmp_path, monkeypatch):
    told = record(tmp_path, MINIGRID, {"agent_0": "me"}, seeds=(3, 4), steps=30)

    (about,) = export(tmp_path)
    dataset = load(tmp_path, monkeypatch, about["id"])

    assert about["id"] == "minigrid-empty-5x5-v0/me-v0"
    assert (dataset.total_episodes, dataset.total_steps) == (2, sum(len(answers) - 1 for answers in told.values()))
    assert dataset.env_spec.id == MINIGRID
    for episode, answers in zip(dataset.iterate_episodes(), told.values(), strict=True):
        seen = [answer["views"]["agent_0"]["observation"] for answer in answers]
        assert np.array_equal(episode.observations["image"], [one["image"] for one in seen])
        assert episode.observations["image"].dtype == np.uint8
        assert episode.observations["direction"].tolist() == [one["direction"] for one in seen]
        assert episode.observations["mission"] == [one["mission"] for one in seen]
        assert episode.rewards.tolist() == [answer["rewards"]["agent_0"] for answer in answers[1:]]
        assert len(episode.actions) == len(answers) - 1
        assert bool(episode.terminations[-1] or episode.truncations[-1])
    assert dataset.action_space.n == 7


def test_each_agent_of_an_operator_has_a_dataset_with_its_own_steps(tmp_path, monkeypatch):
    told = record(tmp_path, "pettingzoo/tictactoe_v3", {"player_1": "me", "player_2": "me"})[3]

    made = {about["agent"]: about for about in export(tmp_path)}

    assert made["player_1"]["id"] == "pettingzoo-tictactoe_v3/me-player_1-v0"
    assert sum(about["steps"] for about in made.values()) == len(told) - 1
    for agent, about in made.items():
        (episode,) = load(tmp_path, monkeypatch, about["id"]).iterate_episodes()
        assert sum(episode.rewards) == sum(answer["rewards"][agent] for answer in told[1:])
        assert episode.terminations.tolist() == [False] * (about["steps"] - 1) + [True]
        assert episode.observations.shape == (about["steps"] + 1, 3, 3, 2)


@pytest.mark.parametrize("env", ["Pendulum-v1", "Blackjack-v1", "MosaicMultiGrid-C-1v1-IndAgObs-v1"])
def test_other_spaces_are_exported_too(tmp_path, monkeypatch, env):
    record(tmp_path, env, ["agent_0"], steps=4)

    (about,) = export(tmp_path)

    (episode,) = load(tmp_path, monkeypatch, about["id"]).iterate_episodes()
    assert len(episode.rewards) == about["steps"]


def test_an_export_replaces_an_older_one_and_lists_its_datasets(tmp_path, monkeypatch, capsys):
    folder = tmp_path / "demonstrations"
    record(folder, "CartPole-v1", {"agent_0": "me"}, seeds=(1,))
    assert main([str(tmp_path)]) == 0
    record(folder, "CartPole-v1", {"agent_0": "me"}, seeds=(1, 2))

    assert main([str(tmp_path)]) == 0

    listed = json.loads((folder / "datasets.json").read_text())["datasets"]
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["datasets"] == listed
    assert load(folder, monkeypatch, listed[0]["id"]).total_episodes == 2
    assert not list(folder.glob(".export-*"))


def test_a_damaged_file_is_skipped_and_named(tmp_path, capsys):
    record(tmp_path, "CartPole-v1", {"agent_0": "me"}, seeds=(1, 2))
    damaged = episodes_in(tmp_path)[0]
    damaged.write_bytes(damaged.read_bytes()[:100])

    assert [about["episodes"] for about in export(tmp_path)] == [1]
    assert str(damaged) in capsys.readouterr().err


def test_without_episodes_there_is_nothing_to_export(tmp_path):
    with pytest.raises(ConfigError, match="There are no recorded episodes"):
        export(tmp_path)
    assert main([str(tmp_path)]) == 2


def test_an_evaluation_exports_every_recorded_episode_also_the_last_one_that_max_steps_cut(evaluate, monkeypatch):
    script = {
        "env": MINIGRID,
        "operators": {"chance": "random"},
        "seeds": [0, 1, 2],
        "max_steps": 4,
        "record": ["chance"],
    }
    run = evaluate({**script, "video": 0})

    assert run.finish() == 0

    folder = run.folder / "demonstrations"
    (about,) = json.loads((folder / "datasets.json").read_text())["datasets"]
    assert (about["episodes"], about["steps"]) == (3, 12)
    taken = [step["action"] for step in run.steps()]
    recorded = [action for episode in load(folder, monkeypatch, about["id"]) for action in episode.actions.tolist()]
    assert recorded == taken


def test_an_episode_that_is_being_played_when_a_person_leaves_is_recorded(evaluate):
    script = {"env": MINIGRID, "operators": {"chance": "random"}, "seeds": [0], "record": ["chance"], "video": 0}
    run = evaluate(script, mode="manual")
    run.command("start")
    run.command("step", count=3)
    run.send("finish")

    assert run.finish() == 0

    (path,) = episodes_in(run.folder / "demonstrations")
    assert read_episode(path)[1]["truncations"].tolist() == [False, False, True]
