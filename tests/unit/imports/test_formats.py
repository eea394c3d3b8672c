"""Files of W&B, Ray, Stable-Baselines3, Dreamer and MLflow; those of W&B and SB3 were made by these libraries."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from mosaic.imports.scan import Scan, open_source

FIXTURES = Path(__file__).parents[2] / "fixtures/imports"
HEADER = '#{"t_start": 1700000000.0, "env_id": "CartPole-v1"}\nr,l,t\n'


def read(path, cursor=None):
    scan = Scan()
    scan.add(path)
    source = open_source(scan.found[0], cursor or {})
    return source, list(source.blocks())


def rows(blocks):
    """(step, {name: value}) of every metric event."""
    found = []
    for block in blocks:
        values = iter(block.values)
        for step, number in zip(block.steps, block.sets, strict=True):
            found.append((step, {name: next(values) for name in block.name_sets[number]}))
    return found


def episodes(blocks):
    return [episode for block in blocks for episode in block.episodes]


# ---- W&B


def test_an_offline_run_of_wandb_has_its_history_config_name_and_tags():
    source, blocks = read(FIXTURES / "wandb")

    assert rows(blocks) == [(i, {"loss": 1 / (i + 1), "nested/x": float(i)}) for i in range(12)]
    assert source.about.settings == {"lr": 3e-4, "env_id": "CartPole-v1", "seed": 3, "net.layers": [64, 64]}
    assert (source.about.name, source.about.tags, source.about.state) == ("try-1", ["old"], "TERMINATED")
    assert source.about.began > 1.7e9
    assert not source.problems


def test_a_run_of_wandb_that_grows_is_continued(tmp_path):
    whole = (FIXTURES / "wandb/run-oluiop44.wandb").read_bytes()
    file = tmp_path / "run-oluiop44.wandb"
    file.write_bytes(whole[: len(whole) // 2])
    before, first = read(tmp_path)
    file.write_bytes(whole)

    _, second = read(tmp_path, before.cursor())

    assert [step for step, _ in rows(first + second)] == [*range(12)]
    assert "it ends inside a record" in before.problems[0]
    assert 0 < len(rows(first)) < 12


@pytest.mark.parametrize(("at", "sentence"), [(0, "it is not a log of W&B"), (60, "it is damaged at byte")])
def test_a_damaged_log_of_wandb_is_named(tmp_path, at, sentence):
    data = bytearray((FIXTURES / "wandb/run-oluiop44.wandb").read_bytes())
    data[at] ^= 0xFF
    (tmp_path / "run-x.wandb").write_bytes(data)

    source, _ = read(tmp_path)

    assert sentence in source.problems[0]


# ---- Stable-Baselines3


def test_monitor_files_of_several_envs_are_merged_by_time(tmp_path):
    (tmp_path / "0.monitor.csv").write_text(f"{HEADER}20.0,20,0.1\n30.0,30,0.5\n")
    (tmp_path / "1.monitor.csv").write_text(f"{HEADER}25.0,25,0.3\n")

    source, blocks = read(tmp_path)

    assert [(one.total_reward, one.env_index, one.global_step) for one in episodes(blocks)] == [
        (20.0, 0, 20),
        (25.0, 1, 45),
        (30.0, 0, 75),
    ]
    assert source.about.settings == {"env_id": "CartPole-v1"}
    assert (source.about.began, round(source.about.ended, 1)) == (1_700_000_000.0, 1_700_000_000.5)


def test_only_new_rows_of_a_monitor_file_are_read_again(tmp_path):
    file = tmp_path / "monitor.csv"
    file.write_text(f"{HEADER}20.0,20,0.1\n5.0,")  # the last row is being written
    before, first = read(tmp_path)
    file.write_text(f"{HEADER}20.0,20,0.1\n5.0,7,0.4\n")

    _, second = read(tmp_path, before.cursor())

    assert [(one.steps, one.global_step) for one in episodes(first)] == [(20, 20)]
    assert [(one.steps, one.global_step) for one in episodes(second)] == [(7, 27)]


def test_evaluations_are_episodes_of_the_agent_eval(tmp_path):
    shutil.copy(FIXTURES / "evaluations.npz", tmp_path)

    before, blocks = read(tmp_path)
    _, again = read(tmp_path, before.cursor())

    found = episodes(blocks)
    assert [one.global_step for one in found] == [500] * 3 + [1000] * 3 + [1500] * 3
    assert {one.agent_id for one in found} == {"eval"}
    assert not episodes(again)


def test_pickled_arrays_are_refused(tmp_path):
    np.savez(tmp_path / "evaluations.npz", timesteps=np.array([{}], dtype=object), results=np.zeros((1, 1)))

    source, blocks = read(tmp_path)

    assert not episodes(blocks)
    assert "evaluations.npz" in source.problems[0]


def test_the_csv_of_sb3s_logger_is_drawn_over_its_timesteps(tmp_path):
    shutil.copy(FIXTURES / "progress.csv", tmp_path)

    before, blocks = read(tmp_path)
    _, again = read(tmp_path, before.cursor())

    assert before.format == "sb3"
    assert [step for step, _ in rows(blocks)] == [128, 256, 384, 512, 640]
    assert not rows(again)


# ---- Ray


def results(folder, iterations):
    lines = [
        {
            "training_iteration": i,
            "num_env_steps_sampled_lifetime": i * 200,
            "timestamp": 1_700_000_000 + i,
            "env_runners": {"episode_return_mean": i * 1.5},
            "config": {"lr": 1.0},
            "done": False,
        }
        for i in iterations
    ]
    with (folder / "result.json").open("a") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)


def test_a_trial_of_ray_is_drawn_over_its_env_steps(tmp_path):
    results(tmp_path, (1, 2))
    (tmp_path / "params.json").write_text(json.dumps({"env": "CartPole-v1", "lr": 0.01, "seed": 5, "model": {"a": 1}}))
    (tmp_path / "error.txt").write_text("it failed")
    before, first = read(tmp_path)
    results(tmp_path, (3,))

    _, second = read(tmp_path, before.cursor())

    assert [(step, values["env_runners/episode_return_mean"]) for step, values in rows(first)] == [
        (200, 1.5),
        (400, 3.0),
    ]
    assert [step for step, _ in rows(second)] == [600]
    assert "config/lr" not in rows(first)[0][1]
    assert before.about.settings == {"env": "CartPole-v1", "lr": 0.01, "seed": 5, "model.a": 1, "env_id": "CartPole-v1"}
    assert before.about.state == "FAULTED"


@pytest.mark.parametrize("file", ["result.json", "progress.csv"])
def test_a_real_trial_of_rllib_is_read_from_either_file(tmp_path, file):
    trial = FIXTURES / "ray/PPO_CartPole-v1_1bb26_00000"
    folder = tmp_path / trial.name
    folder.mkdir()
    for name in (file, "params.json"):
        shutil.copy(trial / name, folder)

    source, blocks = read(folder)

    found = rows(blocks)
    assert (source.format, source.problems) == ("ray", [])
    assert [step for step, _ in found] == [256, 512, 768]
    assert found[-1][1]["env_runners/episode_return_mean"] == pytest.approx(25.0909, abs=1e-4)
    assert found[-1][1]["learners/default_policy/policy_loss"] == pytest.approx(0.5696, abs=1e-4)
    facts = ("algo", "env_id", "seed", "lr")
    assert [source.about.settings[name] for name in facts] == ["ppo", "CartPole-v1", 1, 5e-5]


def test_progress_csv_is_read_where_there_is_no_result_json(tmp_path):
    (tmp_path / "progress.csv").write_text("training_iteration,timesteps_total,reward,date\n1,100,5.5,x\n2,200,6.5,x\n")

    source, blocks = read(tmp_path)

    assert source.format == "ray"
    assert [(step, values["reward"]) for step, values in rows(blocks)] == [(100, 5.5), (200, 6.5)]


# ---- Dreamer


def test_scores_are_episodes_and_metrics_are_curves(tmp_path):
    (tmp_path / "metrics.jsonl").write_text('{"step": 10, "train/loss": 0.5, "episode/score": 7.0}\nnot json\n')
    (tmp_path / "scores.jsonl").write_text('{"step": 10, "episode/score": 7.0}\n')
    (tmp_path / "config.yaml").write_text("task: atari_pong\nseed: 1\nagent:\n  lr: 0.0001\n")

    source, blocks = read(tmp_path)

    assert rows(blocks) == [(10, {"train/loss": 0.5, "episode/score": 7.0})]
    assert [(one.total_reward, one.global_step) for one in episodes(blocks)] == [(7.0, 10)]
    assert source.about.settings["agent.lr"] == 0.0001
    assert (source.about.settings["algo"], source.about.settings["env_id"]) == ("dreamerv3", "atari_pong")
    assert "not an object with a step" in source.problems[0]


def test_the_files_of_dreamers_own_logger_have_scores_lengths_and_numbers_as_settings():
    source, blocks = read(FIXTURES / "dreamer")

    assert [(one.total_reward, one.steps, one.global_step) for one in episodes(blocks)] == [
        (float(n), 20, 20 * n + 20) for n in range(4)
    ]
    assert [step for step, _ in rows(blocks)] == [20, 40, 60, 80]
    assert rows(blocks)[0][1]["train/opt/grad_norm"] == pytest.approx(0.84743, abs=1e-5)
    assert source.about.settings["agent.opt.lr"] == 4e-5
    assert (source.about.settings["env_id"], source.problems) == ("dummy_disc", [])


def test_the_metrics_of_our_dreamer_worker_are_read():
    source, blocks = read(FIXTURES / "dreamer_worker")

    last, values = rows(blocks)[-1]
    assert (source.format, source.problems, last) == ("dreamer", [], 400)
    assert (values["episode/score"], values["eval_episode/length"]) == (0.25, 19.0)
    played = episodes(blocks)
    assert [len([one for one in played if one.agent_id == who]) for who in ("", "eval")] == [20, 20]
    assert (played[9].total_reward, played[9].steps, played[9].env_index) == (0.0, 20, 0)
    assert sum(one.total_reward for one in played if not one.agent_id) / 20 == 0.25  # no mean is counted as an episode
    assert (source.about.began, source.about.notes) == (1794988292.39, [])


def test_settings_with_aliases_are_not_expanded(tmp_path):
    (tmp_path / "metrics.jsonl").write_text('{"step": 1, "x": 1.0}\n')
    (tmp_path / "config.yaml").write_text("a: &a [x, x]\nb: [*a, *a]\n")

    source, _ = read(tmp_path)

    assert source.about.settings == {}


# ---- MLflow


def mlflow_run(root, status=3):
    run = root / "1/abc"
    (run / "metrics/train").mkdir(parents=True)
    (run / "params").mkdir()
    meta = f"run_id: abc\nrun_name: ml-1\nstart_time: 1700000000000\nend_time: 1700000009000\nstatus: {status}\n"
    (run / "meta.yaml").write_text(meta)
    (run / "metrics/loss").write_text("1700000001000 0.5 10\n1700000002000 0.25 20\n")
    (run / "metrics/train/return").write_text("1700000001000 3.0 10\n")
    (run / "params/lr").write_text("0.001")
    (run / "params/env").write_text("CartPole-v1")
    return run


def test_a_run_of_mlflow_has_its_metrics_params_and_status(tmp_path):
    run = mlflow_run(tmp_path, status=4)
    before, first = read(tmp_path)
    with (run / "metrics/loss").open("a") as file:
        file.write("1700000003000 0.125 30\n")

    _, second = read(tmp_path, before.cursor())

    assert rows(first) == [(10, {"loss": 0.5, "train/return": 3.0}), (20, {"loss": 0.25})]
    assert rows(second) == [(30, {"loss": 0.125})]
    assert before.about.settings == {"env": "CartPole-v1", "lr": 0.001, "env_id": "CartPole-v1"}
    assert (before.about.name, before.about.state) == ("ml-1", "FAULTED")
    assert (before.about.began, before.about.ended) == (1_700_000_000.0, 1_700_000_009.0)


# ---- truncated

LONG = 60  # rows: more bytes than those that identify a file


def monitor(folder):
    (folder / "monitor.csv").write_text(HEADER + "".join(f"20.0,20,{number}.1\n" for number in range(LONG)))
    return folder / "monitor.csv"


def progress_of_sb3(folder):
    return Path(shutil.copy(FIXTURES / "progress.csv", folder))


def progress_of_ray(folder):
    rows = "".join(f"{number},{number * 100},5.5\n" for number in range(1, LONG))
    (folder / "progress.csv").write_text(f"training_iteration,timesteps_total,reward\n{rows}")
    return folder / "progress.csv"


def results_of_ray(folder):
    results(folder, [1, 2, 3])
    return folder / "result.json"


def loss_of_mlflow(folder):
    file = mlflow_run(folder) / "metrics/loss"
    file.write_text("".join(f"1700000001000 0.5 {step}\n" for step in range(LONG)))
    return file


@pytest.mark.parametrize("make", [monitor, progress_of_sb3, progress_of_ray, results_of_ray, loss_of_mlflow])
def test_a_file_that_lost_its_end_is_named_and_continued_once_it_is_whole(tmp_path, make):
    file = make(tmp_path)
    whole = file.read_bytes()
    before, first = read(tmp_path)
    file.write_bytes(whole[: whole.rstrip().rfind(b"\n") + 1])  # without its last line

    cut, second = read(tmp_path, before.cursor())
    file.write_bytes(whole)
    _, third = read(tmp_path, cut.cursor())

    assert rows(first) or episodes(first)
    assert [*rows(second), *episodes(second), *rows(third), *episodes(third)] == []
    assert [problem.partition(": it was ")[0] for problem in cut.problems] == [str(file)]
    assert "replaced or truncated" in cut.problems[0]


# ---- finding


def test_a_link_out_of_the_folder_is_named_and_not_followed(tmp_path):
    mlflow_run(tmp_path / "elsewhere")
    (tmp_path / "here").mkdir()
    (tmp_path / "here/link").symlink_to(tmp_path / "elsewhere")
    scan = Scan()

    scan.add(tmp_path / "here")

    assert not scan.found
    assert "link out of the folder" in scan.problems[0]


def test_a_folder_without_runs_is_named(tmp_path):
    scan = Scan()

    scan.add(tmp_path)

    assert scan.problems == [f"{tmp_path}: no run of a known format was found"]
