"""The real tailer process against a real gRPC server over real files."""

import json
import os
import shutil
import threading
import time
from pathlib import Path

import grpc
import pytest
from tail_store import LIMIT_S, RUN_ID, Bench, step_line, wait_until

from mosaic.model import procfs
from mosaic.model.durable import write_json
from mosaic.tail.spool_watch import LINGER_S
from mosaic.wire import mosaic_pb2 as pb


@pytest.fixture
def bench(tmp_path):
    bench = Bench(tmp_path)
    yield bench
    bench.close()


def test_lines_are_stored_while_the_worker_runs_and_the_end_is_reported(bench):
    bench.start_server()
    tailer = bench.start_tailer()
    bench.stdout.write(step_line(0) + b"hello\n" + step_line(1))
    bench.stderr.write(b"a warning\n")
    wait_until(lambda: len(bench.store.events) == 2 and bench.store.text(pb.STDERR), "two events and a warning")
    assert not any(request.exited for request in bench.store.requests)

    bench.stdout.write(b"bye\n")
    bench.finish(tailer)

    assert bench.store.steps() == [0, 1]
    assert bench.store.text() == b"hello\nbye\n"
    assert bench.store.text(pb.STDERR) == b"a warning\n"
    last = bench.store.requests[-1]
    assert (last.exited, last.drained, last.behind_bytes) == (True, True, 0)
    assert [request.drained for request in bench.store.requests].count(True) == 1


def test_a_holder_of_an_older_version_can_still_restart_its_tailer(bench):
    bench.start_server()
    bench.stdout.write(step_line(0))
    more, fds = bench.with_write_fds()

    bench.finish(bench.start_tailer(*more, pass_fds=fds, module="mosaic.proxy.tail"))  # the argv that it keeps

    assert bench.store.steps() == [0]
    assert bench.store.drained.is_set()


def test_a_holder_of_an_older_version_may_restart_its_tailer_before_the_new_daemon_runs(bench):
    bench.start_server()
    write_json(bench.run.path / "launch.json", {"run_id": RUN_ID, "attempt": 1, "nonce": "n"})
    shutil.rmtree(bench.root.control)
    bench.run.tailer_log = bench.run.logs / "tailer.log"
    bench.stdout.write(step_line(0))

    tailer = bench.start_tailer()
    wait_until(lambda: bench.store.steps() == [0], "the first line")
    write_json(bench.run.path / "exit.json", {"attempt": 1})

    assert tailer.wait(LIMIT_S) == 0
    assert bench.store.drained.is_set()


LIVING = {"attempt": 1, "secret": "s", "root_pid": os.getpid(), "root_start_ticks": procfs.start_ticks(os.getpid())}


@pytest.mark.parametrize(
    "plant",
    [
        lambda run: write_json(run.exit, {"attempt": 1}),
        lambda run: write_json(run.exit, {"attempt": 1, "secret": "guessed"}),
        lambda run: write_json(run.exit, {"attempt": 1, "secret": "\ud800"}),
        lambda run: write_json(run.exit, {"attempt": 2, "secret": "s"}),
        lambda run: [
            write_json(run.started, {**LIVING, "boot_id": procfs.boot_id()}),
            write_json(run.exit, {"attempt": 1, "secret": "s"}),
        ],
        lambda run: run.exit.write_text("garbage"),
        lambda run: run.exit.mkdir(),
        lambda run: os.mkfifo(run.exit),
        lambda run: run.exit.symlink_to("/dev/null"),
        lambda run: run.exit.symlink_to("exit.json"),
    ],
    ids=["forged", "wrong secret", "surrogate", "other attempt", "alive", "garbage", "folder", "FIFO", "link", "loop"],
)
def test_an_exit_json_that_proves_nothing_does_not_make_the_tailer_leave(bench, plant):
    write_json(bench.run.launch, {"version": 1, "run_id": RUN_ID, "attempt": 1, "nonce": "n", "secret": "s"})
    bench.start_server()
    plant(bench.run)
    bench.stdout.write(step_line(0) + b"part of a line")
    tailer = bench.start_tailer()
    wait_until(lambda: bench.store.steps() == [0], "the first line")

    bench.stdout.write(b" and its end\n" + step_line(1))
    wait_until(lambda: bench.store.steps() == [0, 1], "the second line")
    assert tailer.poll() is None
    assert not any(request.exited or request.drained for request in bench.store.requests)
    bench.run.started.unlink(missing_ok=True)
    bench.run.exit.rmdir() if bench.run.exit.is_dir() else bench.run.exit.unlink()
    write_json(bench.run.exit, {"attempt": 1, "secret": "s"})

    assert tailer.wait(LIMIT_S) == 0
    assert b"part of a line and its end\n" in bench.store.text()


def test_json_on_stderr_is_text(bench):
    bench.start_server()
    bench.stderr.write(step_line(0))

    bench.finish(bench.start_tailer())

    assert bench.store.events == []
    assert bench.store.text(pb.STDERR) == step_line(0)


def test_the_tailer_registers_with_the_nonce_and_attempt_of_launch_json(bench):
    bench.start_server()

    bench.finish(bench.start_tailer())

    request = bench.store.registrations[0]
    assert (request.run_id, request.attempt, request.nonce) == (RUN_ID, 1, "n")


def test_the_tailer_registers_the_capabilities_of_launch_json(bench):
    launch = {"run_id": RUN_ID, "attempt": 1, "nonce": "n", "capabilities": {"worker_type": "toy"}}
    write_json(bench.run.launch, launch)
    bench.start_server()

    bench.finish(bench.start_tailer())

    assert json.loads(bench.store.registrations[0].capabilities_json) == {"worker_type": "toy"}


def test_a_run_whose_capabilities_are_refused_registers_without_them(bench):
    launch = {"run_id": RUN_ID, "attempt": 1, "nonce": "n", "capabilities": {"max_agents": "spoilt by its worker"}}
    write_json(bench.run.launch, launch)
    bench.store.fault = lambda request, when: (
        grpc.StatusCode.INVALID_ARGUMENT if when == "register" and request.capabilities_json else None
    )
    bench.start_server()
    bench.stdout.write(step_line(0))

    bench.finish(bench.start_tailer())

    assert bench.store.steps() == [0]
    assert bench.store.registrations[-1].capabilities_json == ""


def test_a_run_that_was_over_before_the_tailer_started_is_drained(bench):
    bench.start_server()
    bench.stdout.write(step_line(0) + b'{"type": "step", "step_ind')
    bench.end_run()

    assert bench.start_tailer().wait(60) == 0

    assert bench.store.steps() == [0]
    assert bench.store.rejects[0].reason.startswith("cut")
    assert bench.store.next_offset[pb.STDOUT] == os.stat(bench.run.stdout).st_size


def test_half_a_line_waits_for_its_other_half(bench):
    bench.start_server()
    tailer = bench.start_tailer()
    whole = step_line(7)
    bench.stdout.write(b"first\n" + whole[:10])
    wait_until(lambda: bench.store.text() == b"first\n", "the line before the half")

    bench.stdout.write(whole[10:])
    wait_until(bench.store.steps, "the whole line")

    bench.finish(tailer)
    assert bench.store.steps() == [7]


def test_many_lines_a_second_share_their_requests(bench):
    bench.start_server()
    tailer = bench.start_tailer()
    wait_until(lambda: bench.store.registrations, "registration")
    began = time.monotonic()

    for index in range(300):
        bench.stdout.write(step_line(index))
        time.sleep(0.001)  # the rate is what this test is about
    wait_until(lambda: len(bench.store.steps()) == 300, "all events")

    # It lingers before every request, so the elapsed time bounds their number on a machine of any speed.
    assert len(bench.store.requests) <= (time.monotonic() - began) / LINGER_S + 1
    bench.finish(tailer)


def test_a_line_of_a_hundred_megabytes_is_a_reject_in_bounded_memory(bench):
    bench.start_server()
    tailer = bench.start_tailer()
    bench.stdout.write(step_line(0))
    wait_until(bench.store.steps, "the first event")
    before_kb = peak_kb(tailer.pid)

    piece = b"y" * (1 << 20)
    for _ in range(100):
        bench.stdout.write(piece)
    bench.stdout.write(b"\n" + step_line(1))
    wait_until(lambda: len(bench.store.steps()) == 2, "the event behind the long line")

    grown_kb = peak_kb(tailer.pid) - before_kb
    bench.finish(tailer)
    reject = bench.store.rejects[0]
    assert (reject.offset, reject.length) == (len(step_line(0)), (100 << 20) + 1)
    assert reject.head == b"y" * 4096
    assert reject.reason.startswith("too long")
    assert grown_kb < 40_000


def peak_kb(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0])


def test_a_line_just_under_the_limit_is_stored_whole(bench):
    bench.start_server()
    line = b"z" * (8 << 20) + b"\n"
    bench.stdout.write(line)

    bench.finish(bench.start_tailer())

    assert bench.store.text() == line


def test_invalid_utf8_and_other_garbage_stay_raw(bench):
    bench.start_server()
    garbage = b'\xff\xfe\x80\n{"type": "step", "step_index": 1, "x": "\xff"}\n\x1b[31mred\n'
    bench.stdout.write(garbage + step_line(3))

    bench.finish(bench.start_tailer())

    assert bench.store.text() == garbage
    assert bench.store.steps() == [3]


def test_a_shrunk_spool_is_a_named_gap_and_later_lines_are_stored(bench):
    bench.start_server()
    flags, fds = bench.with_write_fds()
    tailer = bench.start_tailer(*flags, pass_fds=fds)
    bench.stdout.write(b"".join(step_line(index) for index in range(100)))
    wait_until(lambda: len(bench.store.steps()) == 100, "the first hundred")
    end = bench.store.next_offset[pb.STDOUT]

    os.truncate(bench.run.stdout, 0)
    wait_until(lambda: bench.store.gaps, "the gap")
    bench.stdout.write(step_line(100))
    bench.finish(tailer)

    assert bench.store.steps() == list(range(101))
    assert [(gap.offset, gap.length) for gap in bench.store.gaps] == [(0, end)]
    assert "shrank" in bench.store.gaps[0].reason
    assert bench.store.text() == b""


def test_acknowledged_bytes_are_freed_and_all_lines_arrive(bench):
    bench.start_server()
    bench.store.durable = 1 << 40
    flags, fds = bench.with_write_fds()
    line = b"t" * 9_999 + b"\n"
    for _ in range(80):
        bench.stdout.write(line * 100)
    blocks = os.stat(bench.run.stdout).st_blocks

    tailer = bench.start_tailer(*flags, pass_fds=fds)
    bench.finish(tailer)

    assert bench.store.next_offset[pb.STDOUT] == 80_000_000
    assert bench.store.gaps == []
    if "cannot be freed" in bench.run.tailer_log.read_text():
        pytest.skip("this filesystem has no holes")
    assert os.stat(bench.run.stdout).st_blocks < blocks * 0.9


def test_a_run_that_was_deleted_ends_the_tailer(bench):
    bench.store.fault = lambda request, when: grpc.StatusCode.NOT_FOUND
    bench.start_server()

    assert bench.start_tailer().wait(60) == 0


def test_a_tailer_of_an_old_attempt_exits(bench):
    refused = threading.Event()

    def refuse(request, when):
        refused.set()
        return grpc.StatusCode.PERMISSION_DENIED

    bench.store.fault = refuse
    bench.start_server()
    tailer = bench.start_tailer()
    assert refused.wait(60)
    assert tailer.poll() is None

    write_json(bench.run.launch, {"version": 1, "run_id": RUN_ID, "attempt": 2, "nonce": "m"})

    assert tailer.wait(60) == 0


def test_only_one_tailer_works_at_a_time(bench):
    bench.start_server()
    first = bench.start_tailer()
    wait_until(lambda: bench.store.registrations, "the first registration")
    second = bench.start_tailer()
    wait_until(lambda: waits_for_a_lock(second.pid), "the second tailer at the lock")
    bench.stdout.write(step_line(0))
    wait_until(bench.store.steps, "an event")
    assert len(bench.store.registrations) == 1

    first.kill()
    wait_until(lambda: len(bench.store.registrations) == 2, "the second tailer's turn")
    bench.stdout.write(step_line(1))

    bench.finish(second)
    assert bench.store.steps() == [0, 1]


def waits_for_a_lock(pid: int) -> bool:
    waiting = [line.split() for line in Path("/proc/locks").read_text().splitlines() if "->" in line]
    return any(str(pid) in words for words in waiting)


def test_observations_are_kept_when_launch_json_requests_it(bench):
    write_json(bench.run.launch, {"run_id": RUN_ID, "attempt": 1, "nonce": "n", "store_observations": True})
    bench.start_server()
    bench.stdout.write(step_line(0, observation=[0] * 5000))

    bench.finish(bench.start_tailer())

    assert len(json.loads(bench.store.events[0].step.extra)["observation"]) == 5000


def test_requests_share_one_stream(bench):
    bench.start_server()
    tailer = bench.start_tailer()

    for index in range(5):
        bench.stdout.write(step_line(index))
        wait_until(lambda index=index: len(bench.store.events) > index, "an event")

    assert len(bench.store.requests) >= 5
    assert bench.store.streams == 1
    bench.finish(tailer)


def test_a_silent_run_keeps_no_stream_open(bench):
    bench.start_server()
    tailer = bench.start_tailer()
    bench.stdout.write(step_line(0))
    wait_until(bench.store.steps, "the first event")

    wait_until(lambda: bench.store.open_streams == 0, "the end of the stream")

    bench.stdout.write(step_line(1))
    bench.finish(tailer)
    assert bench.store.steps() == [0, 1]
    assert bench.store.streams == 2


def test_a_silent_run_does_not_wake_its_tailer(bench):
    bench.start_server()
    tailer = bench.start_tailer()
    bench.stdout.write(step_line(0))
    wait_until(bench.store.steps, "the first event")

    wait_until(lambda: is_at_rest(tailer.pid), "a second in which the tailer did not run", limit_s=15)

    bench.finish(tailer)  # exit.json alone wakes it


def is_at_rest(pid: int) -> bool:
    before = times_waited(pid)
    threading.Event().wait(1.0)
    return times_waited(pid) == before


def times_waited(pid: int) -> int:
    """How often the process's main thread went to sleep."""
    return int(Path(f"/proc/{pid}/status").read_text().partition("\nvoluntary_ctxt_switches:")[2].split()[0])
