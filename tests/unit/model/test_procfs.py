"""What /proc says about real processes, also about those that are gone, zombies, or other users'."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import mosaic
from mosaic.model import procfs

NO_PROCESS = 2**22 + 1  # above the kernel's largest pid


@pytest.fixture
def sleeper():
    """A process that waits, in a folder and with a variable of its own."""
    env = {**os.environ, "MOSAIC_TEST_MARK": "procfs"}
    child = subprocess.Popen(["cat", "-u"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd="/usr", env=env)
    # Answered: Popen returns in the middle of the exec, when the command line is still empty.
    child.stdin.write(b"\n")
    child.stdin.flush()
    child.stdout.readline()
    yield child
    child.kill()
    child.communicate()


@pytest.fixture
def zombie():
    """A process that has ended and that its parent has not waited for."""
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    yield pid
    os.waitpid(pid, 0)


def test_a_process_is_described_by_its_stat(sleeper):
    found = procfs.stat(sleeper.pid)

    assert found is not None
    assert found.parent == os.getpid()
    assert not found.is_dead
    assert procfs.is_alive(sleeper.pid)


def test_a_zombie_is_not_alive_but_still_has_a_start(zombie):
    ticks = procfs.start_ticks(zombie)

    assert ticks is not None
    assert not procfs.is_alive(zombie)
    assert not procfs.is_same(zombie, ticks)
    assert zombie in procfs.descendants(os.getpid())
    assert procfs.command_line(zombie) == [b""]


def test_every_question_about_a_process_that_is_gone_has_an_answer():
    assert procfs.stat(NO_PROCESS) is None
    assert procfs.start_ticks(NO_PROCESS) is None
    assert not procfs.is_alive(NO_PROCESS)
    assert not procfs.is_same(NO_PROCESS, None)
    assert procfs.descendants(NO_PROCESS) == []
    assert not procfs.has_ancestor(NO_PROCESS, {1})
    assert procfs.tree_cpu_s(NO_PROCESS) == 0.0
    assert procfs.command_line(NO_PROCESS) == [b""]
    assert procfs.environment(NO_PROCESS) == [b""]
    assert procfs.working_folder(NO_PROCESS) == ""
    assert not procfs.catches(NO_PROCESS, signal.SIGUSR2)
    procfs.send(NO_PROCESS, signal.SIGKILL)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every process")
def test_another_users_process_has_a_stat_and_no_secrets():
    assert procfs.is_alive(1)
    assert procfs.environment(1) == [b""]
    assert procfs.working_folder(1) == ""


def test_a_number_with_another_start_is_another_process(sleeper):
    ticks = procfs.start_ticks(sleeper.pid)

    assert procfs.is_same(sleeper.pid, ticks)
    assert not procfs.is_same(sleeper.pid, ticks + 1)
    assert not procfs.is_same(sleeper.pid, None)


def test_a_name_with_parentheses_and_blanks_does_not_shift_the_fields():
    code = "import ctypes, sys; ctypes.CDLL(None).prctl(15, b'a) R (b 1', 0, 0, 0); print(flush=True); sys.stdin.read()"
    child = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    child.stdout.readline()

    found = procfs.stat(child.pid)

    assert found is not None
    assert found.parent == os.getpid()
    child.communicate()


def test_program_environment_and_folder_can_be_read(sleeper):
    assert procfs.command_line(sleeper.pid) == [b"cat", b"-u"]
    assert b"MOSAIC_TEST_MARK=procfs" in procfs.environment(sleeper.pid)
    ticks = procfs.start_ticks(sleeper.pid)
    assert procfs.started_with({"MOSAIC_TEST_MARK": "procfs"}) == [sleeper.pid]
    assert procfs.started_with({"MOSAIC_TEST_MARK": "procfs"}, ticks) == [sleeper.pid]
    assert procfs.started_with({"MOSAIC_TEST_MARK": "procfs"}, ticks + 1) == []
    assert procfs.started_with({"MOSAIC_TEST_MARK": "procfs", "MOSAIC_OTHER": ""}) == []
    assert procfs.started_with({}) == []
    assert procfs.working_folder(sleeper.pid) == "/usr"


def test_descendants_are_children_of_children_too():
    shell = subprocess.Popen(
        ["sh", "-c", "sleep 600 & echo started; wait"], stdout=subprocess.PIPE, start_new_session=True
    )
    shell.stdout.readline()

    (child,) = procfs.descendants(shell.pid)

    assert {shell.pid, child} <= set(procfs.descendants(os.getpid()))
    assert procfs.has_ancestor(child, {shell.pid})
    assert procfs.has_ancestor(shell.pid, {shell.pid})
    assert not procfs.has_ancestor(shell.pid, {child})
    os.killpg(shell.pid, signal.SIGKILL)
    shell.communicate()


def test_cpu_time_counts_this_process_and_children_it_has_waited_for():
    before = procfs.tree_cpu_s(os.getpid())
    subprocess.run([sys.executable, "-c", "import time\nwhile time.process_time() < 0.2: pass"], check=True)

    assert procfs.tree_cpu_s(os.getpid()) - before >= 0.15


def test_a_pidfd_leads_to_its_process_until_that_is_gone(sleeper):
    pidfd = os.pidfd_open(sleeper.pid)

    assert procfs.pid_of(pidfd) == sleeper.pid

    sleeper.kill()
    sleeper.wait()
    assert procfs.pid_of(pidfd) <= 0
    os.close(pidfd)


def test_a_process_without_a_handler_does_not_catch():
    old = signal.signal(signal.SIGUSR2, lambda *_: None)
    with_handler = procfs.catches(os.getpid(), signal.SIGUSR2)
    signal.signal(signal.SIGUSR2, signal.SIG_DFL)
    without = procfs.catches(os.getpid(), signal.SIGUSR2)
    signal.signal(signal.SIGUSR2, old)

    assert (with_handler, without) == (True, False)


def test_the_process_itself_was_started_after_boot_and_before_now():
    ticks = procfs.start_ticks(os.getpid())

    assert 0 < ticks / os.sysconf("SC_CLK_TCK") <= time.clock_gettime(time.CLOCK_BOOTTIME)
    assert len(procfs.boot_id()) == 36


def test_no_other_module_of_the_platform_reads_the_files_of_a_process():
    source = Path(mosaic.__file__).parent
    others = [path for path in source.rglob("*.py") if path.name != "procfs.py"]

    assert [path for path in others if re.search(r"/proc/\{|listdir\(\"/proc\"\)", path.read_text())] == []
