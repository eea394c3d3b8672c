"""The tailer as a child of the holder."""

import os
import signal

from hold_run import DEADLINE_S, HeldRun, alive, eventually

# Prints its pid and arguments, then waits for the file that lets it exit. Its first argument is the run's folder.
TAILER = """
import os, sys, time
os.chdir(sys.argv[2])
with open('tailers', 'a') as file: print(os.getpid(), *sys.argv[1:], file=file)
while not os.path.exists('drained'): time.sleep(0.01)
"""
WAIT = "import time; print('up', flush=True); time.sleep(600)"


def tailer(run: HeldRun) -> list[str]:
    return [*run.script(TAILER), str(run.dir.path)]


def tailers(run: HeldRun) -> list[list[str]]:
    path = run.dir.path / "tailers"
    return [line.split() for line in path.read_text().splitlines()] if path.exists() else []


def let_go(run: HeldRun) -> None:
    (run.dir.path / "drained").touch()


def test_the_tailer_gets_write_ends_of_the_spool(hold_run: HeldRun) -> None:
    code = """
import os, sys
fds = {sys.argv[i]: int(sys.argv[i + 1]) for i in (2, 4)}
for name, fd in fds.items(): os.write(fd, name.encode())
seen = os.listdir('/proc/self/fd')
print({int(fd) for fd in seen if os.path.exists('/proc/self/fd/' + fd)} == {0, 1, 2, *fds.values()})
print(os.environ)
"""
    hold_run.run(hold_run.script("pass"), tailer_argv=hold_run.script(code), tailer_env={"ITS": "own"})
    # exit.json may be there before the tailer has written.
    eventually(lambda: "'ITS'" in hold_run.dir.tailer_log.read_text(), "the tailer's output")

    assert hold_run.stdout == "--stdout-fd"
    assert hold_run.stderr == "--stderr-fd"
    log = hold_run.dir.tailer_log.read_text()
    assert log.startswith("True\n")
    assert "'ITS': 'own'" in log


def test_a_killed_tailer_is_restarted_and_the_worker_does_not_notice(hold_run: HeldRun) -> None:
    hold_run.launch(hold_run.script(WAIT), tailer_argv=tailer(hold_run))
    hold_run.start()
    eventually(lambda: len(tailers(hold_run)) == 1, "the first tailer")

    os.kill(int(tailers(hold_run)[0][0]), signal.SIGKILL)

    eventually(lambda: len(tailers(hold_run)) == 2, "the second tailer")
    assert tailers(hold_run)[0][1:] == tailers(hold_run)[1][1:]
    assert hold_run.stdout == "up\n"
    assert not hold_run.dir.exit.exists()
    let_go(hold_run)


def test_the_holder_stays_until_the_tailer_has_drained(hold_run: HeldRun) -> None:
    hold_run.launch(hold_run.script("pass"), tailer_argv=tailer(hold_run))
    holder = hold_run.start()

    hold_run.ended()
    eventually(lambda: tailers(hold_run), "the tailer")
    assert holder.poll() is None
    let_go(hold_run)

    assert holder.wait(DEADLINE_S) == 0


def test_starting_the_tailer_is_retried(hold_run: HeldRun) -> None:
    program = hold_run.dir.path / "tailer"
    hold_run.launch(hold_run.script("pass"), tailer_argv=[str(program)])
    holder = hold_run.start()
    eventually(lambda: "cannot start" in hold_run.log, "a line in the log")

    program.symlink_to("/bin/true")

    assert holder.wait(DEADLINE_S) == 0


def test_a_tailer_whose_log_cannot_be_opened_still_works(hold_run: HeldRun) -> None:
    hold_run.dir.tailer_log.mkdir()
    ran = hold_run.dir.path / "ran"

    end = hold_run.run(hold_run.script("pass"), tailer_argv=hold_run.script(f"open('{ran}', 'w')"))

    assert ran.exists()
    assert end["exit_code"] == 0


def test_a_cancel_does_not_touch_the_tailer(hold_run: HeldRun) -> None:
    env = {"MOSAIC_RUN_ID": hold_run.mark}
    hold_run.launch(hold_run.script(WAIT), tailer_argv=tailer(hold_run), tailer_env=env, hold="subreaper")
    holder = hold_run.start()
    hold_run.printed("up")
    eventually(lambda: tailers(hold_run), "the tailer")

    holder.terminate()

    hold_run.ended()
    assert alive(hold_run.mark) == [int(tailers(hold_run)[0][0])]
    let_go(hold_run)


def test_the_tailer_outlives_a_killed_holder(hold_run: HeldRun) -> None:
    hold_run.launch(hold_run.script(WAIT), tailer_argv=tailer(hold_run))
    holder = hold_run.start()
    eventually(lambda: tailers(hold_run), "the tailer")

    holder.kill()
    holder.wait()

    eventually(lambda: len(alive(hold_run.mark)) == 1, "the worker's end")
    let_go(hold_run)
