"""The holder as a process: its promises about starts, ends and the spool."""

import json
import os
import platform
import re
import resource
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hold_run import DEADLINE_S, HeldRun, alive, eventually

from mosaic.hold import kernel
from mosaic.model import procfs

WAIT = "import sys, time; print('up', flush=True); time.sleep(600)"
DEAF = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); " + WAIT

on_x86 = pytest.mark.skipif(platform.machine() != "x86_64", reason="system calls have other numbers here")
READ, POLL, FOREVER = 0, 7, 0xFFFFFFFF
NAMESPACE = "pid namespace, control files hidden"


def system_call(pid: int) -> list[int]:
    """The system call in which the process sleeps and its arguments, 32 bits of each; [-1] when it runs or is gone."""
    try:
        words = Path(f"/proc/{pid}/syscall").read_text().split()
    except OSError:
        return [-1]
    return [int(word, 0) & 0xFFFFFFFF for word in words[:4]] if words[0].isdigit() else [-1]


# Its grandchild leaves the session, loses its parent, has no environment, and ignores SIGTERM.
ESCAPE = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        code = "import os, signal, time; signal.signal(15, signal.SIG_IGN); os.write(1, b'escaped'); time.sleep(600)"
        os.execve(sys.executable, [sys.executable, "-I", "-S", "-c", code, sys.argv[1]], {})
    os._exit(0)
os.wait()
"""


# The worker exits


def test_the_exit_code_is_recorded(hold_run_of_any_user: HeldRun) -> None:
    end = hold_run_of_any_user.run(hold_run_of_any_user.script("print('bye'); raise SystemExit(3)"))

    assert (end["exit_code"], end["signal"], end["ended_by"]) == (3, None, None)
    assert (end["attempt"], end["unkillable"], end["stdout_bytes"]) == (1, False, len("bye\n"))
    assert hold_run_of_any_user.stdout == "bye\n"


def test_a_signal_is_recorded_by_name(hold_run: HeldRun) -> None:
    end = hold_run.run(hold_run.script("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)"))

    assert (end["exit_code"], end["signal"], end["ended_by"]) == (None, "SIGSEGV", None)


def test_cpu_time_and_memory_of_the_worker_are_recorded(hold_run: HeldRun) -> None:
    code = "import time; block = bytearray(80 << 20)\nwhile time.process_time() < 0.2: pass"

    end = hold_run.run(hold_run.script(code))

    assert end["cpu_s"] >= 0.2
    assert end["max_rss_kb"] >= 80 << 10


@pytest.mark.parametrize(
    ("launch", "error"),
    [
        ({"argv": ["/no/such/program"]}, "cannot start /no/such/program: No such file or directory"),
        ({"argv": ["/etc/passwd"]}, "cannot start /etc/passwd: Permission denied"),
        ({"argv": ["/bin/true"], "cwd": "/no/such/folder"}, "cannot enter the folder /no/such/folder"),
    ],
)
def test_a_program_that_cannot_be_started_is_a_spawn_error(
    hold_run: HeldRun, launch: dict[str, Any], error: str
) -> None:
    end = hold_run.run(**launch)

    assert end["ended_by"] == "spawn error"
    assert error in end["error"]
    assert (end["exit_code"], end["signal"]) == (None, None)


# What the worker inherits


def test_started_json_exists_before_the_first_byte(hold_run_of_any_user: HeldRun) -> None:
    run = hold_run_of_any_user

    run.run(run.script(f"print(open({str(run.dir.started)!r}).read())"), hold="subreaper")

    assert f'"holder_pid": {run.processes[0].pid}' in run.stdout


@on_x86
def test_no_worker_starts_before_its_start_is_recorded(hold_run: HeldRun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOSAIC_FAILPOINTS", "hold.tree:stop")
    hold_run.launch(hold_run.script("print('ran')"))
    holder = hold_run.start()

    # The holder has stopped just before it writes started.json; the root process must wait for it.
    def waiting() -> list[int]:
        return [pid for pid in procfs.descendants(holder.pid) if system_call(pid)[0] == READ]

    root = eventually(waiting, "the root process in read()")[0]
    assert procfs.descendants(root) == []
    assert not hold_run.dir.started.exists()
    os.kill(holder.pid, signal.SIGCONT)

    assert holder.wait(DEADLINE_S) == 0
    assert hold_run.dir.started.exists()
    assert hold_run.stdout == "ran\n"


def test_a_worker_starts_below_a_make_that_ignores_signals_that_cannot_be_set(
    hold_run: HeldRun, tmp_path: Path
) -> None:
    """GNU make passes signals 32 and 33 on as ignored; resetting them is EINVAL."""
    hold_run.launch(hold_run.script("print('ran')"))
    rules = tmp_path / "rules.mk"
    rules.write_text(f"go:\n\t@{hold_run.python} -I -S {hold_run.hold} --run-dir {hold_run.dir.path} --attempt 1\n")

    subprocess.run(["make", "-f", rules, "go"], check=True, timeout=DEADLINE_S)

    assert hold_run.exit["exit_code"] == 0


def test_the_worker_sees_only_its_own_descriptors_signals_and_environment(hold_run: HeldRun) -> None:
    code = """
import json, os
seen = os.listdir('/proc/self/fd')
status = dict(line.split(':', 1) for line in open('/proc/self/status'))
print(json.dumps({
    'fds': sorted(fd for fd in seen if os.path.exists('/proc/self/fd/' + fd)),
    'stdin': os.readlink('/proc/self/fd/0'),
    # Signals 32 and 33 belong to the C library; make leaves them ignored, and they cannot be set.
    'deaf to': (int(status['SigIgn'], 16) | int(status['SigBlk'], 16)) & ~(3 << 31),
    'environment': sorted(set(os.environ) - {'LC_CTYPE'}),
    'folder': os.getcwd(),
    'leads a session': os.getsid(0) == os.getpid(),
    'finds itself in /proc': os.readlink('/proc/self') == str(os.getpid()),
}))
"""

    hold_run.run(hold_run.script(code), env={"ONLY": "this"})

    assert json.loads(hold_run.stdout) == {
        "fds": ["0", "1", "2"],
        "stdin": "/dev/null",
        # Python itself ignores these two, in every process.
        "deaf to": 1 << signal.SIGPIPE - 1 | 1 << signal.SIGXFSZ - 1,
        "environment": ["ONLY"],
        "folder": str(hold_run.dir.path),
        "leads a session": True,
        "finds itself in /proc": True,
    }


def test_writing_to_dev_stdout_does_not_truncate_the_spool(hold_run_of_any_user: HeldRun) -> None:
    code = """
import os
print('first', flush=True)
try:
    os.open('/dev/stdout', os.O_WRONLY | os.O_TRUNC)
    print('opened')
except PermissionError:
    print('refused')
"""
    hold_run_of_any_user.run(hold_run_of_any_user.script(code))

    assert hold_run_of_any_user.stdout == "first\nrefused\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has rights to lose")
def test_root_without_capabilities_gets_a_pipe_and_a_subreaper(hold_run: HeldRun) -> None:
    def lose_rights() -> None:
        for setpcap_sys_admin_setfcap in (8, 21, 31):
            kernel._prctl(kernel._PR_CAPBSET_DROP, setpcap_sys_admin_setfcap, "PR_CAPBSET_DROP")

    hold_run.launch(["/bin/sh", "-c", "echo one; echo two > /dev/stdout"])
    holder = hold_run.start(before_exec=lose_rights)

    assert holder.wait(DEADLINE_S) == 0
    assert hold_run.started["held_by"] == "subreaper (best effort), control files not hidden"
    assert "Cannot hold the tree by a pid namespace" in hold_run.log
    assert hold_run.stdout == "one\ntwo\n"


def test_a_shell_script_writes_to_dev_stdout_through_a_pipe(hold_run_of_any_user: HeldRun) -> None:
    argv = ["/bin/sh", "-c", "echo one; echo two > /dev/stdout; echo three >&2; exit 4"]

    end = hold_run_of_any_user.run(argv, pipe=True)

    assert (end["exit_code"], end["stdout_bytes"]) == (4, 8)
    assert hold_run_of_any_user.stdout == "one\ntwo\n"
    assert hold_run_of_any_user.stderr == "three\n"


def test_a_pipe_passes_megabytes_to_the_last_byte(hold_run: HeldRun) -> None:
    end = hold_run.run(hold_run.script("print('x' * (40 << 20))"), pipe=True)

    assert end["stdout_bytes"] == (40 << 20) + 1


def test_a_second_attempt_appends_to_the_spool(hold_run_of_any_user: HeldRun) -> None:
    run = hold_run_of_any_user
    run.run(run.script("print('one')"))

    run.launch(run.script("print('two')"), attempt=2)
    assert run.start(attempt=2).wait(DEADLINE_S) == 0

    assert run.stdout == "one\ntwo\n"
    assert run.exit["attempt"] == 2


# The run is ended


def test_cancel_lets_a_worker_save_and_exit(hold_run: HeldRun) -> None:
    code = "import signal, sys; signal.signal(signal.SIGTERM, lambda *_: (print('saved'), sys.exit(0))); " + WAIT
    hold_run.launch(hold_run.script(code))
    holder = hold_run.start()
    hold_run.printed("up")

    holder.terminate()
    holder.terminate()

    end = hold_run.ended()
    assert (end["ended_by"], end["exit_code"]) == ("cancel", 0)
    assert "saved" in hold_run.stdout


@pytest.mark.parametrize("hold", ["auto", "subreaper"])
def test_cancel_kills_a_worker_that_ignores_sigterm(hold_run_of_any_user: HeldRun, hold: str) -> None:
    run = hold_run_of_any_user
    run.launch(run.script(DEAF), grace_s=0.1, hold=hold)
    holder = run.start()
    run.printed("up")

    holder.terminate()

    assert (run.ended()["ended_by"], run.exit["signal"]) == ("cancel", "SIGKILL")
    assert holder.wait(DEADLINE_S) == 0


def test_a_stopped_worker_receives_the_cancel(hold_run: HeldRun) -> None:
    hold_run.launch(hold_run.script("import os, signal; print('up', flush=True); os.kill(os.getpid(), signal.SIGSTOP)"))
    holder = hold_run.start()
    hold_run.printed("up")

    holder.terminate()

    assert hold_run.ended()["signal"] == "SIGTERM"


def test_after_a_cancel_before_the_start_no_worker_starts(hold_run: HeldRun) -> None:
    def cancelled_already() -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
        os.kill(os.getpid(), signal.SIGTERM)

    hold_run.launch(hold_run.script("print('ran')"))
    holder = hold_run.start(before_exec=cancelled_already)

    assert holder.wait(DEADLINE_S) == 0
    assert (hold_run.exit["ended_by"], hold_run.exit["exit_code"], hold_run.stdout) == ("cancel", None, "")


@pytest.mark.parametrize("limit_s", [1e9, float("inf")])
def test_a_very_long_time_limit_is_accepted(hold_run: HeldRun, limit_s: float) -> None:
    end = hold_run.run(hold_run.script("pass"), time_limit_s=limit_s)

    assert (end["ended_by"], end["exit_code"]) == (None, 0)


def test_the_time_limit_ends_a_run(hold_run: HeldRun) -> None:
    end = hold_run.run(hold_run.script(WAIT), time_limit_s=0.2)

    assert (end["ended_by"], end["signal"]) == ("time limit", "SIGTERM")


@pytest.mark.parametrize("hold", ["auto", "subreaper"])
def test_a_hung_run_is_ended_after_its_stacks_are_printed(hold_run: HeldRun, hold: str) -> None:
    code = (
        f"import faulthandler, signal; faulthandler.register(signal.SIGUSR2)\ndef stuck_here():\n {WAIT}\nstuck_here()"
    )
    hold_run.launch(hold_run.script(code), hold=hold)
    holder = hold_run.start()
    hold_run.printed("up")

    holder.send_signal(signal.SIGUSR1)

    assert hold_run.ended()["ended_by"] == "hang"
    assert "in stuck_here" in hold_run.stderr


def test_the_autopsy_skips_a_process_that_the_signal_would_kill(hold_run: HeldRun) -> None:
    hold_run.launch(hold_run.script(WAIT))
    holder = hold_run.start()
    hold_run.printed("up")

    holder.send_signal(signal.SIGUSR1)

    assert hold_run.ended()["signal"] == "SIGTERM"  # from the steps after the autopsy, not SIGUSR2


# Nothing survives the end


@pytest.mark.parametrize("hold", ["auto", "subreaper"])
def test_no_process_is_alive_when_exit_json_exists(hold_run_of_any_user: HeldRun, hold: str) -> None:
    run = hold_run_of_any_user
    run.launch(
        run.script(ESCAPE + "\nwhile 'escaped' not in open('logs/worker.stdout.log').read(): pass"),
        hold=hold,
        grace_s=0.1,
    )
    run.start()

    run.ended()

    assert not alive(run.mark)
    assert run.exit["exit_code"] == 0
    assert "escaped" in run.stdout


@pytest.mark.parametrize("hold", ["auto", "subreaper"])
def test_kill_9_of_the_holder_kills_the_tree(hold_run_of_any_user: HeldRun, hold: str) -> None:
    run = hold_run_of_any_user
    run.launch(run.script(ESCAPE + DEAF), hold=hold)
    holder = run.start()
    run.printed("escaped")
    run.printed("up")
    assert len(alive(run.mark)) == 2

    holder.kill()

    eventually(lambda: not alive(run.mark), "the end of the tree")
    assert not run.dir.exit.exists()


@pytest.mark.parametrize("hold", ["auto", "subreaper"])
def test_processes_that_a_worker_leaves_behind_first_get_sigterm(hold_run: HeldRun, hold: str) -> None:
    code = """
import os, signal, sys, time
read, write = os.pipe()
if os.fork() == 0:
    signal.signal(signal.SIGTERM, lambda *_: (print('saved'), sys.exit()))
    os.write(write, b'.')
    time.sleep(600)
os.read(read, 1)
"""
    hold_run.run(hold_run.script(code), hold=hold)

    assert hold_run.stdout == "saved\n"


def test_the_kernel_ends_the_tree_with_the_holder_even_if_the_root_process_is_stopped(hold_run: HeldRun) -> None:
    hold_run.launch(hold_run.script(DEAF))
    holder = hold_run.start()
    hold_run.printed("up")
    if hold_run.started["held_by"] != NAMESPACE:
        pytest.skip("pid namespaces are refused here")

    os.kill(hold_run.started["root_pid"], signal.SIGSTOP)
    holder.kill()

    eventually(lambda: not alive(hold_run.mark), "the end of the tree")


@pytest.mark.slow  # the holder gives its root process five seconds to react
@pytest.mark.parametrize("hold", ["auto", "subreaper"])
def test_the_tree_is_killed_from_outside_when_its_root_process_does_not_react(hold_run: HeldRun, hold: str) -> None:
    hold_run.launch(hold_run.script(DEAF), hold=hold, grace_s=0)
    holder = hold_run.start()
    hold_run.printed("up")

    os.kill(hold_run.started["root_pid"], signal.SIGSTOP)
    holder.terminate()

    assert hold_run.ended()["signal"] == "SIGKILL"
    assert not alive(hold_run.mark)


@pytest.mark.parametrize("hold", ["auto", "subreaper"])
def test_kill_9_of_the_root_process_ends_the_run(hold_run: HeldRun, hold: str) -> None:
    hold_run.launch(hold_run.script(DEAF), hold=hold, env={})  # no variable that identifies the worker
    hold_run.start()
    hold_run.printed("up")

    os.kill(hold_run.started["root_pid"], signal.SIGKILL)

    assert hold_run.ended()["signal"] == "SIGKILL"
    assert not alive(hold_run.mark)


def test_a_stray_process_of_the_run_is_killed_and_no_other(hold_run: HeldRun) -> None:
    marks = {"MOSAIC_RUN_ID": hold_run.mark, "MOSAIC_RUN_DIR": str(hold_run.dir.path)}
    older = subprocess.Popen(["sleep", "600"], env={**os.environ, **marks})
    hold_run.launch(hold_run.script(WAIT), hold="subreaper")
    hold_run.start()
    hold_run.printed("up")
    stray = subprocess.Popen(["sleep", "600"], env={**os.environ, **marks})
    others = {
        "with the run's id only": {"MOSAIC_RUN_ID": hold_run.mark},
        "of a copied root": {**marks, "MOSAIC_RUN_DIR": f"/copy{hold_run.dir.path}"},
    }
    spared = {words: subprocess.Popen(["sleep", "600"], env={**os.environ, **env}) for words, env in others.items()}
    spared["from before the run"] = older

    hold_run.processes[0].terminate()

    hold_run.ended()
    assert stray.wait(DEADLINE_S) == -signal.SIGKILL
    killed = [words for words, process in spared.items() if process.poll() is not None]
    for process in spared.values():
        process.kill()
        process.wait()
    assert killed == []


def test_orphans_are_reaped_while_the_run_is_live(hold_run: HeldRun) -> None:
    code = """
import os
read, write = os.pipe()
if os.fork() == 0:
    orphan = os.fork()
    os.write(write, b'%d' % orphan) if orphan else None
    os._exit(0)
os.wait()
orphan = os.read(read, 20).decode()
while os.path.exists('/proc/' + orphan): pass
print('reaped')
"""
    hold_run.run(hold_run.script(code))

    assert hold_run.stdout == "reaped\n"


def test_a_tree_that_cannot_be_killed_is_marked_unkillable(hold_run: HeldRun) -> None:
    hold_run.launch(hold_run.script(DEAF), grace_s=0, unkillable_s=0)  # SIGKILL gets no time to work
    holder = hold_run.start()
    hold_run.printed("up")

    holder.terminate()

    assert hold_run.ended()["unkillable"] is True
    assert hold_run.exit["proof"].startswith("none")


def test_started_json_records_how_the_tree_is_held(hold_run: HeldRun) -> None:
    hold_run.launch(hold_run.script(WAIT), hold="subreaper")
    hold_run.start()
    hold_run.printed("up")

    started = hold_run.started
    assert started["held_by"] == "subreaper (best effort), control files not hidden"
    ticks = Path(f"/proc/{started['root_pid']}/stat").read_text().rpartition(")")[2].split()[19]
    assert started["root_start_ticks"] == int(ticks)
    assert started["boot_id"] == Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def test_root_gets_a_pid_namespace(hold_run: HeldRun) -> None:
    if subprocess.run(["unshare", "-pfm", "--mount-proc", "true"], capture_output=True).returncode != 0:
        pytest.skip("pid namespaces are refused here")

    hold_run.run(hold_run.script("import os; print(os.getppid())"))

    assert hold_run.started["held_by"] == NAMESPACE
    assert hold_run.stdout == "1\n"


# One holder, one worker


def test_a_holder_of_another_attempt_exits(hold_run: HeldRun) -> None:
    hold_run.launch(hold_run.script("print('ran')"), attempt=2)

    assert hold_run.start(attempt=1).wait(DEADLINE_S) == 0

    assert not hold_run.dir.started.exists()
    assert not hold_run.dir.exit.exists()
    assert "attempt 2" in hold_run.log


def test_a_second_holder_exits_and_the_first_continues(hold_run: HeldRun) -> None:
    hold_run.launch(hold_run.script(WAIT))
    first = hold_run.start()
    hold_run.printed("up")

    second = hold_run.start()

    assert second.wait(DEADLINE_S) == 0
    assert first.poll() is None
    assert hold_run.dir.owner_lock.read_text().strip() == str(first.pid)
    assert hold_run.stdout == "up\n"


@pytest.mark.parametrize("left", ["started.json", "exit.json"])
def test_an_attempt_never_gets_a_second_worker(hold_run: HeldRun, left: str) -> None:
    hold_run.run(hold_run.script("print('ran')"))
    for path in {hold_run.dir.started, hold_run.dir.exit} - {hold_run.dir.control / left}:
        path.unlink()

    assert hold_run.start().wait(DEADLINE_S) == 0

    assert hold_run.stdout == "ran\n"


@pytest.mark.parametrize("text", ["", "{", "[1]", "{}", '{"run_id": "r", "attempt": 1, "argv": [], "cwd": "/"}'])
def test_an_invalid_launch_is_refused_with_code_3(hold_run: HeldRun, text: str) -> None:
    hold_run.dir.launch.write_text(text)

    assert hold_run.start().wait(DEADLINE_S) == 3

    assert "launch.json" in hold_run.log
    assert not hold_run.dir.exit.exists()


# Failures


def test_a_holder_that_was_stopped_continues_where_it_was(hold_run: HeldRun) -> None:
    hold_run.launch(
        hold_run.script("import os, time\nprint('up', flush=True)\nwhile not os.path.exists('go'): time.sleep(0.01)")
    )
    holder = hold_run.start()
    hold_run.printed("up")

    holder.send_signal(signal.SIGSTOP)
    (hold_run.dir.path / "go").touch()
    eventually(lambda: not alive(hold_run.mark), "the worker's end")
    holder.send_signal(signal.SIGCONT)

    assert hold_run.ended()["exit_code"] == 0


def test_writing_exit_json_is_retried_until_it_succeeds(hold_run: HeldRun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOSAIC_FAILPOINTS", "exit.proven:full")
    hold_run.launch(hold_run.script(WAIT))
    holder = hold_run.start()
    hold_run.printed("up")

    holder.terminate()

    assert hold_run.ended()["ended_by"] == "cancel"
    assert "exit.json cannot be written" in hold_run.log


@pytest.mark.parametrize("target", ["/dev/null", "elsewhere"])
def test_a_holder_writes_nothing_through_a_link_in_place_of_the_control_folder(hold_run: HeldRun, target: str) -> None:
    hold_run.launch(hold_run.script(WAIT))
    holder = hold_run.start()
    hold_run.printed("up")
    control, elsewhere = hold_run.dir.control, hold_run.dir.path.parent / "elsewhere"
    elsewhere.mkdir()
    control.rename(control.with_name("moved"))
    control.symlink_to(elsewhere if target == "elsewhere" else target)

    holder.terminate()

    assert holder.wait(20) == 0
    assert list(elsewhere.iterdir()) == []


def test_a_full_disk_costs_the_holder_less_and_less_and_frees_some_of_the_platforms_reserve(
    hold_run: HeldRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MOSAIC_FAILPOINTS", "exit.proven:full:3")
    reserve = hold_run.dir.control.parent.parent / "reserve"
    reserve.mkdir()
    for number in range(5):
        (reserve / str(number)).write_bytes(bytes(1024))
    hold_run.launch(hold_run.script("pass"))

    hold_run.start()

    hold_run.ended()
    pauses = re.findall(r"exit\.json cannot be written .* again in (\d+) s", hold_run.log)
    assert pauses == ["1", "2", "4"]
    assert len(list(reserve.iterdir())) == 2


def test_exit_json_waits_until_all_output_is_in_the_spool(hold_run: HeldRun) -> None:
    unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)

    def fill_the_disk() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, unlimited[1]))

    hold_run.launch(hold_run.script("print('x' * 99_999)"), pipe=True)
    holder = hold_run.start(before_exec=fill_the_disk)
    eventually(lambda: len(hold_run.stdout) == 4096, "a full disk")
    eventually(lambda: not alive(hold_run.mark), "the worker's end")
    assert not hold_run.dir.exit.exists()

    resource.prlimit(holder.pid, resource.RLIMIT_FSIZE, unlimited)

    assert hold_run.ended()["stdout_bytes"] == 100_000


@pytest.mark.parametrize("allowed", [0, 1, 2])
def test_a_run_without_a_free_process_is_left_for_later(hold_run_of_any_user: HeldRun, allowed: int) -> None:
    """The holder needs three: whichever of them is refused, nothing runs and nothing is said to have ended."""
    run = hold_run_of_any_user
    if os.geteuid() == 0 and run.uid is None:
        pytest.skip("root has no limit on processes")

    unlimited = resource.getrlimit(resource.RLIMIT_NPROC)

    def allow_few() -> None:
        resource.setrlimit(resource.RLIMIT_NPROC, (allowed, unlimited[1]))

    run.launch(run.script("print('ran')"))
    holder = run.start(before_exec=allow_few)
    eventually(lambda: holder.poll() is not None or "trying again" in run.log, "an exit, or another try")
    if holder.poll() is None:
        # The tree stands already, and the process inside waits for its worker.
        assert not run.dir.exit.exists()
        for pid in (holder.pid, run.started["root_pid"]):
            resource.prlimit(pid, resource.RLIMIT_NPROC, unlimited)
        assert run.ended()["exit_code"] == 0
        return

    assert holder.returncode == 75, run.log
    assert not run.dir.exit.exists()
    assert not run.dir.started.exists()
    assert run.stdout == ""


def test_a_spool_that_cannot_be_opened_is_a_spawn_error(hold_run: HeldRun) -> None:
    hold_run.dir.stdout.mkdir()

    end = hold_run.run(hold_run.script("print('ran')"))

    assert end["ended_by"] == "spawn error"
    assert "directory" in end["error"]


@pytest.mark.slow  # the reserve is checked every five seconds
def test_the_reserve_stays_ahead_of_a_file_that_grows(hold_run: HeldRun) -> None:
    hold_run.launch(hold_run.script(f"print('x' * (12 << 20), flush=True); {WAIT}"))
    hold_run.start()
    hold_run.printed("up")

    def bytes_ahead() -> int:
        status = hold_run.dir.stdout.stat()
        return status.st_blocks * 512 - status.st_size

    eventually(lambda: bytes_ahead() > 4 << 20, "a new reserve")


@on_x86
@pytest.mark.parametrize("hold", ["auto", "subreaper"])
def test_a_silent_run_sleeps_without_a_timeout(hold_run: HeldRun, hold: str) -> None:
    hold_run.launch(hold_run.script("import time; time.sleep(600)"), hold=hold)
    holder = hold_run.start()
    eventually(hold_run.dir.started.exists, "started.json")

    for pid in (holder.pid, hold_run.started["root_pid"]):
        eventually(lambda pid=pid: system_call(pid)[::3] == [POLL, FOREVER], f"{pid} in poll() without a timeout")
