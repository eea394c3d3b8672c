"""The dispatcher, with all of its timeouts on a fake clock."""

import asyncio
import errno
import shutil
import sqlite3

import pytest

from mosaic.dispatch.deadlines import HANDSHAKE_LIMIT_S
from mosaic.dispatch.finisher import CUT_PATIENCE_S, DRAIN_PATIENCE_S, UNKILLABLE_S
from mosaic.dispatch.situation import LONGEST_WORDS
from mosaic.dispatch.starter import MAX_LAUNCHES
from mosaic.model import durable
from mosaic.model.durable import read_json
from mosaic.model.end_proof import has_ended
from mosaic.model.errors import BadConfig
from mosaic.model.states import RunState
from mosaic.registry.registry import Registry
from mosaic.wire import mosaic_pb2 as pb

METRIC = pb.Event(metric=pb.Metric(names=["loss"], values=[1.0], step=1))
HEARTBEAT = pb.Event(lifecycle=pb.Lifecycle(event="heartbeat"))

# ---- starting


def test_a_run_is_claimed_on_disk_before_its_holder_is_spawned(rig):
    run = rig.submit()
    seen = []
    rig.launcher.on_launch = lambda rundir, launch: seen.append(rig.state_on_disk(rundir.run_id))

    rig.turn()

    assert seen == [("HANDSHAKE", 1)]
    assert rig.launcher.launched == [(run, 1)]


SHORTAGES = [
    (OSError(errno.EAGAIN, "Resource temporarily unavailable"), "a free process"),
    (OSError(errno.EMFILE, "Too many open files"), "free file descriptors: too many open files in the daemon"),
    (OSError(errno.ENFILE, "Too many open files in system"), "free file descriptors: too many open files on this"),
    (OSError(errno.ENOMEM, "Cannot allocate memory"), "free memory"),
    (RuntimeError("can't start new thread"), "a free process"),
]


@pytest.mark.parametrize(("error", "words"), SHORTAGES)
def test_a_run_that_cannot_be_started_now_waits_with_the_reason_and_starts_later(rig, error, words):
    run = rig.submit()

    def refuse(rundir, launch):
        raise error

    rig.launcher.on_launch = refuse
    rig.wait(100)  # many more turns than a run may have launches
    waiting = rig.get(run)
    rig.launcher.on_launch = lambda rundir, launch: None
    rig.wait(10)

    assert waiting.state is RunState.HANDSHAKE
    assert waiting.waiting_for.startswith(words)
    assert rig.launcher.launched[0] == (run, 1)
    assert rig.get(run).waiting_for == ""


def test_a_run_whose_holder_found_no_room_waits_and_starts_later(rig):
    run = rig.submit()
    rig.launcher.lacking[run] = "a free process"
    rig.wait(100)
    waiting = rig.get(run)
    rig.hold(run)
    rig.turn()

    assert (waiting.state, waiting.attempt) == (RunState.HANDSHAKE, 1)
    assert rig.get(run).state is RunState.HANDSHAKE
    assert {attempt for _, attempt in rig.launcher.launched} == {1}


def test_a_run_that_waits_for_room_can_be_cancelled(rig):
    run = rig.submit()

    def refuse(rundir, launch):
        raise OSError(errno.EAGAIN, "Resource temporarily unavailable")

    rig.launcher.on_launch = refuse
    rig.turn()
    rig.cancel(run)
    rig.turn()

    assert rig.over(run) == (RunState.CANCELLED, "cancelled before its worker started")


def test_the_wait_for_room_survives_the_daemon(rig):
    run = rig.submit()

    def refuse(rundir, launch):
        raise OSError(errno.EAGAIN, "Resource temporarily unavailable")

    rig.launcher.on_launch = refuse
    for _ in range(MAX_LAUNCHES + 2):
        rig.wait(20)
        rig.restart()
    rig.launcher.on_launch = lambda rundir, launch: None
    rig.wait(10)

    assert rig.get(run).state is RunState.HANDSHAKE
    assert len(rig.launcher.launched) >= 1


@pytest.mark.parametrize("error", [OSError(40, "Too many levels of symbolic links"), PermissionError(13, "no")])
def test_a_spawn_error_ends_the_run_and_frees_its_gpus(make_rig, error):
    rig = make_rig(gpus=1)
    run = rig.submit(gpus=1)

    def refuse(rundir, launch):
        raise error

    rig.launcher.on_launch = refuse
    rig.turn()

    assert rig.over(run) == (RunState.FAULTED, f"spawn error: {error}")
    assert rig.ask(lambda r: r.gpu_owners()) == {}


def test_a_run_whose_config_is_gone_ends_with_a_spawn_error(rig):
    run = rig.submit()
    rig.root.config_file(run).unlink()

    rig.turn()

    state, reason = rig.over(run)
    assert state is RunState.FAULTED
    assert reason.startswith("spawn error: ")
    assert rig.launcher.launched == []


def asked_of(rig, turn):
    """How many questions the registry is asked meanwhile, and how many rows are read."""
    asked, rows = [], []
    do, records = rig.registry.do, Registry._records

    def counted(registry, *args):
        found = records(registry, *args)
        rows.extend(found)
        return found

    rig.registry.do = lambda work: (asked.append(work), do(work))[1]
    Registry._records = counted
    try:
        turn()
    finally:
        rig.registry.do, Registry._records = do, records
    return len(asked), len(rows)


def test_a_turn_with_nothing_to_start_does_not_read_the_queue(make_rig):
    rig = make_rig(max_runs=1)
    first, *waiting = [rig.submit() for _ in range(40)]
    rig.turn()
    rig.hold(first)
    rig.turn()

    asked, rows = asked_of(rig, rig.turn)
    noted = {rig.get(run).waiting_for for run in waiting}
    rig.exit(first)
    rig.wait(60)

    assert (asked < 10, rows < 10) == (True, True)
    assert len(noted) == 1
    assert "free slot" in noted.pop()
    assert rig.launcher.launched[:2] == [(first, 1), (waiting[0], 1)]


def test_what_a_thousand_runs_wait_for_is_one_transaction(make_rig):
    rig = make_rig(max_runs=0)
    for _ in range(50):
        rig.submit()
    before = rig.ask(lambda r: r.revision())

    rig.turn()

    assert rig.ask(lambda r: r.revision()) == before + 1


def test_a_damaged_row_is_left_alone_and_the_others_go_on(rig):
    victim, other = rig.submit(), rig.submit()
    rig.turn()
    rig.hold(other)
    rig.ask(lambda r: r._db.execute("UPDATE runs SET attempt = 'x' WHERE id = ?", (victim,)))
    third = rig.submit()

    rig.turn()

    assert [run for run, _ in rig.launcher.launched] == [victim, other, third]
    assert rig.get(victim).damage
    assert rig.get(victim).state is RunState.HANDSHAKE


def test_a_row_that_is_damaged_while_its_run_lives_is_left_alone_at_once(rig):
    run = rig.running()
    rig.turn()  # since this one no change of the registry is known
    rig.exit(run)
    with sqlite3.connect(rig.root.registry) as db:
        db.execute("UPDATE runs SET attempt = 'x' WHERE id = ?", (run,))
    exit = rig.rundir(run).exit.read_bytes()

    rig.turn()

    assert rig.rundir(run).exit.read_bytes() == exit
    assert rig.launcher.cleaned == []


@pytest.mark.parametrize("held_by", [{}, {"a": 1}, ["x"], 7, "x" * 300_000])
def test_odd_words_in_a_start_do_not_keep_a_run_from_being_cancelled(rig, held_by):
    run = rig.running()
    started = durable.read_json(rig.rundir(run).started)
    durable.write_json(rig.rundir(run).started, {**started, "held_by": held_by, "node": held_by})

    rig.cancel(run)
    rig.turn()

    assert rig.launcher.stopped == [run]
    assert len(rig.get(run).held_by) <= LONGEST_WORDS


def test_one_run_that_cannot_be_started_does_not_stop_the_others(rig):
    first, second = rig.submit(), rig.submit()

    def fail(rundir, launch):
        if rundir.run_id == first:
            raise RuntimeError("a bug in the launcher")

    rig.launcher.on_launch = fail
    rig.turn()

    assert rig.launcher.launched == [(second, 1)]


def test_a_holder_that_never_starts_is_replaced_by_the_next_attempt_until_there_were_enough(rig):
    run = rig.submit()
    rig.turn()
    rig.rundir(run).holder_log.write_text("No space left on device")

    for _ in range(MAX_LAUNCHES - 1):
        rig.turn()
    assert rig.launcher.launched == [(run, attempt) for attempt in range(1, MAX_LAUNCHES + 1)]

    rig.turn()
    assert rig.over(run) == (RunState.FAULTED, "spawn error: its holder never started")
    assert "No space left on device" in rig.get(run).reason
    assert not rig.rundir(run).launch.exists()  # a late holder finds nothing to start


@pytest.mark.parametrize("is_cancelled", [False, True])
def test_a_holder_that_is_killed_after_it_failed_leaves_no_tailer_behind(rig, is_cancelled):
    """It had started one, which registered; without exit.json that would wait for ever."""
    run = rig.submit()
    rig.turn()
    durable.write_json(rig.rundir(run).launch, launch := {"run_id": run, "attempt": 1, "secret": "s"})
    rig.register(run)
    if is_cancelled:
        rig.cancel(run)

    rig.turn()

    assert rig.over(run)[0] is (RunState.CANCELLED if is_cancelled else RunState.FAULTED)
    assert has_ended(rig.rundir(run), launch)


def test_no_second_holder_is_launched_while_the_first_is_starting(rig):
    run = rig.submit()
    rig.turn()
    rig.launcher.starting.add(run)

    rig.turn()

    assert rig.launcher.launched == [(run, 1)]


def test_no_second_holder_is_launched_while_a_late_one_holds_the_lock(rig):
    run = rig.submit()
    rig.turn()
    rig.launcher.locked.add(run)

    rig.turn()

    assert rig.launcher.launched == [(run, 1)]
    assert rig.rundir(run).launch.exists()


def test_a_holder_that_started_just_before_the_fence_is_not_launched_again(rig):
    run = rig.submit()
    rig.turn()
    fence = rig.launcher.fence

    def start_then_fence(rundir):
        rig.rundir(run).started.write_text('{"attempt": 1}')
        return fence(rundir)

    rig.launcher.fence = start_then_fence
    rig.turn()

    assert rig.launcher.launched == [(run, 1)]
    assert rig.rundir(run).launch.exists()


def test_a_run_that_waits_for_a_gpu_shows_it(make_rig):
    rig = make_rig(gpus=1)
    first, second = rig.submit(gpus=1), rig.submit(gpus=1)

    rig.turn()

    assert rig.ask(lambda r: r.gpu_owners()) == {"GPU-fake-0": first}
    assert rig.get(second).waiting_for == "1 GPU (0 free)"


def test_a_run_that_has_ended_makes_room_for_the_next_one_before_its_output_is_stored(make_rig):
    rig = make_rig(gpus=1)
    first = rig.running(gpus=1)
    second = rig.submit(gpus=1)
    rig.print(first, b"not stored yet\n")
    rig.turn()

    rig.exit(first)
    rig.turn()

    assert not rig.get(first).state.is_over
    assert rig.launcher.launched[-1] == (second, 1)


# ---- supervising


def test_the_first_measurement_makes_a_run_executing(rig):
    run = rig.running()
    assert rig.get(run).state is RunState.READY
    assert rig.get(run).held_by == "pid namespace"

    rig.print(run, b"metric\n")
    rig.tail(run, METRIC)
    rig.turn()

    assert rig.get(run).state is RunState.EXECUTING


def test_a_run_that_never_registers_is_stopped_once_and_ends_with_that_reason(rig):
    run = rig.submit()
    rig.turn()
    rig.hold(run)

    rig.wait(HANDSHAKE_LIMIT_S)
    assert rig.launcher.stopped == []

    rig.wait(20)
    assert rig.launcher.stopped == [run]

    rig.exit(run, exit_code=None, signal="SIGTERM", ended_by="cancel")
    rig.tail(run, drained=True)
    rig.turn()
    assert rig.over(run) == (RunState.FAULTED, "handshake: its tailer did not register within 600 s")


def test_heartbeats_that_stop_without_cpu_use_end_the_run_with_an_autopsy(rig):
    run = rig.running(limits={"heartbeat_s": 60})
    rig.runs.heartbeat(run, 1)

    rig.wait(60)
    assert rig.launcher.autopsied == []

    rig.wait(60)
    assert rig.launcher.autopsied == [run]

    rig.exit(run, exit_code=None, ended_by="hang")
    rig.tail(run, drained=True)
    rig.turn()
    state, reason = rig.over(run)
    assert state is RunState.FAULTED
    assert reason.startswith("hang: no heartbeat for")


def test_a_run_without_heartbeats_that_uses_cpu_is_left_alone_until_its_spin_limit(rig):
    run = rig.running(limits={"heartbeat_s": 60, "spin_s": 600})
    rig.runs.heartbeat(run, 1)

    def work(seconds):
        end = rig.clock.now + seconds
        while rig.clock.now < end:
            rig.launcher.cpu += 5.0
            rig.wait(8)

    work(560)
    assert rig.launcher.autopsied == []

    work(80)
    assert rig.launcher.autopsied == [run]


@pytest.mark.parametrize(
    ("limits", "verdict"),
    [({"quiet_s": 120}, "no output for"), ({"no_progress_s": 120}, "heartbeats without progress")],
)
def test_limits_in_the_config_count_from_the_last_sign_of_life(rig, limits, verdict):
    run = rig.running(limits=limits)
    rig.runs.heartbeat(run, 1)

    rig.wait(112)
    assert rig.runs.get(run).end_reason == ""

    rig.wait(16)
    assert verdict in rig.runs.get(run).end_reason


def test_output_that_ends_no_line_is_a_sign_of_life(rig):
    run = rig.running(limits={"quiet_s": 60})

    for _ in range(20):
        rig.print(run, b"#")
        rig.wait(16)

    assert rig.launcher.autopsied == []


def test_a_line_that_the_tailer_has_not_sent_is_not_the_silence_of_the_worker(rig):
    run = rig.running(limits={"quiet_s": 60})
    rig.print(run, b"a whole line\n")
    rig.wait(8)

    rig.wait(120)
    assert rig.launcher.autopsied == []

    rig.tail(run)
    rig.wait(120)
    assert rig.launcher.autopsied == [run]


def test_time_in_which_the_daemon_was_stopped_does_not_count_as_silence(rig):
    run = rig.running(limits={"quiet_s": 60, "heartbeat_s": 60})
    rig.runs.heartbeat(run, 1)
    rig.wait(16)

    rig.clock.now += 3600
    rig.turn()
    rig.wait(32)
    assert rig.launcher.autopsied == []

    rig.wait(60)
    assert rig.launcher.autopsied == [run]


def test_a_new_daemon_knows_that_a_silent_run_sent_heartbeats(rig):
    run = rig.running(limits={"heartbeat_s": 60})
    rig.print(run, b"heartbeat\n")
    rig.tail(run, HEARTBEAT)
    rig.restart()

    rig.wait(160)

    assert rig.launcher.autopsied == [run]


def test_a_new_daemon_knows_of_heartbeats_that_came_as_calls(rig):
    run = rig.running(limits={"heartbeat_s": 60})
    rig.ask(lambda r: r.note_heartbeat_calls(run))
    rig.restart()

    rig.wait(160)

    assert rig.launcher.autopsied == [run]


# ---- cancelling


def test_a_cancel_before_the_start_ends_a_run_without_a_process(make_rig):
    rig = make_rig(max_runs=0)
    run = rig.submit()
    rig.turn()
    rig.cancel(run)

    rig.turn()

    assert rig.over(run) == (RunState.CANCELLED, "cancelled before it started")
    assert rig.launcher.launched == []


def test_a_cancel_before_the_holder_starts_fences_the_attempt_off(rig):
    run = rig.submit()
    rig.turn()
    rig.cancel(run)

    rig.turn()

    assert rig.over(run) == (RunState.CANCELLED, "cancelled before its worker started")
    assert not rig.rundir(run).launch.exists()
    assert rig.get(run).attempt == 2  # the nonce of the first attempt is no longer valid


@pytest.mark.parametrize("state", [RunState.HANDSHAKE, RunState.READY, RunState.EXECUTING])
def test_a_cancel_stops_a_live_run_once_through_its_holder(rig, state):
    run = rig.submit()
    rig.turn()
    rig.hold(run)
    if state is not RunState.HANDSHAKE:
        rig.register(run)
    if state is RunState.EXECUTING:
        rig.print(run, b"metric\n")
        rig.tail(run, METRIC)
        rig.turn()
    assert rig.get(run).state is state

    rig.cancel(run)
    rig.turn()
    rig.turn()
    assert rig.launcher.stopped == [run]
    assert rig.get(run).state is state

    rig.exit(run, exit_code=None, signal="SIGTERM", ended_by="cancel")
    rig.tail(run, drained=True)
    rig.turn()
    assert rig.over(run) == (RunState.CANCELLED, "cancelled by request")


def test_a_cancel_that_arrives_while_the_run_is_being_closed_counts(rig, monkeypatch):
    run = rig.running()
    rig.exit(run)
    rig.tail(run, drained=True)
    finish = rig.ingest.finish

    async def cancel_then_finish(run_id):
        await rig.registry.do(lambda r: r.request_cancel(run_id))
        return await finish(run_id)

    monkeypatch.setattr(rig.ingest, "finish", cancel_then_finish)
    rig.turn()

    assert rig.over(run)[0] is RunState.CANCELLED


# ---- forged ends


def forge(rig, run, **facts):
    durable.write_json(rig.rundir(run).exit, {"attempt": 1, "exit_code": 0, "signal": None, "ended_by": "", **facts})


def secret_of(rig, run):
    return read_json(rig.rundir(run).launch)["secret"]


@pytest.mark.parametrize("knows_secret", [False, True])
def test_a_forged_end_neither_ends_a_live_run_nor_frees_its_gpu(make_rig, knows_secret):
    rig = make_rig(gpus=1)
    run = rig.running(gpus=1)
    waiting = rig.submit(gpus=1)

    forge(rig, run, **({"secret": secret_of(rig, run)} if knows_secret else {}))
    rig.tail(run, exited=True, drained=True)
    rig.wait(60)

    assert rig.get(run).state is RunState.READY
    assert rig.get(waiting).state is RunState.INIT
    assert rig.ask(lambda r: r.gpu_owners()) == {"GPU-fake-0": run}
    rig.cancel(run)
    rig.turn()
    assert rig.launcher.stopped == [run]
    assert not rig.get(run).state.is_over


@pytest.mark.parametrize("knows_secret", [False, True])
def test_a_forged_end_of_a_dead_holder_is_replaced_after_the_tree_is_killed(rig, knows_secret):
    run = rig.running()
    rig.kill_holder(run)
    forge(rig, run, **({"secret": secret_of(rig, run)} if knows_secret else {}))

    rig.turn()

    assert rig.launcher.cleaned == [run]
    assert read_json(rig.rundir(run).exit)["ended_by"] == "holder died"
    rig.tail(run, drained=True)
    rig.turn()
    assert rig.over(run)[0] is RunState.FAULTED


def test_an_end_without_a_start_never_starts_the_worker_again(rig):
    run = rig.submit()
    rig.turn()
    rig.rundir(run).stdout.touch()
    forge(rig, run)

    rig.turn()
    rig.tail(run, drained=True)
    rig.turn()

    assert rig.launcher.launched == [(run, 1)]
    assert rig.over(run)[0] is RunState.FAULTED


def test_the_end_of_a_run_of_an_older_version_needs_no_secret(rig):
    run = rig.running()
    for path in (rig.rundir(run).launch, rig.rundir(run).started):
        facts = read_json(path)
        del facts["secret"]
        durable.write_json(path, facts)
    rig.launcher.held.discard(run)
    rig.launcher.living.discard(run)

    forge(rig, run)
    rig.tail(run, drained=True)
    rig.turn()

    assert rig.over(run)[0] is RunState.TERMINATED


def test_a_run_whose_control_folder_is_deleted_is_stopped_and_ends_with_that_reason(rig):
    run = rig.running()
    shutil.rmtree(rig.rundir(run).control)

    rig.turn()
    assert rig.launcher.stopped == [run]
    rig.kill_holder(run)
    rig.turn()

    assert rig.over(run) == (RunState.FAULTED, f"its folder {rig.rundir(run).control} was deleted while it was live")


@pytest.mark.parametrize("target", ["elsewhere", "file", "itself"])
def test_nothing_is_read_or_written_through_a_link_in_place_of_the_control_folder(rig, tmp_path, target):
    run = rig.running()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "file").touch()
    control = rig.rundir(run).control
    shutil.rmtree(control)
    control.symlink_to(control if target == "itself" else tmp_path / target)

    rig.turn()
    assert rig.launcher.stopped == [run]
    rig.kill_holder(run)
    rig.turn()

    assert rig.over(run) == (RunState.FAULTED, f"its folder {control} was deleted while it was live")
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_run_without_its_control_folder_is_incomplete_if_a_line_is_not_stored(rig):
    run, cancelled = rig.running(), rig.running()
    rig.print(run, b"the last line\n")
    rig.cancel(cancelled)
    for one in (run, cancelled):
        shutil.rmtree(rig.rundir(one).control)
        rig.kill_holder(one)

    rig.turn()
    rig.wait(CUT_PATIENCE_S + 1)

    control = rig.rundir(run).control
    assert rig.over(run) == (RunState.FAULTED, f"its folder {control} was deleted while it was live")
    assert rig.get(run).telemetry == "incomplete"
    assert rig.over(cancelled) == (RunState.CANCELLED, "cancelled by request")
    assert rig.get(cancelled).telemetry == ""


# ---- dead holders


def test_a_dead_holder_is_cleaned_up_after_and_the_run_ends(rig):
    run = rig.running()
    rig.print(run, b"last line\n")
    rig.kill_holder(run)

    rig.turn()
    assert rig.launcher.cleaned == [run]
    assert read_json(rig.rundir(run).exit)["ended_by"] == "holder died"

    rig.turn()
    assert rig.launcher.tailed == [run]  # no holder is left that would restart the tailer
    rig.tail(run, drained=True)
    rig.turn()
    state, reason = rig.over(run)
    assert state is RunState.FAULTED
    assert reason.startswith("holder died: ")
    assert rig.launcher.forgotten == [run]


def test_gpus_are_freed_only_when_the_process_tree_is_proven_dead(make_rig):
    rig = make_rig(gpus=1)
    run = rig.running(gpus=1)
    rig.launcher.unkillable.add(run)
    rig.kill_holder(run)

    rig.wait(UNKILLABLE_S / 2)
    assert rig.ask(lambda r: r.gpu_owners()) == {"GPU-fake-0": run}
    assert read_json(rig.rundir(run).exit) is None

    rig.launcher.unkillable.clear()
    rig.turn()
    rig.turn()
    assert rig.ask(lambda r: r.gpu_owners()) == {}
    assert rig.ask(lambda r: r.drained()) == {}


def test_the_gpus_of_a_tree_that_cannot_be_killed_are_drained_until_a_daemon_finds_them_free(make_rig):
    rig = make_rig(gpus=1)
    run = rig.running(gpus=1)
    waiting = rig.submit(gpus=1)
    rig.launcher.unkillable.add(run)
    rig.kill_holder(run)

    rig.wait(UNKILLABLE_S + 16)
    rig.tail(run, drained=True)
    rig.turn()
    state, reason = rig.over(run)
    assert (state, reason.partition(":")[0]) == (RunState.FAULTED, "unkillable")
    assert list(rig.ask(lambda r: r.drained())) == ["GPU-fake-0"]
    assert rig.get(waiting).state is RunState.INIT

    rig.restart()
    rig.loop.run(rig.dispatcher.recover())
    rig.turn()
    assert rig.launcher.launched[-1] == (waiting, 1)


# ---- ending


def test_a_run_ends_when_its_last_byte_is_stored_and_its_tailer_has_reported_that(rig):
    run = rig.running()
    rig.print(run, b"last line\n")
    rig.exit(run)
    rig.turn()

    rig.tail(run)
    rig.turn()
    assert not rig.get(run).state.is_over

    rig.tail(run, drained=True)
    rig.turn()
    assert rig.over(run) == (RunState.TERMINATED, "")
    assert rig.get(run).telemetry == ""


def test_a_spool_that_stays_undrained_for_ten_minutes_is_incomplete_until_its_last_byte_arrives(rig):
    run = rig.running()
    rig.print(run, b"0123456789")
    rig.exit(run)

    rig.wait(DRAIN_PATIENCE_S - 16)
    assert not rig.get(run).state.is_over

    rig.wait(32)
    assert rig.over(run) == (RunState.TERMINATED, "")
    assert rig.get(run).telemetry == "incomplete"

    rig.tail(run, drained=True)
    rig.turn()
    assert rig.get(run).telemetry == ""


def test_every_byte_that_arrives_restarts_the_timeout(rig):
    run = rig.running()
    rig.print(run, b"0123456789")
    rig.exit(run)

    for _ in range(3):
        rig.wait(DRAIN_PATIENCE_S - 16)
        rig.tail(run, most=1)

    rig.turn()
    assert not rig.get(run).state.is_over


def test_a_truncated_spool_is_not_waited_for(rig):
    run = rig.running()
    rig.print(run, b"0123456789")
    rig.exit(run)
    rig.turn()
    rig.rundir(run).stdout.write_bytes(b"")

    rig.wait(CUT_PATIENCE_S + 8)

    assert rig.over(run)[0] is RunState.TERMINATED
    assert rig.get(run).telemetry == "incomplete"


def test_a_new_daemon_starts_the_tailer_of_a_run_that_ended_incomplete(rig):
    run = rig.running()
    rig.print(run, b"0123456789")
    rig.exit(run)
    rig.wait(DRAIN_PATIENCE_S + 16)
    rig.restart()
    rig.launcher.tailed.clear()

    rig.loop.run(rig.dispatcher.recover())

    assert rig.launcher.tailed == [run]


def test_a_drained_report_that_arrives_before_the_first_look_at_a_run_counts(rig):
    run = rig.running()
    rig.exit(run)
    rig.restart()
    rig.tail(run, drained=True)

    rig.turn()
    rig.turn()

    assert rig.over(run) == (RunState.TERMINATED, "")


def test_a_run_whose_folder_was_deleted_ends_after_its_processes(rig):
    run = rig.running()
    rig.delete_folder(run)

    rig.turn()
    assert rig.launcher.stopped == [run]
    assert not rig.get(run).state.is_over

    rig.kill_holder(run)
    rig.launcher.unkillable.add(run)
    rig.turn()
    assert not rig.get(run).state.is_over

    rig.launcher.unkillable.clear()
    rig.turn()
    state, reason = rig.over(run)
    assert state is RunState.FAULTED
    assert reason == f"its folder {rig.rundir(run).path} was deleted while it was live"


def test_one_run_that_fails_in_a_turn_does_not_stop_the_others(rig, monkeypatch):
    broken, other = rig.running(), rig.running()
    rig.cancel(other)
    look = rig.launcher.look

    def fail(ref):
        if ref.rundir.run_id == broken:
            raise RuntimeError("a bug in the launcher")
        return look(ref)

    monkeypatch.setattr(rig.launcher, "look", fail)
    rig.turn()

    assert rig.launcher.stopped == [other]


def test_what_keeps_a_run_waiting_is_logged_once_until_it_changes(rig, monkeypatch, caplog):
    """Such as a cluster's file that cannot be read: a line for every sweep would fill the log."""
    run, words = rig.running(), "clusters/slurm.toml: cannot be used"

    def refuse(ref):
        raise BadConfig("payload.on", words)

    with monkeypatch.context() as patched:
        patched.setattr(rig.launcher, "look", refuse)
        rig.turn()
        rig.turn()
    rig.turn()
    monkeypatch.setattr(rig.launcher, "look", refuse)
    rig.turn()

    told = [record for record in caplog.records if words in record.getMessage()]
    assert [(record.run_id, record.exc_info) for record in told] == [(run, None)] * 2


# ---- the loop


def test_the_loop_survives_a_turn_that_fails_and_is_woken_for_one_run(rig, monkeypatch):
    run = rig.submit()
    turn, turns = rig.dispatcher.turn, []

    async def fail_first(only=None):
        turns.append(only)
        if len(turns) == 1:
            rig.dispatcher.wake(run)
            raise OSError(28, "No space left on device")
        await turn(only)

    async def scene():
        launched = asyncio.Event()
        loop = asyncio.get_running_loop()
        rig.launcher.on_launch = lambda rundir, launch: loop.call_soon_threadsafe(launched.set)
        dispatching = asyncio.create_task(rig.dispatcher.run())
        await asyncio.wait_for(launched.wait(), 60)
        dispatching.cancel()
        await asyncio.gather(dispatching, return_exceptions=True)

    monkeypatch.setattr(rig.dispatcher, "turn", fail_first)
    rig.loop.run(scene())

    assert turns[:2] == [None, {run}]
