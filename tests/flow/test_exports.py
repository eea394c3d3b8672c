"""`mosaic export` and `mosaic model export` with real runs, and frames of the Python client."""

import asyncio
import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet
import pytest

from mosaic.client import AsyncTrainerClient
from mosaic.model.errors import MosaicError

REPO = Path(__file__).parents[2]
MOSAIC = Path(sys.executable).parent / "mosaic"
CLEANRL = REPO / ".venv-cleanrl"


@pytest.fixture(scope="module")
def runs(shared_lab):
    """Two members of an experiment, the first with checkpoints and an evaluation."""
    found = []
    for seed in (1, 2):
        config = {"steps": 100, "seed": seed, "episode_length": 20, "checkpoint_every": 50}
        worker = {"module": "toy_worker.cli", "config": config}
        membership = {"name": "seeds", "axes": {"rate": 0.5 * seed, "seed": seed}}
        metadata = {"worker": worker, "run_name": f"run-{seed}", "experiment": membership}
        found.append(shared_lab.client.submit_run({"metadata": metadata}))
    return [shared_lab.wait_until_over(run) for run in found]


@pytest.fixture(scope="module")
def evaluation(shared_lab, runs):
    asked = {"parent_run_id": runs[0].run_id, "relation": "eval", "evaluation": {"episodes": 3}}
    run = shared_lab.wait_until_over(shared_lab.client.submit_run({"metadata": asked}))
    assert str(run.state) == "TERMINATED"
    return run


@pytest.fixture
def mosaic(shared_lab, tmp_path):
    def run(*words, code=0):
        env = {**os.environ, "MOSAIC_HOME": str(shared_lab.root.path)}
        done = subprocess.run([MOSAIC, *map(str, words)], capture_output=True, text=True, env=env, cwd=tmp_path)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout if code == 0 else done.stderr

    return run


def test_a_parquet_file_has_every_event_of_every_run(mosaic, shared_lab, runs, tmp_path):
    mosaic("export", *(run.run_id for run in runs), "--format", "parquet", "-o", "all.parquet")

    rows = pyarrow.parquet.read_table(tmp_path / "all.parquet").to_pylist()
    for run in runs:
        own = [row for row in rows if row["run_id"] == run.run_id]
        events = shared_lab.events(run)
        assert {row["seq"] for row in own} == {event["seq"] for event in events}
        rewards = [(row["step_index"], row["reward"]) for row in own if row["type"] == "step"]
        assert rewards == [(event["step_index"], event["reward"]) for event in events if event["type"] == "step"]
        values = [(row["step"], row["name"], row["value"]) for row in own if row["type"] == "metric"]
        metrics = [event for event in events if event["type"] == "metric"]
        assert values == [(event["step"], *pair) for event in metrics for pair in event["values"].items()]
        assert {(row["experiment"], row["seed"], json.loads(row["axes"])["rate"]) for row in own} == {
            ("seeds", run.seed, run.axes["rate"])
        }


def test_an_experiment_is_exported_with_all_its_runs(mosaic, runs, tmp_path):
    said = json.loads(mosaic("export", "--experiment", "seeds", "--to", "tensorboard", "boards", "--json"))

    assert [run["run_id"] for run in said["runs"]] == [run.run_id for run in runs]
    assert len(list((tmp_path / "boards").glob("run-?-*/events.out.tfevents.*"))) == 2


def test_an_existing_target_is_refused_and_nothing_changes(mosaic, runs, tmp_path):
    mosaic("export", runs[0].run_id, "--to", "wandb", "out")
    before = sorted(os.listdir(tmp_path / "out"))

    said = mosaic("export", runs[1].run_id, "--to", "wandb", "out", code=1)

    assert "exists already" in said
    assert sorted(os.listdir(tmp_path / "out")) == before
    mosaic("export", runs[1].run_id, "--to", "wandb", "out", "--force")
    assert sorted(os.listdir(tmp_path / "out")) != before
    assert sorted(os.listdir(tmp_path)) == ["out"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--experiment", "seed"], "Did you mean 'seeds'"),
        (["last", "--to", "excel", "x"], "choose from tensorboard, wandb"),
        (["last", "--format", "parquet"], "needs -o FILE"),
        (["last", "--to", "wandb", "x", "--type", "step"], "--type cannot be used with --to"),
        (["last", "--force"], "--force is for --to and Parquet only"),
        ([], "name the runs to export"),
    ],
)
def test_options_that_do_not_fit_are_explained(mosaic, runs, words, said, tmp_path):
    code = 1 if "--experiment" in words else 2

    assert said in mosaic("export", *words, code=code)
    assert os.listdir(tmp_path) == []


def test_json_and_csv_of_several_runs_name_the_run(mosaic, runs, tmp_path):
    names = [run.run_id for run in runs]

    lines = [json.loads(line) for line in mosaic("export", *names).splitlines()]
    rows = list(csv.DictReader(mosaic("export", *names, "--format", "csv", "--type", "episode").splitlines()))

    assert list(dict.fromkeys(line["run_id"] for line in lines)) == names
    assert list(dict.fromkeys(row["run_id"] for row in rows)) == names
    assert "run_id" not in json.loads(mosaic("export", names[0]).splitlines()[5])


def test_a_frame_has_a_row_for_each_point(shared_lab, runs):
    frame = shared_lab.client.frame(runs)

    columns = ["run_id", "name", "algo", "env_id", "seed", "experiment", "rate", "metric", "step", "value", "time"]
    assert list(frame.columns) == columns
    for run in runs:
        for metric in ("episode/return", "toy/loss"):
            curve = shared_lab.client.query_curve(run.run_id, metric)
            own = frame[(frame.run_id == run.run_id) & (frame.metric == metric)]
            assert (own.step.tolist(), own.value.tolist()) == (curve.step, curve.mean)
            assert set(own.rate) == {run.axes["rate"]}
            assert set(own.seed) == {run.seed}
            assert own.time.min().timestamp() == pytest.approx(curve.started_at + curve.seconds[0])


def test_a_frame_of_chosen_metrics_has_only_these(shared_lab, runs):
    run = shared_lab.client.attach("run-1")

    assert set(run.frame("toy/loss", points=5).metric) == {"toy/loss"}
    assert len(run.frame(["toy/loss"], points=5)) == 5
    assert shared_lab.client.frame([]).empty
    with pytest.raises(MosaicError, match=r"metric 'toy/los'. Did you mean 'toy/loss'"):
        run.frame("toy/los")


def test_the_asyncio_client_gives_the_same_frame(shared_lab, runs):
    async def ask():
        async with await AsyncTrainerClient.connect(shared_lab.root) as client:
            return await (await client.attach(runs[0].run_id)).frame()

    assert asyncio.run(ask()).equals(shared_lab.client.frame(runs[0].run_id))


def test_without_pandas_the_error_names_the_command_that_installs_it(shared_lab, runs, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)

    with pytest.raises(MosaicError, match=r"pip install 'mosaic-rl\[pandas\]'"):
        shared_lab.client.frame(runs[0])


def test_a_model_is_exported_with_its_card(mosaic, shared_lab, runs, evaluation, tmp_path):
    said = json.loads(mosaic("model", "export", "run-1", "model", "--json"))

    card = (tmp_path / "model/README.md").read_text()
    config = json.loads((tmp_path / "model/config.json").read_text())
    saved = sorted(Path(runs[0].run_dir, "checkpoints").glob("checkpoint-*[0-9].json"))[-1]
    assert (tmp_path / "model" / saved.name).read_bytes() == saved.read_bytes()
    assert config["settings"]["steps"] == 100
    assert (said["converted"], said["evaluations"][0]["run_id"]) == (False, evaluation.run_id)
    returns = [event["total_reward"] for event in shared_lab.events(evaluation, "episode")]
    assert said["evaluations"][0]["mean"] == pytest.approx(sum(returns) / 3)
    assert f"value: {sum(returns) / 3:.2f} +/- " in card
    assert "not converted" in card
    assert "No video was recorded" in card


def test_a_model_without_evaluations_shows_its_training_returns_as_such(mosaic, runs, tmp_path):
    said = json.loads(mosaic("model", "export", "run-2", "model", "--json"))

    assert [score["kind"] for score in said["evaluations"]] == ["training episodes"]
    assert "has not been evaluated" in (tmp_path / "model/README.md").read_text()


def test_a_video_becomes_the_replay_and_a_link_does_not(mosaic, shared_lab, runs, tmp_path):
    videos = Path(runs[1].run_dir, "videos")
    secret = tmp_path / "secret"
    secret.write_text("private")
    (videos / "a.mp4").symlink_to(secret)
    mosaic("model", "export", "run-2", "without")
    (videos / "b.mp4").write_bytes(b"film")

    mosaic("model", "export", "run-2", "with")

    assert not (tmp_path / "without/replay.mp4").exists()
    assert (tmp_path / "with/replay.mp4").read_bytes() == b"film"


def test_a_checkpoint_that_links_out_of_the_run_is_not_exported(mosaic, shared_lab, tmp_path):
    run = shared_lab.wait_until_over(shared_lab.submit(name="linking", steps=5))
    secret = tmp_path / "secret"
    secret.write_text("private")
    Path(run.run_dir, "checkpoints/checkpoint-000000000005.json").symlink_to(secret)

    said = mosaic("model", "export", "linking", "model", code=1)

    assert "leads out of the run's folder" in said
    assert os.listdir(tmp_path) == ["secret"]


def test_a_run_without_a_checkpoint_has_no_model(mosaic, shared_lab, tmp_path):
    shared_lab.wait_until_over(shared_lab.submit(name="empty", steps=5))

    assert "has no complete checkpoint" in mosaic("model", "export", "empty", "model", code=1)
    assert os.listdir(tmp_path) == []


def test_an_unknown_checkpoint_is_suggested(mosaic, runs, tmp_path):
    said = mosaic("model", "export", "run-1", "model", "--checkpoint", "lats", code=1)

    assert "Did you mean 'last'" in said
    assert os.listdir(tmp_path) == []


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(not (CLEANRL / ".ready").exists(), reason="make .venv-cleanrl/.ready")
def test_weights_of_cleanrl_become_safetensors(mosaic, shared_lab, tmp_path):
    (shared_lab.root.path / "envs").mkdir(exist_ok=True)
    (shared_lab.root.path / "envs/cleanrl").symlink_to(CLEANRL)
    settings = {"algo": "ppo", "env_id": "CartPole-v1", "total_timesteps": 256, "num_envs": 2, "num_steps": 64}
    run = shared_lab.client.run("cleanrl", run_options={"name": "policy"}, **settings)
    assert str(run.wait(600).state) == "TERMINATED"

    said = json.loads(mosaic("model", "export", "policy", "model", "--json"))

    data = (tmp_path / "model/model.safetensors").read_bytes()
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    assert said["converted"] is True
    assert header["agent.actor.0.weight"]["shape"] == [64, 4]
    assert "library_name: cleanrl" in (tmp_path / "model/README.md").read_text()
