"""A child with the line protocol, and every way in which it can fail. The children are real processes."""

import os
import signal
import sys
import threading
import time

import pytest
from mosaic_sdk.operators import child as child_module
from mosaic_sdk.operators.child import Child, ChildDied, ChildHung
from mosaic_sdk.operators.operator import OperatorError

ECHO = """
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    print(json.dumps({"type": "echo", "size": len(line), "n": message.get("n")}), flush=True)
"""


@pytest.fixture
def start():
    """Starts a Python program as a child that is closed at the end; its other output is in `.said`."""
    started = []

    def start(program, **options):
        said = []
        child = Child([sys.executable, "-c", program], **{"name": "x", "log": said.append, **options})
        child.said = said
        started.append(child)
        return child

    yield start
    for child in started:
        child.close()


def is_gone(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] in "ZX"
    except FileNotFoundError:
        return True


def wait_until(done, timeout_s=30):
    deadline = time.monotonic() + timeout_s
    while not done():
        assert time.monotonic() < deadline, f"waited {timeout_s} s in vain"
        time.sleep(0.005)


def test_its_environment_is_this_one_with_changes(start, monkeypatch):
    monkeypatch.setenv("KEPT", "1")
    monkeypatch.setenv("REMOVED", "1")
    program = "import json, os; input(); print(json.dumps({'type': 'x', 'env': dict(os.environ)}), flush=True)"

    env = start(program, env={"ADDED": "2", "REMOVED": None}).ask({}, 30)["env"]

    assert (env["KEPT"], env["ADDED"], env.get("REMOVED")) == ("1", "2", None)


def test_questions_are_answered_in_order(start):
    child = start(ECHO)

    assert [child.ask({"n": n}, 30)["n"] for n in range(100)] == list(range(100))
    assert child.is_alive


def test_a_second_answer_to_one_question_can_be_read(start):
    child = start('input(); print(\'{"type": "step"}\\n{"type": "episode_done"}\', flush=True); input()')

    assert child.ask({}, 30) == {"type": "step"}
    assert child.read(30) == {"type": "episode_done"}


def test_strangers_types_are_translated(start):
    child = start('input(); print(\'{"type": "episode_end"}\\n{"type": "agent_initialized"}\', flush=True); input()')

    assert [child.ask({}, 30)["type"], child.read(30)["type"]] == ["episode_done", "agent_ready"]


def test_long_lines_travel_both_ways(start):
    child = start("import sys; line = sys.stdin.readline(); print(line.rstrip(), flush=True); input()")

    answer = child.ask({"type": "picture", "data": "x" * 8_000_000}, 60)

    assert len(answer["data"]) == 8_000_000


def test_a_child_that_prints_before_it_reads_blocks_no_one(start):
    child = start(f"import sys; print('y' * 3_000_000, flush=True)\n{ECHO}")

    assert child.ask({"data": "x" * 3_000_000, "n": 7}, 60)["n"] == 7


def test_other_lines_on_stdout_are_logged_and_skipped(start):
    lines = ["a library prints", "[1, 2]", "{broken", '{"no": "type"}', '{"type": 3}', "[" * 100_000, ""]
    program = f'input()\nfor line in {lines!r}: print(line)\nprint(\'{{"type": "pong"}}\', flush=True); input()'
    child = start(program)

    assert child.ask({"cmd": "ping"}, 30) == {"type": "pong"}
    assert [line[:20] for line in child.said] == [line[:20] for line in lines if line]
    assert len(child.said[5]) < 3000


def test_stderr_goes_to_the_log(start):
    child = start(f"import sys; print('loading', file=sys.stderr, flush=True)\n{ECHO}")
    child.ask({}, 30)

    wait_until(lambda: child.said)

    assert child.said == ["loading"]
    assert list(child.stderr_lines) == ["loading"]


def test_the_output_of_a_child_that_died_before_it_was_asked_is_logged(start):
    child = start("print('one'); print('two')")
    wait_until(lambda: not child.is_alive)

    with pytest.raises(ChildDied):
        child.ask({}, 30)

    assert child.said == ["one", "two"]


def test_by_default_the_log_is_stderr_with_the_childs_name(capfd):
    with Child([sys.executable, "-c", "print('hello'); input()"], name="ppo"), pytest.raises(OperatorError):
        Child([sys.executable, "-c", "print('one'); print('two')"], name="gpt").ask({}, 30)

    assert "[gpt] one\n[gpt] two\n" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("import sys; sys.exit(3)", "exited with code 3"),
        ("pass", "exited with code 0"),
        ("raise RuntimeError('no GPU')", r"exited with code 1: .*\| RuntimeError: no GPU"),
        ("import os; os.kill(os.getpid(), 9)", "was killed by SIGKILL"),
        ("import os; os.abort()", "was killed by SIGABRT"),
        ("import os, time; os.close(1); os.close(0); time.sleep(600)", "closed its output"),
        # Its own child keeps stdout open after its death.
        ("import os, time; os.fork() or time.sleep(600); os._exit(4)", "exited with code 4"),
        ('import os; os.write(1, b\'{"type": "po\')', "exited with code 0"),
    ],
)
def test_the_reason_of_a_death_is_told(start, program, reason):
    child = start(program)

    with pytest.raises(ChildDied, match=f"^x: {reason}"):
        child.ask({"cmd": "ping"}, 30)

    assert not child.is_alive
    with pytest.raises(ChildDied, match=reason):
        child.ask({"cmd": "ping"}, 30)


def test_an_answer_before_the_death_is_not_lost(start):
    child = start('print(\'{"type": "error", "message": "no checkpoint"}\', flush=True); raise SystemExit(2)')
    wait_until(child._has_exited)

    assert child.read(30)["message"] == "no checkpoint"
    with pytest.raises(ChildDied, match="exited with code 2"):
        child.ask({}, 30)


def test_a_program_that_does_not_exist_is_a_death():
    with pytest.raises(ChildDied, match="ppo: cannot be started: /nowhere/python: No such file"):
        Child(["/nowhere/python"], name="ppo")


def test_a_child_that_does_not_answer_is_killed(start):
    child = start("import time; time.sleep(600)")

    with pytest.raises(ChildHung, match=r"^x: no answer in 0.2 s$"):
        child.ask({}, 0.2)

    assert is_gone(child.pid)


def test_a_child_that_does_not_read_is_killed_in_time(start):
    child = start("import time; time.sleep(600)")

    with pytest.raises(ChildHung):
        child.ask({"data": "x" * 3_000_000}, 0.3)


def test_a_child_that_prints_without_end_is_killed_in_time(start):
    child = start("while True: print('working', flush=True)")

    with pytest.raises(ChildHung):
        child.ask({}, 0.3)


def test_a_line_without_end_is_a_death(start, monkeypatch):
    monkeypatch.setattr(child_module, "LONGEST_LINE", 1 << 20)
    child = start("import os\nwhile True: os.write(1, b'x' * 65536)")

    with pytest.raises(ChildDied, match="printed a line of more than 1 MiB"):
        child.ask({}, 30)


def test_closing_ends_the_whole_group_and_leaves_no_zombie(start):
    child = start(f"import os, time\nif os.fork() == 0: time.sleep(600)\n{ECHO}")
    child.ask({}, 30)
    members = [int(pid) for pid in os.listdir("/proc") if pid.isdigit() and _group(int(pid)) == child.pid]
    assert len(members) == 2

    child.close()

    wait_until(lambda: all(is_gone(pid) for pid in members))
    assert not os.path.exists(f"/proc/{child.pid}")  # reaped


def _group(pid):
    try:
        return os.getpgid(pid)
    except ProcessLookupError:
        return None


def test_closing_gives_the_child_time_to_end_by_itself(start, tmp_path):
    path = tmp_path / "ended"
    child = start(f"import sys; print('{{\"type\": \"up\"}}', flush=True); sys.stdin.read(); open({str(path)!r}, 'w')")
    child.read(30)

    child.close(grace_s=30)

    assert path.exists()


def test_closing_twice_is_fine_and_asking_afterwards_is_an_error(start):
    child = start(ECHO)
    child.close()
    child.close()

    with pytest.raises(ChildDied, match="was closed"):
        child.ask({}, 30)


def test_a_child_killed_between_two_questions_is_noticed(start):
    child = start(ECHO)
    child.ask({}, 30)

    os.kill(child.pid, signal.SIGKILL)

    with pytest.raises(ChildDied, match="was killed by SIGKILL"):
        child.ask({}, 30)


def test_children_do_not_wait_for_each_other(start):
    slow, quick = start("import time; time.sleep(600)"), start(ECHO)
    errors = []

    def ask_slow():
        try:
            slow.ask({}, None)
        except ChildDied as error:
            errors.append(error)

    waiting = threading.Thread(target=ask_slow)
    waiting.start()
    answers = [quick.ask({"n": n}, 30)["n"] for n in range(20)]
    assert waiting.is_alive()

    os.kill(slow.pid, signal.SIGKILL)
    waiting.join(30)
    assert answers == list(range(20))
    assert [error.reason for error in errors] == ["was killed by SIGKILL"]
