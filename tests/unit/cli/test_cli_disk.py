"""Disk usage, old checkpoints and unfinished environments, in state roots made for the test."""

import fcntl
import json
import os

import pytest

from mosaic.catalog.place import tidy_now
from mosaic.cli.disk_usage import Census
from mosaic.cli.doctor import apply_fix
from mosaic.cli.doctor_checks import Installation, check_unfinished
from mosaic.cli.old_checkpoints import find_old_checkpoints
from mosaic.model.rundir import RunDir

RUN = "01JCQ5W2ZK8M3N4P5Q6R7S8T9V"


@pytest.fixture
def make_over(root, make_run):
    """A run that is over, with these files in checkpoints/."""

    def make(*files, state="TERMINATED", best=None, **fields):
        rundir = root.run("runs", RUN)
        rundir.make()
        for name in files:
            path = rundir.checkpoints / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"x" * 5000)
        if best is not None:
            (rundir.checkpoints / "best").mkdir(exist_ok=True)
            (rundir.checkpoints / "best" / "best.json").write_text(best)
        return make_run(state, run_id=RUN, run_dir=str(rundir.path), **fields)

    return make


def old_of(*runs, live=()):
    found, kept = find_old_checkpoints(runs, live)
    return [path.name for old in found for path in old.paths], kept


def pt(step):
    return f"checkpoint-{step:012}.pt"


def test_all_but_the_last_of_a_numbered_series_are_old(make_over):
    run = make_over(pt(5), pt(10), pt(100), "settings.json", "policy.pt")

    (found,), kept = find_old_checkpoints([run], [])

    assert [path.name for path in found.paths] == [pt(5), pt(10)]
    assert found.bytes >= 10_000
    assert kept == []


@pytest.mark.parametrize(
    ("files", "old"),
    [
        (["model_5000_steps.zip", "model_10000_steps.zip"], ["model_5000_steps.zip"]),
        (["ckpt_9.pth", "ckpt_10.pth"], ["ckpt_9.pth"]),
        (["rank0.pt", "rank1.pt"], []),
        (["checkpoint_rank0.pt", "checkpoint_rank1.pt"], []),
        (["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"], []),
        (["actor.pt", "critic.pt"], []),
        ([pt(1), "epoch-00000001/agent.npz"], []),
    ],
)
def test_only_names_numbered_by_time_form_a_series(make_over, files, old):
    assert old_of(make_over(*files))[0] == old


def test_the_file_beside_a_checkpoint_shares_its_fate(make_over):
    run = make_over(
        *(name for step in (1, 2, 3) for name in (pt(step), f"{pt(step)}.commit.json")),
        best=json.dumps({"path": pt(1), "step": 1, "score": 2.0}),
    )

    assert old_of(run)[0] == [pt(2), f"{pt(2)}.commit.json"]


def test_the_last_complete_folder_is_kept(make_over):
    run = make_over(
        *(f"epoch-0000000{n}/agent.npz" for n in (1, 2, 3)),
        *(f"epoch-0000000{n}/commit.json" for n in (1, 2)),
        "blocks/0001.npz",
    )

    assert old_of(run)[0] == ["epoch-00000001", "epoch-00000003"]


@pytest.mark.parametrize("path", ["checkpoints/epoch-00000001", "epoch-00000001", "../epoch-00000001/agent.npz"])
def test_the_best_checkpoint_is_kept_wherever_it_is(make_over, path):
    run = make_over(
        *(f"epoch-0000000{n}/agent.npz" for n in (1, 2, 3)), best=json.dumps({"path": path, "step": 1, "score": 2.0})
    )

    assert old_of(run)[0] == ["epoch-00000002"]


@pytest.mark.parametrize("best", ["{", "{}", "[]"])
def test_a_run_whose_best_checkpoint_is_unknown_is_skipped(make_over, best):
    names, kept = old_of(make_over(pt(1), pt(2), best=best))

    assert names == []
    assert "best.json, which names its best checkpoint, cannot be read" in kept[0]


def test_the_target_of_a_link_is_kept(make_over):
    run = make_over(pt(1), pt(2), pt(3))
    (RunDir(run.run_dir).checkpoints / "latest.pt").symlink_to(pt(1))

    assert old_of(run)[0] == [pt(2)]


def test_checkpoints_of_live_runs_and_of_their_parents_are_kept(make_over, make_run):
    live = make_over(pt(1), pt(2), state="EXECUTING")
    assert old_of(live, live=[live]) == ([], [])

    over = make_over()
    for child in (
        make_run(parent_run_id=RUN),
        make_run(config_json=json.dumps({"metadata": {"worker": {"config": {"checkpoint": over.run_dir}}}})),
    ):
        names, kept = old_of(over, live=[child])
        assert names == []
        assert "a live run was started from it" in kept[0]


def test_environments_caches_and_unfinished_folders_are_counted_once(root, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("UV_CACHE_DIR", raising=False)
    sizes = {
        root.envs / "toy" / "lib.py": 50_000,
        root.envs / ".new-123" / "lib.py": 60_000,
        root.answers / "toy.json": 5_000,
        root.path / "caches" / "inductor" / "kernel.so": 70_000,
        tmp_path / "cache" / "uv" / "other.py": 80_000,
        tmp_path / "cache" / "mosaic" / "wheels" / "toy.whl": 10_000,
    }
    for path, count in sizes.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(os.urandom(count))
    os.link(root.envs / "toy" / "lib.py", tmp_path / "cache" / "uv" / "lib.py")  # as uv fills an environment

    items = {item.name: item for item in Census().items(root)}

    def about(name, count):
        return count <= items[name].bytes < count + 8192

    assert about("toy", 50_000)
    assert about(".new-123", 60_000)
    assert "doctor --fix" in items[".new-123"].note
    assert about("workers' answers", 5_000)
    assert about(str(root.path / "caches" / "inductor"), 70_000)
    assert about(str(tmp_path / "cache" / "uv"), 80_000)
    assert about(str(tmp_path / "cache" / "mosaic"), 10_000)


def test_unfinished_environments_are_found_and_removed(root):
    for name in (".new-123", ".new-gone-toy", "whole"):
        (root.envs / name).mkdir()

    found = list(check_unfinished(Installation(root)))

    assert [finding.what.split(" ")[0] for finding in found] == [
        str(root.envs / name) for name in (".new-123", ".new-gone-toy")
    ]
    assert {apply_fix(finding) for finding in found} == {"done"}
    assert [path.name for path in root.envs.glob("*[!k]")] == ["whole"]


def test_an_environment_that_was_moved_away_is_restored(root):
    (root.envs / ".old-toy").mkdir()

    (found,) = check_unfinished(Installation(root))

    assert "The environment 'toy' is missing" in found.what
    assert apply_fix(found) == "done"
    assert (root.envs / "toy").is_dir()


def test_the_folders_of_a_running_install_are_left_alone(root):
    (root.envs / ".new-123").mkdir()

    with open(root.envs / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)

        assert list(check_unfinished(Installation(root))) == []
        assert "an install is running" in [item.note for item in Census().items(root)]
        with pytest.raises(BlockingIOError):
            tidy_now(root.envs)

    assert (root.envs / ".new-123").is_dir()
