"""A run told in words, and the figures of a listing."""

import json
import os

import pytest

from mosaic.cli.best_checkpoint import Best, read_best
from mosaic.cli.runs import note, return_cell
from mosaic.cli.show import describe
from mosaic.wire import mosaic_pb2 as pb


def fact(told, name):
    """The line of `show` that begins with this name."""
    return next(line[13:] for line in told.splitlines() if line.startswith(f"{name:<13}"))


def test_show_tells_everything(make_run):
    run = make_run(
        state="FAULTED",
        reason="killed by SIGSEGV\nlast words",
        total_steps=1000,
        summary={"last_step": 499, "events": 512, "steps": 500, "rejects": 2, "last_values": {"loss": 0.25}},
        held_by="pid namespace",
        telemetry="incomplete",
        gpus_requested=1,
        run_dir="/data/run",
        config_json='{"metadata": {"seed": 42}}',
        history=[
            pb.Move(new=pb.INIT, at=1.0),
            pb.Move(old=pb.INIT, new=pb.FAULTED, at=2.0, reason="killed by SIGSEGV"),
        ],
        tags=["ablation"],
        cpus=2,
        memory_mb=4096,
        settings_note="the worker has no schema",
    )

    told = describe(run)

    for words in ("FAULTED: killed by SIGSEGV; incomplete\nlast words", '"seed": 42', "loss", "0.25", "history"):
        assert words in told
    assert fact(told, "progress").endswith("50%")
    assert fact(told, "env steps") == "500 of 1,000"
    assert fact(told, "stored") == "512 events (500 step lines, 12 lifecycle lines)"
    assert fact(told, "rejected") == f"2 lines; see why with: mosaic logs {run.run_id} --rejects"
    assert fact(told, "needs") == "2 CPUs, 4 GB of memory"
    assert fact(told, "settings") == "unchecked: the worker has no schema"
    assert fact(told, "GPUs") == "1 requested, none held now"
    assert (fact(told, "held by"), fact(told, "tags"), fact(told, "folder")) == (
        "pid namespace",
        "ablation",
        "/data/run",
    )


def test_training_and_evaluation_are_told_apart(make_run):
    summary = {"mean_return": 134, "mean_over": 100, "return_trace": [1, 50, 134], "episodes": 460}
    evals = {"eval_mean": 250, "eval_interval": 12.3, "eval_over": 20, "eval_episodes": 60}

    told = describe(make_run(summary={**summary, **evals}))

    assert fact(told, "returns") == "▁▄█  mean return 134 over the last 100 training episodes of 400"
    assert fact(told, "evaluation") == "newest: mean return 250 ± 12 over 20 episodes (of 60 in all)"


def test_an_evaluation_run_tells_its_mean_and_interval(make_run):
    evals = {"eval_mean": 481.2, "eval_interval": 12.3, "eval_over": 20, "eval_episodes": 20, "episodes": 20}

    run = make_run("TERMINATED", area="evals", summary=evals)

    assert return_cell(run) == "481.2 ±12 (20)"
    assert "mean return 481.2 ± 12 over 20 episodes" in fact(describe(run), "evaluation")


@pytest.mark.parametrize(
    ("summary", "cell"),
    [
        ({"mean_return": 214.25, "mean_over": 100, "last_return": 9}, "214.2 (100)"),
        ({"mean_return": 3, "mean_over": 2}, "3 (2)"),
        ({"eval_mean": 500, "eval_over": 5, "eval_episodes": 5}, "-"),
        ({}, "-"),
    ],
)
def test_a_listing_shows_a_mean_and_of_how_many_episodes(make_run, summary, cell):
    assert return_cell(make_run(summary=summary)) == cell


@pytest.mark.parametrize(("state", "done"), [("TERMINATED", 1.0), ("CANCELLED", 0.92), ("EXECUTING", 0.92)])
def test_a_run_that_finished_is_done_and_says_how_many_steps_it_made(make_run, state, done):
    run = make_run(state, total_steps=1000, summary={"env_steps": 920, "last_step": 920})

    assert run.progress == done
    assert fact(describe(run), "env steps").startswith("920 of 1,000")


def test_a_daemon_of_before_tells_the_last_step_only(make_run):
    assert make_run(total_steps=1000, summary={"last_step": 499}).progress == 0.5


def test_where_a_run_came_from_and_what_came_of_it(make_run):
    parent = make_run(run_id="01PARENT", name="first try")
    child = make_run(run_id="01CHILD", name="video", relation="eval")
    run = make_run(parent_run_id="01PARENT", relation="resume", children=["01CHILD", "01GONE"])

    told = describe(run, {"01PARENT": parent, "01CHILD": child})

    assert fact(told, "made from") == "01PARENT  first try  (resumed)"
    assert fact(told, "led to") == "01CHILD  video  (eval)"
    assert "… and 1 more" in told
    assert fact(describe(run), "made from") == "01PARENT  deleted since  (resumed)"


# ---- the best checkpoint


@pytest.fixture
def best_file(tmp_path):
    path = tmp_path / "checkpoints" / "best" / "best.json"
    path.parent.mkdir(parents=True)
    return path


def test_the_best_checkpoint_is_told_with_its_score(make_run, tmp_path, best_file):
    told = {"path": "agent.pt", "step": 80_000, "score": 487.5, "episodes": 10, "seeds": [1_000_000], "version": 1}
    best_file.write_text(json.dumps(told))

    best = read_best(str(tmp_path))

    assert best == Best(487.5, 80_000, 10)
    assert (
        fact(describe(make_run(), best=best), "best")
        == "checkpoints/best: score 487.5 over 10 episodes, at env step 80,000"
    )


@pytest.mark.parametrize(
    "told",
    [
        b"",
        b"not json",
        b"[1]",
        b'{"score": "high", "step": 1}',
        b'{"score": 1.0}',
        b'{"score": 1.0, "step": true}',
        b'{"score": 1.0, "step": -1}',
        b"[" * 50_000,
        b'{"score": 1.0, "step": 1}' + b" " * 70_000,
    ],
)
def test_a_best_file_that_cannot_be_one_is_passed_over(tmp_path, best_file, told):
    best_file.write_bytes(told)

    assert read_best(str(tmp_path)) is None


def test_neither_a_link_nor_a_fifo_is_read(tmp_path, best_file):
    (tmp_path / "elsewhere").write_text('{"score": 1.0, "step": 1}')
    best_file.symlink_to(tmp_path / "elsewhere")
    linked = read_best(str(tmp_path))
    best_file.unlink()
    os.mkfifo(best_file)

    assert (linked, read_best(str(tmp_path)), read_best("")) == (None, None, None)


@pytest.mark.parametrize(
    ("state", "moves", "name", "told"),
    [
        ("INIT", [(pb.INIT, 0)], "waiting for", "1m00s"),
        ("TERMINATED", [(pb.INIT, 0), (pb.HANDSHAKE, 40.5)], "took", "19s, after waiting 40s"),
        ("TERMINATED", [(pb.INIT, 0), (pb.HANDSHAKE, 0.1)], "took", "59s"),
    ],
)
def test_the_wait_for_a_free_machine_is_not_running_time(make_run, state, moves, name, told):
    begin = make_run(state).created_at
    history = [pb.Move(new=new, at=begin + after_s) for new, after_s in moves]

    assert fact(describe(make_run(state, history=history)), name) == told


def test_settings_are_shown_by_the_names_one_types(make_run):
    settings = {"algo": "dqn", "extras.mode": "train", "extras.algo_params.tau": 1, "tag": 1, "extras.tag": 2}
    told = describe(make_run(settings_json=json.dumps(settings)))

    assert "defaults: algo=dqn  extras.tag=2  mode=train  tag=1  tau=1" in told.replace("\n  ", "  ")


def test_a_note_does_not_repeat_the_state(make_run):
    assert note(make_run("CANCELLED", reason="cancelled by request")) == ""
    assert note(make_run("CANCELLED", reason="cancelled by request; it did not stop")) != ""
