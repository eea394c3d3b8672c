"""The holder passes commands.jsonl to the worker's stdin, line by line."""

import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hold_run import HeldRun, eventually
from test_hold import FOREVER, POLL, on_x86, system_call

from mosaic.hold import kernel
from mosaic.hold.commands import LOOK_AGAIN_S, CommandFeed

ECHO = "import sys; [print(line, end='', flush=True) for line in sys.stdin]"
DEAF = "import time; print('up', flush=True); time.sleep(600)"


def line(seq: int, **more: Any) -> str:
    return json.dumps({"seq": seq, "id": f"id-{seq}", "cmd": "step", **more}) + "\n"


def append(run: HeldRun, text: str) -> None:
    with open(run.dir.commands, "a") as file:
        file.write(text)


@pytest.fixture
def taking_commands(hold_run: HeldRun) -> HeldRun:
    hold_run.dir.commands.touch()
    return hold_run


def start(run: HeldRun, code: str, **more: Any) -> Any:
    run.launch(run.script(code), commands=True, **more)
    return run.start()


@pytest.mark.parametrize("hold", ["auto", "subreaper"])
def test_commands_from_before_and_after_the_start_arrive_once_and_in_order(
    hold_run_of_any_user: HeldRun, hold: str
) -> None:
    run = hold_run_of_any_user
    run.dir.commands.touch()
    if run.uid is not None:
        os.chown(run.dir.commands, run.uid, run.uid)
    append(run, line(1) + line(2))
    start(run, ECHO, hold=hold)
    run.printed(line(2))

    append(run, line(3))
    run.printed(line(3))
    append(run, line(4) + line(5))
    run.printed(line(5))

    assert run.stdout == "".join(map(line, range(1, 6)))


def test_a_line_without_its_end_is_not_passed_on_until_it_is_complete(taking_commands: HeldRun) -> None:
    run = taking_commands
    start(run, ECHO)

    append(run, line(1)[:-9])
    append(run, line(1)[-9:])
    run.printed(line(1))
    # What a daemon does that finds half a line of its predecessor.
    size = run.dir.commands.stat().st_size
    append(run, line(2)[:12])
    os.truncate(run.dir.commands, size)
    append(run, line(2, lanes=[0]))
    run.printed(line(2, lanes=[0]))

    assert run.stdout == line(1) + line(2, lanes=[0])


def test_megabytes_of_commands_pass_through_a_small_pipe(taking_commands: HeldRun) -> None:
    run = taking_commands
    lines = [line(seq, text="x" * (seq % 3000)) for seq in range(1, 5001)]
    append(run, "".join(lines[:3000]))
    start(run, ECHO)

    append(run, "".join(lines[3000:]))
    run.printed(lines[-1])

    assert run.stdout == "".join(lines)


def test_a_worker_that_reads_nothing_delays_neither_the_holder_nor_its_own_end(taking_commands: HeldRun) -> None:
    run = taking_commands
    append(run, "".join(line(seq, text="x" * 1000) for seq in range(1, 5001)))
    holder = start(run, DEAF, grace_s=1.0)
    run.printed("up")

    append(run, line(5001))
    status = Path(f"/proc/{holder.pid}/status").read_text()
    holder.terminate()

    assert run.ended()["ended_by"] == "cancel"
    assert run.exit["commands_unread"] == 5001
    assert int(status.split("VmRSS:")[1].split()[0]) < 40_000, "the commands must not be kept in memory"


def test_exit_json_counts_the_commands_that_the_worker_did_not_read(taking_commands: HeldRun) -> None:
    run = taking_commands
    append(run, line(1) + line(2) + line(3))

    # Unbuffered: exactly one line leaves the pipe.
    end = run.run(run.script("import os\nwhile os.read(0, 1) != b'\\n': pass"), commands=True)

    assert (end["exit_code"], end["commands_unread"]) == (0, 2)


def test_a_run_without_commands_has_no_pipe_and_no_count(hold_run: HeldRun) -> None:
    append(hold_run, line(1))

    end = hold_run.run(hold_run.script("import os, sys; print(os.readlink('/proc/self/fd/0'), sys.stdin.read())"))

    assert (hold_run.stdout, end["commands_unread"]) == ("/dev/null \n", None)


def test_a_worker_that_closes_its_stdin_continues(taking_commands: HeldRun) -> None:
    run = taking_commands
    holder = start(run, "import os, time; os.close(0); print('closed', flush=True); time.sleep(600)", grace_s=1.0)
    run.printed("closed")

    append(run, line(1))
    append(run, line(2))
    holder.terminate()

    assert (run.ended()["ended_by"], run.exit["commands_unread"]) == ("cancel", 2)


def test_a_line_that_the_daemon_cannot_have_written_stops_the_commands_not_the_run(taking_commands: HeldRun) -> None:
    run = taking_commands
    start(run, "import sys, time; print(repr(sys.stdin.read()), flush=True); time.sleep(600)")

    append(run, "x" * 300_000)

    run.printed("''")
    assert "commands.jsonl: it has a line that MOSAIC did not write" in run.log
    assert not run.dir.exit.exists()


@pytest.mark.parametrize("planted", ["nothing", "link", "fifo", "folder", "second name"])
def test_anything_but_the_file_of_the_submit_is_a_spawn_error(hold_run: HeldRun, planted: str) -> None:
    path = hold_run.dir.commands
    elsewhere = hold_run.dir.path / "elsewhere"
    elsewhere.write_text(line(1))
    make = {
        "nothing": lambda: None,
        "link": lambda: path.symlink_to(elsewhere),
        "fifo": lambda: os.mkfifo(path),
        "folder": path.mkdir,
        "second name": lambda: os.link(elsewhere, path),
    }
    make[planted]()

    end = hold_run.run(hold_run.script("print('ran')"), commands=True)

    assert end["ended_by"] == "spawn error"
    assert "commands.jsonl" in end["error"]
    assert hold_run.stdout == ""


def test_a_worker_that_replaces_the_file_misleads_only_itself(taking_commands: HeldRun) -> None:
    run = taking_commands
    file = str(run.dir.commands)
    code = f"import os; os.unlink({file!r}); os.mkfifo({file!r}); print('planted', flush=True); " + ECHO
    holder = start(run, code, grace_s=1.0, hold="subreaper")  # in a namespace it does not see the file
    run.printed("planted")

    holder.terminate()

    assert run.ended()["ended_by"] == "cancel"


def test_where_the_file_cannot_be_watched_the_holder_looks_again_and_again(
    taking_commands: HeldRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: object) -> int:
        raise OSError(errno.EMFILE, "this user has no inotify instance left")

    monkeypatch.setattr(kernel, "watch_writes", refuse)
    feed = CommandFeed(taking_commands.dir.commands, print)
    feed.pump()

    append(taking_commands, line(1))

    assert (feed.waits_for(), feed.next_at(5.0)) == (None, 5.0 + LOOK_AGAIN_S)
    feed.pump()
    assert os.read(feed.source, 4096).decode() == line(1)


@on_x86
def test_a_run_that_waits_for_commands_sleeps_without_a_timeout(taking_commands: HeldRun) -> None:
    run = taking_commands
    holder = start(run, ECHO)
    append(run, line(1))
    run.printed(line(1))

    eventually(lambda: system_call(holder.pid)[::3] == [POLL, FOREVER], "the holder in poll() without a timeout")


@on_x86
def test_a_full_pipe_does_not_keep_the_holder_awake(taking_commands: HeldRun) -> None:
    run = taking_commands
    append(run, line(1, text="x" * 60_000) * 3)
    holder = start(run, DEAF)
    run.printed("up")

    append(run, line(4))

    eventually(lambda: system_call(holder.pid)[::3] == [POLL, FOREVER], "the holder in poll() without a timeout")
