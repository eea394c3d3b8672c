"""kill -9 of every process, one after the other, during real runs."""

import os
import signal
import threading

from lab import alive, wait_until

from mosaic.catalog.workers import Catalog
from mosaic.model.machine import Machine
from mosaic.model.states import RunState
from mosaic.registry.registry import Registry
from mosaic.submit.record import record
from mosaic.submit.validate import SubmitContext, validate

S = RunState
EVENTS = 100_000


def stored_steps(lab, run):
    return [row[0] for row in lab.table(run, "SELECT step_index FROM steps ORDER BY seq")]


def test_three_kills_of_the_daemon_lose_and_duplicate_nothing(lab):
    run = lab.submit(steps=EVENTS, rate=20_000, metrics_every=0, episode_length=1_000_000)

    for part in (1, 2, 3):
        wanted = part * EVENTS // 5
        lab.wait_until_run(run, lambda now, wanted=wanted: now.summary.steps >= wanted, f"{wanted} steps")
        lab.kill_daemon()
        lab.restart_daemon()
    end = lab.wait_until_over(run)

    assert (end.state, end.reason, end.attempt) == (S.TERMINATED, "", 1)
    assert stored_steps(lab, run) == list(range(EVENTS))


def test_a_worker_does_not_notice_that_the_daemon_is_dead(lab):
    run = lab.submit(steps=2_000, rate=1_000)
    lab.wait_for(run, S.EXECUTING)

    lab.kill_daemon()
    wait_until(lambda: lab.rundir(run).exit.exists(), words="the worker to exit without a daemon")
    lab.restart_daemon()

    assert lab.wait_until_over(run).state is S.TERMINATED
    assert stored_steps(lab, run) == list(range(2_000))


def test_a_killed_tailer_is_not_noticed(lab):
    run = lab.submit(steps=1_000_000, rate=500)  # longer than three restarts of a tailer on any machine
    for _ in range(3):
        before = lab.client.get_run(run.run_id).summary.steps
        lab.wait_until_run(run, lambda now, before=before: now.summary.steps > before, "more steps")
        os.kill(lab.tailer_pid(run), signal.SIGKILL)
    lab.client.cancel_run(run.run_id)
    end = lab.wait_until_over(run)

    assert (end.state, end.attempt, end.telemetry) == (S.CANCELLED, 1, "")
    steps = stored_steps(lab, run)
    assert steps == list(range(len(steps)))


def test_a_killed_holder_is_a_fault_and_every_line_printed_before_is_stored(lab):
    run = lab.submit(steps=1_000_000, rate=5_000, fork_children=1)
    lab.wait_until_run(run, lambda now: now.summary.steps > 1_000, "1,000 steps")
    tree_root = lab.root_pid(run)

    os.kill(lab.holder_pid(run), signal.SIGKILL)
    end = lab.wait_until_over(run)

    assert end.state is S.FAULTED
    assert end.reason.startswith("holder died")
    assert not alive(tree_root)
    whole_lines = [line for line in lab.rundir(run).stdout.read_bytes().split(b"\n")[:-1] if b'"step_index"' in line]
    assert stored_steps(lab, run) == list(range(len(whole_lines)))


def test_holder_and_daemon_killed_together_still_end_in_a_fault(lab):
    run = lab.submit(steps=1_000_000, rate=2_000)
    lab.wait_until_run(run, lambda now: now.summary.steps > 500, "500 steps")
    tree_root, holder = lab.root_pid(run), lab.holder_pid(run)

    lab.kill_daemon()
    os.kill(holder, signal.SIGKILL)
    lab.restart_daemon()
    end = lab.wait_until_over(run)

    assert end.state is S.FAULTED
    assert end.reason.startswith("holder died")
    assert not alive(tree_root)


def test_a_killed_worker_is_a_fault_with_the_signal(lab):
    run = lab.submit(steps=1_000_000, rate=1_000)
    lab.wait_for(run, S.EXECUTING)
    (worker,) = children_of(lab.root_pid(run))

    os.kill(worker, signal.SIGKILL)
    end = lab.wait_until_over(run)

    assert (end.state, end.reason.splitlines()[0]) == (S.FAULTED, "killed by SIGKILL")


def test_a_cancel_request_outlives_the_daemon(lab):
    run = lab.submit(steps=1_000_000, rate=100, ignore_sigterm=True, limits={"grace_s": 2.0})
    lab.wait_for(run, S.EXECUTING)

    lab.client.cancel_run(run.run_id)
    lab.kill_daemon()
    lab.restart_daemon()

    assert lab.wait_until_over(run).state is S.CANCELLED


def test_a_burst_then_exit_is_stored_whole(lab):
    end = lab.wait_until_over(lab.submit(steps=EVENTS, rate=0, metrics_every=0, episode_length=1_000_000))

    assert (end.state, end.summary.steps) == (S.TERMINATED, EVENTS)


def test_a_subscriber_sees_every_seq_once_across_a_daemon_restart(lab):
    run = lab.submit(steps=8_000, rate=4_000)
    seen = []
    reader = threading.Thread(target=lambda: seen.extend(e.seq for e in lab.client.stream_events(run.run_id)))
    reader.start()
    lab.wait_until_run(run, lambda now: now.summary.steps > 1_000, "1,000 steps")

    lab.kill_daemon()
    other = type(lab)(lab.root.path)
    other.wait_until_over(run)
    reader.join(60)

    assert seen == list(range(1, other.client.get_run(run.run_id).summary.events + 1))
    other.client.close()


def test_a_clean_stop_and_start_breaks_no_stream(lab):
    run = lab.submit(steps=8_000, rate=4_000)
    seen = []
    other = type(lab)(lab.root.path)
    reader = threading.Thread(target=lambda: seen.extend(e.seq for e in other.client.stream_events(run.run_id)))
    reader.start()
    lab.wait_until_run(run, lambda now: now.summary.steps > 1_000, "1,000 steps")

    lab.stop_daemon()
    lab.restart_daemon()
    end = lab.wait_until_over(run)
    reader.join(60)
    other.client.close()

    assert seen == list(range(1, end.summary.events + 1))


def test_a_run_claimed_by_a_daemon_that_died_before_the_spawn_is_launched_once(lab):
    lab.stop_daemon()
    config = {"metadata": {"worker": {"module": "toy_worker.cli", "config": {"steps": 50}}}}
    context = SubmitContext(lab.root, Catalog(lab.root), lambda _: False, "", gpu_count=0, machine=Machine(1.0, 1024))
    run = validate(config, context)
    record(lab.root, run)
    registry = Registry.open(lab.root.registry)
    registry.add(run)
    registry.claim(run.run_id, [])
    registry.close()

    lab.restart_daemon()
    end = lab.wait_until_over(lab.client.get_run(run.run_id))

    assert (end.state, end.attempt, end.summary.steps) == (S.TERMINATED, 2, 50)


def children_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(child) for child in file.read().split()]


def test_a_daemon_reaps_the_tailers_it_started_for_dead_holders(lab):
    for _ in range(3):
        run = lab.submit(steps=1_000_000, rate=500)
        lab.wait_for(run, S.EXECUTING)
        os.kill(lab.holder_pid(run), signal.SIGKILL)
        lab.wait_until_over(run)
    lab.wait_until_over(lab.submit(steps=10))

    # A dead child stays a zombie until its parent waits for it; the newest one may still be waited for.
    assert sum(not alive(child) for child in children_of(lab.daemon_pid())) <= 2
