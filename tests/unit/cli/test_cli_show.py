"""`mosaic show`, and the figures of a listing."""

import json
import os

import pytest

from mosaic.cli.show import describe
from mosaic.present.best_checkpoint import Best, read_best
from mosaic.present.runs import note, return_cell
from mosaic.present.scores import score
from mosaic.wire import mosaic_pb2 as pb


def line_of(output, name):
    """The line of `show` that begins with this name."""
    return next(line[13:] for line in output.splitlines() if line.startswith(f"{name:<13}"))


def test_show_prints_all_details(make_run):
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

    output = describe(run)

    for words in ("FAULTED: killed by SIGSEGV; incomplete\nlast words", '"seed": 42', "loss", "0.25", "history"):
        assert words in output
    assert line_of(output, "progress").endswith("50%")
    assert line_of(output, "env steps") == "500 of 1,000"
    assert line_of(output, "stored") == "512 events (500 step lines, 12 lifecycle lines)"
    assert line_of(output, "rejected") == f"2 lines; see why: mosaic logs {run.run_id} --rejects"
    assert line_of(output, "requests") == "2 CPUs, 4 GB of memory"
    assert line_of(output, "settings") == "unchecked: the worker has no schema"
    assert line_of(output, "GPUs") == "1 requested, none granted now"
    assert (line_of(output, "held by"), line_of(output, "tags"), line_of(output, "folder")) == (
        "pid namespace",
        "ablation",
        "/data/run",
    )


def test_training_and_evaluation_are_distinguished(make_run):
    summary = {"mean_return": 134, "mean_over": 100, "return_trace": [1, 50, 134], "episodes": 460}
    evals = {"eval_mean": 250, "eval_interval": 12.3, "eval_over": 20, "eval_episodes": 60}

    output = describe(make_run(summary={**summary, **evals}))

    assert line_of(output, "returns") == "▁▄█  mean return 134 over the last 100 training episodes of 400"
    assert line_of(output, "evaluation") == "newest: mean return 250 ± 12 over 20 episodes (of 60 in total)"


def test_an_evaluation_run_shows_its_mean_and_interval(make_run):
    evals = {"eval_mean": 481.2, "eval_interval": 12.3, "eval_over": 20, "eval_episodes": 20, "episodes": 20}

    run = make_run("TERMINATED", area="evals", summary=evals)

    assert return_cell(run) == "481.2 ±12 (20)"
    assert "mean return 481.2 ± 12 over 20 episodes" in line_of(describe(run), "evaluation")


def test_an_evaluation_of_several_operators_claims_no_mean(make_run):
    summary = {"eval_episodes": 60, "episodes": 60, "last_return": 3, "recent_returns": [1, 2, 3]}

    run = make_run("TERMINATED", area="evals", summary=summary)

    assert (score(run), return_cell(run)) == (None, "(60)")
    assert line_of(describe(run, results="the table"), "evaluation") == "60 episodes without a common mean"
    assert describe(run, results="the table").endswith("\n\nthe table")


@pytest.mark.parametrize(
    ("summary", "cell"),
    [
        ({"mean_return": 214.25, "mean_over": 100, "last_return": 9}, "214.2 (100)"),
        ({"mean_return": 3, "mean_over": 2}, "3 (2)"),
        ({"eval_mean": 500, "eval_over": 5, "eval_episodes": 5}, "-"),
        ({}, "-"),
    ],
)
def test_a_listing_shows_a_mean_and_its_number_of_episodes(make_run, summary, cell):
    assert return_cell(make_run(summary=summary)) == cell


@pytest.mark.parametrize(("state", "done"), [("TERMINATED", 1.0), ("CANCELLED", 0.92), ("EXECUTING", 0.92)])
def test_a_finished_run_is_complete_and_shows_its_steps(make_run, state, done):
    run = make_run(state, total_steps=1000, summary={"env_steps": 920, "last_step": 920})

    assert run.progress == done
    assert line_of(describe(run), "env steps").startswith("920 of 1,000")


def test_an_older_daemon_reports_only_the_last_step(make_run):
    assert make_run(total_steps=1000, summary={"last_step": 499}).progress == 0.5


def test_the_parent_and_children_of_a_run_are_shown(make_run):
    parent = make_run(run_id="01PARENT", name="first try")
    child = make_run(run_id="01CHILD", name="video", relation="eval")
    run = make_run(parent_run_id="01PARENT", relation="resume", children=["01CHILD", "01GONE"])

    output = describe(run, {"01PARENT": parent, "01CHILD": child})

    assert line_of(output, "parent") == "01PARENT  first try  (resumed)"
    assert line_of(output, "children") == "01CHILD  video  (eval)"
    assert "… and 1 more" in output
    assert line_of(describe(run), "parent") == "01PARENT  deleted  (resumed)"


# ---- the best checkpoint


@pytest.fixture
def best_file(tmp_path):
    path = tmp_path / "checkpoints" / "best" / "best.json"
    path.parent.mkdir(parents=True)
    return path


def test_the_best_checkpoint_is_shown_with_its_score(make_run, tmp_path, best_file):
    output = {"path": "agent.pt", "step": 80_000, "score": 487.5, "episodes": 10, "seeds": [1_000_000], "version": 1}
    best_file.write_text(json.dumps(output))

    best = read_best(str(tmp_path))

    assert best == Best(487.5, 80_000, 10)
    assert (
        line_of(describe(make_run(), best=best), "best")
        == "checkpoints/best: score 487.5 over 10 episodes, at env step 80,000"
    )


@pytest.mark.parametrize(
    "expected",
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
def test_a_best_file_that_is_not_valid_is_ignored(tmp_path, best_file, expected):
    best_file.write_bytes(expected)

    assert read_best(str(tmp_path)) is None


def test_neither_a_link_nor_a_fifo_is_read(tmp_path, best_file):
    (tmp_path / "elsewhere").write_text('{"score": 1.0, "step": 1}')
    best_file.symlink_to(tmp_path / "elsewhere")
    linked = read_best(str(tmp_path))
    best_file.unlink()
    os.mkfifo(best_file)

    assert (linked, read_best(str(tmp_path)), read_best("")) == (None, None, None)


@pytest.mark.parametrize(
    ("state", "moves", "name", "expected"),
    [
        ("INIT", [(pb.INIT, 0)], "waiting", "1m00s"),
        ("TERMINATED", [(pb.INIT, 0), (pb.HANDSHAKE, 40.5)], "duration", "19s, after waiting 40s"),
        ("TERMINATED", [(pb.INIT, 0), (pb.HANDSHAKE, 0.1)], "duration", "59s"),
    ],
)
def test_waiting_for_a_free_machine_is_not_part_of_the_duration(make_run, state, moves, name, expected):
    begin = make_run(state).created_at
    history = [pb.Move(new=new, at=begin + after_s) for new, after_s in moves]

    assert line_of(describe(make_run(state, history=history)), name) == expected


def test_settings_are_shown_by_the_names_that_are_typed(make_run):
    settings = {"algo": "dqn", "extras.mode": "train", "extras.algo_params.tau": 1, "tag": 1, "extras.tag": 2}
    output = describe(make_run(settings_json=json.dumps(settings)))

    assert "defaults: algo=dqn  extras.tag=2  mode=train  tag=1  tau=1" in output.replace("\n  ", "  ")


def test_a_note_does_not_repeat_the_state(make_run):
    assert note(make_run("CANCELLED", reason="cancelled by request")) == ""
    assert note(make_run("CANCELLED", reason="cancelled by request; it did not stop")) != ""
