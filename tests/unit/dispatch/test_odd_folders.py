"""Runs whose worker has put something odd at a name that the daemon reads: they end, and others do not notice."""

import os

import pytest
from dispatcher_rig import Rig
from oddities import ODDITIES, as_ordinary_user, plant

from mosaic.catalog import provenance
from mosaic.dispatch import run_output
from mosaic.dispatch.dispatcher import GIVE_UP_S
from mosaic.dispatch.finisher import CUT_PATIENCE_S, DRAIN_PATIENCE_S
from mosaic.model import durable
from mosaic.model.states import RunState
from mosaic.wire import mosaic_pb2 as pb

METRIC = pb.Event(metric=pb.Metric(names=["loss"], values=[1.0], step=1))
# What a worker can replace in its folder, whichever version of MOSAIC started it.
NAMES = ("exit.json", "started.json", "launch.json", "owner.lock", "tail.lock", "analytics.json", "provenance.json")
NAMES += ("logs", "logs/worker.stdout.log", "logs/worker.stderr.log", "logs/holder.log", "logs/tailer.log")
NAMES += ("checkpoints", "videos", "tensorboard", "config", "operators.json")


@pytest.mark.timeout(60)
@pytest.mark.parametrize("oddity", ODDITIES)
def test_a_run_ends_whatever_lies_at_a_known_name(make_rig, oddity):
    rig = make_rig(max_runs=100, cpus=100.0)
    runs = {name: rig.running() for name in NAMES}
    healthy = rig.running()
    for name, run in runs.items():
        plant(rig.rundir(run).path / name, oddity)
        rig.exit_as_far_as_possible(run)
    rig.exit(healthy)
    rig.tail(healthy, drained=True)

    rig.turn()
    rig.clock.now += CUT_PATIENCE_S + 1
    rig.turn()
    healthy_end = rig.over(healthy)
    # A sparse spool has more bytes than the worker printed, so the daemon waits for a tailer as for any other.
    rig.wait((DRAIN_PATIENCE_S if oddity == "sparse file" else GIVE_UP_S) + 20)

    assert healthy_end == (RunState.TERMINATED, "")
    assert {name: rig.get(run).state for name, run in runs.items() if not rig.get(run).state.is_over} == {}
    assert [name for name, run in runs.items() if rig.over(run)[0] is RunState.FAULTED and not rig.over(run)[1]] == []


@pytest.mark.timeout(60)
@pytest.mark.parametrize("closed", [".", "logs", "checkpoints", "checkpoints videos tensorboard logs ."])
def test_an_ordinary_users_run_ends_although_its_worker_closed_its_folders(home, monkeypatch, closed):
    monkeypatch.setattr(provenance, "write", lambda *_: None)

    def work():
        rig = Rig(home)
        run = rig.running()
        rundir = rig.rundir(run)
        rig.print(run, b"the last line\n")
        (rundir.checkpoints / "one").write_text("1")
        rig.exit(run)
        for name in closed.split():
            (rundir.path / name).chmod(0)

        rig.turn()
        rig.tail(run, drained=True)
        rig.turn()

        assert rig.over(run) == (RunState.TERMINATED, "")
        assert durable.read_json(rundir.analytics)["metadata"] == {"written_by": "daemon"}
        rig.close()

    as_ordinary_user(home, work)


def test_a_run_whose_turns_fail_ends_after_a_while_and_says_why(rig, monkeypatch):
    run, healthy = rig.running(), rig.running()
    rig.exit(run)

    def fail(exit, rundir):
        raise ValueError(f"nonsense in {rundir.run_id}")

    monkeypatch.setattr(run_output, "is_cut", fail)
    rig.wait(GIVE_UP_S - 10)
    assert not rig.get(run).state.is_over

    rig.wait(30)

    assert rig.over(run)[0] is RunState.FAULTED
    assert f"cannot be used (nonsense in {run})" in rig.over(run)[1]
    assert run in rig.launcher.cleaned
    assert not rig.get(healthy).state.is_over


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), OSError(5, "Input/output error")])
def test_a_run_waits_for_an_error_of_the_machine_to_pass(rig, monkeypatch, error):
    run = rig.running()
    rig.exit(run)

    def fail(exit, rundir):
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(run_output, "is_cut", fail)
        rig.wait(2 * GIVE_UP_S)
        assert not rig.get(run).state.is_over
    rig.tail(run, drained=True)
    rig.turn()

    assert rig.over(run) == (RunState.TERMINATED, "")


def test_a_live_run_is_not_ended_because_its_turns_fail_but_can_be_cancelled(rig, monkeypatch):
    run = rig.running()

    def fail(rundir):
        raise ValueError("nonsense")

    monkeypatch.setattr(run_output, "total_bytes", fail)
    rig.wait(2 * GIVE_UP_S)
    assert not rig.get(run).state.is_over

    rig.cancel(run)
    rig.turn()

    assert rig.launcher.stopped == [run]


def test_the_end_of_a_dead_holder_is_written_over_whatever_is_there(make_rig):
    rig = make_rig(max_runs=100, cpus=100.0)
    runs = {oddity: rig.running() for oddity in ODDITIES}
    for oddity, run in runs.items():
        plant(rig.rundir(run).exit, oddity)
        rig.kill_holder(run)

    rig.turn()

    ends = {oddity: durable.read_json(rig.rundir(run).exit) for oddity, run in runs.items()}
    assert {oddity: end and end["ended_by"] for oddity, end in ends.items()} == dict.fromkeys(ODDITIES, "holder died")


@pytest.mark.timeout(30)
@pytest.mark.parametrize("oddity", ODDITIES)
def test_the_spool_of_another_kind_gives_no_text_and_keeps_no_one_waiting(rig, oddity):
    rundir = rig.rundir(rig.running())
    for path in (rundir.stdout, rundir.stderr):
        plant(path, oddity)

    run_output.release_reserve(rundir)

    assert not run_output.has_unread_line(rundir, 0)
    assert run_output.stderr_tail(rundir).strip("{}") == ""
    assert run_output.with_holder_log("It ended.", rundir) == "It ended."


def test_a_link_in_place_of_the_logs_reaches_no_other_run(rig):
    mine, other = rig.rundir(rig.running()), rig.rundir(rig.running())
    other.stderr.write_text("of another run")
    other.stderr.chmod(0o640)
    mine.logs.rename(mine.path / "old")
    mine.logs.symlink_to(other.logs)

    run_output.release_reserve(mine)

    assert run_output.stderr_tail(mine) == ""
    assert other.stderr.stat().st_mode & 0o777 == 0o640


def test_a_manifest_lists_no_folder_that_is_a_link_or_cannot_be_read(rig):
    run = rig.running()
    rundir = rig.rundir(run)
    rundir.videos.rmdir()
    rundir.videos.symlink_to("/etc")
    (rundir.checkpoints / "one").write_text("1")

    run_output.write_manifest(rig.get(run), rundir)

    artifacts = durable.read_json(rundir.analytics)["artifacts"]
    assert artifacts["videos_dir"] is None
    assert artifacts["checkpoints"] == {"directory": "checkpoints"}
    assert os.listdir("/etc")
