"""`mosaic import` with a real daemon: imported runs are read, grown, deleted and restored like any other."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from lab import Lab, wait_until
from tensorboardX import SummaryWriter

from mosaic.cli.main import main
from mosaic.model.durable import read_json
from mosaic.model.errors import BadConfig
from mosaic.model.rundir import RunDir
from mosaic.wire import mosaic_pb2 as pb

MOSAIC = Path(sys.executable).parent / "mosaic"
TABLE = "|param|value|\n|-|-|\n|exp_name|ppo|\n|env_id|CartPole-v1|\n|seed|3|\n|total_timesteps|100|"


@pytest.fixture
def lab(home):
    lab = Lab(home)
    yield lab
    lab.close()


@pytest.fixture
def imported(lab, monkeypatch, capsys):
    """Imports paths; returns what --json prints."""
    monkeypatch.setenv("MOSAIC_HOME", str(lab.root.path))

    def run(*words, code=0):
        capsys.readouterr()
        assert main(["import", *map(str, words), "--json"]) == code
        return json.loads(capsys.readouterr().out)

    return run


def write(folder, steps, first=0, name="a"):
    with SummaryWriter(str(folder), filename_suffix=name) as writer:
        if not first:
            writer.add_text("hyperparameters", TABLE)
        for step in range(first, first + steps):
            writer.add_scalar("charts/episodic_return", step * 1.5, step)
            writer.add_scalar("charts/episodic_length", step + 1, step)


def test_a_folder_of_event_files_becomes_runs_with_curves(lab, imported, tmp_path):
    write(tmp_path / "runs/one", 100)
    write(tmp_path / "runs/two", 10)

    done = imported(tmp_path / "runs", "--tag", "old", "--experiment", "cartpole")

    assert [(one["name"], one["result"]) for one in done["runs"]] == [("one", "imported"), ("two", "imported")]
    run = lab.client.get_run(done["runs"][0]["run_id"])
    assert (str(run.state), run.origin, run.tags) == ("TERMINATED", f"tensorboard:{tmp_path}/runs/one", ("old",))
    assert (run.algo, run.env_id, run.seed, run.total_steps) == ("ppo", "CartPole-v1", 3, 100)
    assert (run.experiment, run.axes["seed"]) == ("cartpole", 3)
    assert run.history[0].reason == f"imported from {run.origin}"
    curve = lab.client.query_curve(run.run_id, "charts/episodic_return")
    assert (curve.step, curve.mean) == ([*range(100)], [step * 1.5 for step in range(100)])
    assert lab.client.query_curve(run.run_id, "episode/return").mean == curve.mean
    assert run.summary.episodes == 100


def test_the_progress_counts_the_events(lab, imported, tmp_path, capsys):
    with SummaryWriter(str(tmp_path / "one")) as writer:
        writer.add_scalar("x", 1, 0)

    main(["import", str(tmp_path / "one")])

    assert "    1 event\n" in capsys.readouterr().err


def test_the_times_are_those_of_the_files(lab, imported, tmp_path):
    with SummaryWriter(str(tmp_path / "one")) as writer:
        for step in range(3):
            writer.add_scalar("x", step, step, walltime=1_600_000_000.0 + step * 100)

    done = imported(tmp_path / "one")

    run = lab.client.get_run(done["runs"][0]["run_id"])
    assert lab.events(run)[0]["ts_ns"] == 1_600_000_000 * 10**9
    assert run.created_at == 1_600_000_000.0


def test_importing_again_adds_only_what_is_new(lab, imported, tmp_path):
    write(tmp_path / "one", 50)
    first = imported(tmp_path)["runs"][0]
    unchanged = imported(tmp_path)["runs"][0]
    write(tmp_path / "one", 30, first=50, name="b")

    grown = imported(tmp_path)["runs"][0]

    assert (unchanged["result"], unchanged["events"]) == ("unchanged", 0)
    assert (grown["result"], grown["run_id"], grown["events"]) == ("continued", first["run_id"], 60)
    curve = lab.client.query_curve(first["run_id"], "charts/episodic_return")
    assert curve.step == [*range(80)]
    assert len(lab.client.list_runs().runs) == 1
    assert "60 more events" in lab.client.get_run(first["run_id"]).history[-1].reason


def test_a_broken_file_is_named_and_the_others_are_imported(imported, tmp_path):
    write(tmp_path / "good", 5)
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad/events.out.tfevents.1").write_bytes(b"not an event file at all, but long enough")

    done = imported(tmp_path)

    assert {one["name"]: one["result"] for one in done["runs"]} == {"bad": "empty", "good": "imported"}
    assert "bad/events.out.tfevents.1: it is damaged at byte 0" in done["problems"][0]


def test_a_dry_run_changes_nothing(lab, imported, tmp_path):
    write(tmp_path / "one", 5)

    found = imported(tmp_path, "--dry-run")

    assert [one["format"] for one in found["runs"]] == ["tensorboard"]
    assert not lab.client.list_runs().runs


def test_an_imported_run_can_be_exported_and_deleted_but_not_resumed(lab, imported, tmp_path, capsys):
    write(tmp_path / "one", 5)
    run_id = imported(tmp_path)["runs"][0]["run_id"]
    run_dir = Path(lab.client.get_run(run_id).run_dir)

    exported = list(lab.client.stream_events(run_id))
    with pytest.raises(BadConfig, match=r"was imported from .* neither resumed nor evaluated"):
        lab.client.submit_run({"metadata": {"parent_run_id": run_id, "relation": "resume"}})
    lab.client.delete_run(run_id)

    assert [event.seq for event in exported] == [*range(1, 11)]
    assert not run_dir.exists()
    assert next((tmp_path / "one").iterdir())
    assert imported(tmp_path)["runs"][0]["run_id"] != run_id


def test_the_registry_is_rebuilt_with_imported_runs(lab, imported, tmp_path):
    write(tmp_path / "one", 5)
    run_id = imported(tmp_path)["runs"][0]["run_id"]
    before = lab.client.get_run(run_id)
    lab.stop_daemon()
    for path in lab.root.trainer.glob("registry.db*"):
        path.unlink()
    for path in RunDir(before.run_dir).control.iterdir():
        path.unlink()  # its record: only its files are left

    lab.restart_daemon()

    after = lab.client.get_run(run_id)
    assert (after.state, after.origin, after.created_at) == (before.state, before.origin, before.created_at)
    assert after.settings == before.settings
    assert imported(tmp_path)["runs"][0]["result"] == "unchanged"


def test_an_import_that_breaks_leaves_nothing(lab, imported, tmp_path):
    write(tmp_path / "one", 5)
    stream = lab.client._loop.run(_begun(lab.client, tmp_path / "one"))
    folders = lab.root.area("runs")
    assert len(os.listdir(folders)) == 1

    lab.client._loop.run(stream.close())

    wait_until(lambda: not os.listdir(folders), words="the folder of the broken import is gone")
    assert not lab.client.list_runs().runs
    assert imported(tmp_path)["runs"][0]["result"] == "imported"


async def _begun(client, path):
    from mosaic.imports.block import Block

    stream = client._inner.import_run("tensorboard", path)
    await stream.begin()
    block = Block()
    block.add(1, 1, ("x",), [1.0])
    await stream.send(block, {})
    return stream


def test_a_daemon_that_is_killed_while_a_run_grows_continues_without_gap_or_double(lab, imported, tmp_path):
    write(tmp_path / "one", 50)
    run_id = imported(tmp_path)["runs"][0]["run_id"]
    write(tmp_path / "one", 40, first=50, name="b")
    environment = {**os.environ, "MOSAIC_HOME": str(lab.root.path)}
    lab.stop_daemon()
    killed = {**environment, "MOSAIC_FAILPOINTS": "import.appended:kill"}
    subprocess.run([MOSAIC, "import", str(tmp_path)], env=killed, capture_output=True, timeout=120)

    lab.restart_daemon()
    imported(tmp_path)

    assert lab.client.query_curve(run_id, "charts/episodic_return").step == [*range(90)]


def test_a_batch_that_contradicts_itself_is_refused(lab):
    stream = lab.client._loop.run(_opened(lab.client))
    lab.client._loop.run(stream.begin())
    batch = pb.ImportBatch(metric_ts_ns=[1, 2], metric_steps=[1], metric_sets=[0])

    with pytest.raises(Exception, match="different lengths"):
        lab.client._loop.run(stream._ask(pb.ImportRunRequest(batch=batch)))


async def _opened(client):
    return client._inner.import_run("tensorboard", "/somewhere")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["/no/such/folder"], "No such file"),
        ([".", "--experiment", "a b"], "is not a valid name"),
        (["--host", "me@box", "."], "does not accept --host"),
    ],
)
def test_bad_usage_is_one_sentence(words, sentence, capsys, home, monkeypatch):
    monkeypatch.setenv("MOSAIC_HOME", str(home))

    assert main(["import", *words]) in (1, 2)

    assert sentence in capsys.readouterr().err


def test_the_manifest_points_to_the_files_in_place(lab, imported, tmp_path):
    write(tmp_path / "one", 5)
    (tmp_path / "one/ppo.cleanrl_model").write_bytes(b"weights")

    run = lab.client.get_run(imported(tmp_path)["runs"][0]["run_id"])

    manifest = read_json(RunDir(run.run_dir).analytics)
    assert manifest["artifacts"]["tensorboard"] == {"log_dir": str(tmp_path / "one")}
    assert manifest["artifacts"]["checkpoints"]["files"] == [str(tmp_path / "one/ppo.cleanrl_model")]
    assert not RunDir(run.run_dir).checkpoints.exists()
