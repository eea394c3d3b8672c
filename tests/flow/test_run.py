"""A run from submit to its end, through the real daemon, holder, tailer and store."""

import json

from lab import alive, wait_until

from mosaic.model.states import RunState

S = RunState


def test_a_run_goes_through_all_states_and_all_its_events_are_stored(lab):
    run = lab.submit(name="first", steps=300, episode_length=50, metrics_every=10)

    end = lab.wait_until_over(run)

    assert (end.state, end.reason) == (S.TERMINATED, "")
    assert [move.new for move in end.history] == [S.INIT, S.HANDSHAKE, S.READY, S.EXECUTING, S.TERMINATED]
    steps = lab.events(run, "step")
    assert [step["step_index"] for step in steps] == list(range(300))
    assert len(lab.events(run, "episode")) == 6
    assert {event["event"] for event in lab.events(run, "lifecycle")} >= {"run_started", "run_completed"}


def test_every_stored_event_has_the_next_seq(lab):
    run = lab.submit(steps=500)

    lab.wait_until_over(run)

    events = lab.events(run)
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))


def test_the_run_folder_is_complete_and_self_contained(lab):
    run = lab.submit(steps=20)

    lab.wait_until_over(run)

    rundir = lab.rundir(run)
    for path in (rundir.launch, rundir.started, rundir.exit, rundir.analytics, rundir.telemetry, rundir.provenance):
        assert path.is_file(), path
    assert not list(rundir.path.glob("telemetry.sqlite-*"))
    assert lab.table(run, "SELECT count(*) FROM steps") == [(20,)]
    assert json.loads(rundir.analytics.read_text())["run_id"] == run.run_id
    assert lab.root.config_file(run.run_id).stat().st_mode & 0o777 == 0o600
    assert lab.root.worker_file(run.run_id).is_file()


def test_no_process_of_a_run_is_left_after_its_end(lab):
    run = lab.submit(steps=20, fork_children=2, double_fork=True, setsid=True, clear_environment=True)

    lab.wait_until_over(run)

    assert not alive(lab.root_pid(run))
    wait_until(lambda: not alive(lab.holder_pid(run)), words="the holder to exit")


def test_a_clean_exit_without_telemetry_goes_from_ready_to_terminated(lab):
    run = lab.submit(no_telemetry=True)

    end = lab.wait_until_over(run)

    assert [move.new for move in end.history] == [S.INIT, S.HANDSHAKE, S.READY, S.TERMINATED]


def test_a_crash_is_faulted_with_the_exit_code_and_the_end_of_stderr(lab):
    run = lab.submit(steps=100, crash_at=10)

    end = lab.wait_until_over(run)

    assert end.state is S.FAULTED
    assert end.reason.startswith("exit code 1\n")
    assert "Error" in end.reason
    assert len(lab.events(run, "step")) == 10


def test_run_failed_followed_by_exit_0_is_faulted(lab):
    end = lab.wait_until_over(lab.submit(steps=5, run_failed_exit_0=True))

    assert end.state is S.FAULTED
    assert "run_failed" in end.reason


def test_a_signal_is_reported_by_name(lab):
    end = lab.wait_until_over(lab.submit(steps=50, signal_at=20, kill_self="SIGSEGV"))

    assert (end.state, end.reason.splitlines()[0]) == (S.FAULTED, "killed by SIGSEGV")


def test_cancel_ends_a_worker_that_ignores_sigterm(lab):
    run = lab.submit(steps=10_000_000, rate=100, ignore_sigterm=True, limits={"grace_s": 0.5})
    lab.wait_for(run, S.EXECUTING)

    lab.client.cancel_run(run.run_id)

    assert lab.wait_until_over(run).state is S.CANCELLED
    assert not alive(lab.root_pid(run))


def test_a_time_limit_ends_the_run(lab):
    run = lab.submit(steps=10_000_000, rate=100, limits={"time_s": 1.0, "grace_s": 1.0})

    end = lab.wait_until_over(run)

    assert (end.state, end.reason.splitlines()[0]) == (S.FAULTED, "time limit: it ran longer than 1 s")


def test_a_hang_is_ended_with_the_python_stacks(lab):
    run = lab.submit(steps=1000, hang_at=50, heartbeat_s=0.1, limits={"heartbeat_s": 2.0, "grace_s": 0.5})

    end = lab.wait_until_over(run)

    assert end.state is S.FAULTED
    assert end.reason.startswith("hang: no heartbeat for")
    assert 'File "' in end.reason


def test_a_worker_that_spins_without_output_is_ended_with_the_python_stacks(lab):
    run = lab.submit(steps=1000, busy_hang_at=50, heartbeat_s=0.1, limits={"spin_s": 2.0, "grace_s": 0.5})

    end = lab.wait_until_over(run)

    assert end.state is S.FAULTED
    assert end.reason.startswith("hang: no heartbeat and no other output for")
    assert "_hang_busily" in end.reason


def test_a_worker_that_spins_and_prints_is_shown_and_continues(lab):
    limits = {"heartbeat_s": 2.0, "spin_s": 4.0, "grace_s": 0.5}
    run = lab.submit(steps=100, busy_hang_at=50, busy_hang_text_s=0.2, hang_s=9, heartbeat_s=0.1, limits=limits)

    shown = lab.wait_until_run(
        run, lambda now: now.life.startswith("no heartbeat"), "the missing heartbeat to be shown"
    )

    assert shown.state is S.EXECUTING
    assert lab.wait_until_over(run).state is S.TERMINATED
    assert b"....." in lab.text(run, "stderr")


def test_a_module_that_cannot_be_imported_is_the_reason(lab):
    end = lab.wait_until_over(lab.submit_worker({"module": "toy_worker.nothing_here"}))

    assert end.state is S.FAULTED
    assert "No module named toy_worker.nothing_here" in end.reason


def test_many_runs_at_once_all_end_with_every_event(lab):
    runs = [lab.submit(steps=200) for _ in range(8)]

    ends = [lab.wait_until_over(run) for run in runs]

    assert {end.state for end in ends} == {S.TERMINATED}
    assert all(end.summary.steps == 200 for end in ends)
