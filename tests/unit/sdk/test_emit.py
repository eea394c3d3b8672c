import json
import math
import os
import sys
import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mosaic_sdk import emit
from mosaic_sdk.emit import Emitter


class Spool:
    """An append-only file with an emitter on it."""

    def __init__(self, path):
        self.path = path
        self.fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self.emitter = Emitter(self.fd, run_id="r1")

    def objects(self):
        return [json.loads(line) for line in self.path.read_bytes().splitlines()]

    def last(self):
        return self.objects()[-1]


@pytest.fixture
def spool(tmp_path):
    spool = Spool(tmp_path / "spool")
    yield spool
    os.close(spool.fd)


class Scalar:
    """Has the interface of numpy's scalars."""

    def __init__(self, value):
        self.value = value

    def tolist(self):
        return self.value


def test_a_step_has_the_given_fields_and_a_time(spool):
    before = time.time_ns()

    assert spool.emitter.step(7, 0.5, env_index=1, agent_id="a", episode_index=2, terminated=True, truncated=False)

    line = spool.last()
    assert before <= line.pop("ts_unix_ns") <= time.time_ns()
    assert line == {
        "event_type": "step",
        "step_index": 7,
        "reward": 0.5,
        "env_index": 1,
        "agent_id": "a",
        "episode_index": 2,
        "terminated": True,
        "truncated": False,
    }


def test_a_step_carries_any_other_field(spool):
    spool.emitter.step(1, action=3, observation=[0.1, 0.2], info={"a": None}, episode_seed=9, ts_unix_ns=5)

    more = {"action": 3, "observation": [0.1, 0.2], "info": {"a": None}, "episode_seed": 9, "ts_unix_ns": 5}
    assert spool.last() == {"event_type": "step", "step_index": 1, **more}
    assert spool.path.read_bytes().count(b"ts_unix_ns") == 1


def test_an_episode_has_its_return_and_length(spool):
    spool.emitter.episode(3, 41.5, 200, agent_id="a", truncated=True, metadata={"map": "x"})

    line = spool.last()
    del line["ts_unix_ns"]
    assert line == {
        "event_type": "episode",
        "episode_index": 3,
        "total_reward": 41.5,
        "steps": 200,
        "agent_id": "a",
        "truncated": True,
        "metadata": {"map": "x"},
    }


def test_an_episode_has_the_env_step_at_which_it_ended_if_it_is_given(spool):
    spool.emitter.episode(0, 1.0, 10, global_step=4096, terminated=True)

    line = spool.last()
    assert (line["global_step"], line["terminated"]) == (4096, True)


def test_metrics_come_alone_or_many_at_once(spool):
    spool.emitter.metric('odd "name"\n', 1e-9, 4)
    spool.emitter.metrics({"a": 1, "b": 2.5}, 5)

    alone, many = spool.objects()
    assert (alone["event_type"], alone["name"], alone["value"], alone["step"]) == ("metric", 'odd "name"\n', 1e-9, 4)
    assert (many["event_type"], many["values"], many["step"]) == ("metric", {"a": 1, "b": 2.5}, 5)


def test_every_lifecycle_line_names_its_run(spool):
    emitter = spool.emitter
    emitter.run_started({"env_id": "x"})
    emitter.run_completed()
    emitter.run_failed(ValueError("bad"), step=3)
    emitter.run_cancelled("SIGTERM")
    emitter.heartbeat(12)
    emitter.checkpoint_saved("checkpoints/1.pt", step=1)
    emitter.checkpoint_loaded("checkpoints/1.pt")
    emitter.lifecycle("of_my_own", {"a": 1})

    lines = spool.objects()
    assert {line["run_id"] for line in lines} == {"r1"}
    assert all(isinstance(line["timestamp"], float) for line in lines)
    assert [(line["event"], line["payload"]) for line in lines] == [
        ("run_started", {"env_id": "x"}),
        ("run_completed", {}),
        ("run_failed", {"error": "bad", "error_type": "ValueError", "step": 3}),
        ("run_cancelled", {"reason": "SIGTERM"}),
        ("heartbeat", {"progress": 12}),
        ("checkpoint_saved", {"path": "checkpoints/1.pt", "step": 1}),
        ("checkpoint_loaded", {"path": "checkpoints/1.pt"}),
        ("of_my_own", {"a": 1}),
    ]


@pytest.mark.parametrize(("value", "written"), [(math.nan, b"NaN"), (math.inf, b"Infinity"), (-math.inf, b"-Infinity")])
def test_nan_and_infinity_are_data(spool, value, written):
    spool.emitter.metric("m", value, 1)
    spool.emitter.step(1, value, info={"x": value})

    metric, step = spool.path.read_bytes().splitlines()
    assert b'"value":%b,' % written in metric
    assert b'"reward":%b,' % written in step
    assert b'"info":{"x":%b}' % written in step


@pytest.mark.parametrize(("value", "written"), [(True, 1), (Scalar(1.5), 1.5), (Scalar(3), 3), (Scalar(True), 1)])
def test_a_number_may_be_a_bool_or_a_scalar_of_numpy(spool, value, written):
    spool.emitter.metric("m", value, Scalar(2))

    assert spool.last()["value"] == written
    assert type(spool.last()["value"]) is type(written)
    assert spool.last()["step"] == 2


def test_a_scalar_of_numpy_that_is_a_float_is_written_as_its_number(spool):
    class Float64(float):
        def __repr__(self):
            return "Float64(…)"

    spool.emitter.step(0, Float64(0.25))
    spool.emitter.step(0, Float64("nan"))

    assert spool.objects()[0]["reward"] == 0.25
    assert math.isnan(spool.objects()[1]["reward"])


def test_what_json_cannot_hold_becomes_its_repr(spool):
    circle = []
    circle.append(circle)

    spool.emitter.step(0, info={(1, 2): 3}, a=circle, b=Scalar([[1, 2], [3, 4]]), c={1}, d=b"x", e=spool.path)

    line = spool.last()
    assert line["info"] == "{(1, 2): 3}"
    assert line["a"] == "[[...]]"
    assert line["b"] == [[1, 2], [3, 4]]
    assert line["c"] == [1]
    assert line["d"] == "b'x'"
    assert line["e"] == str(spool.path)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)


@given(value=json_values, name=st.text(), number=st.floats(allow_nan=False) | st.integers())
def test_any_value_is_one_line_that_reads_back(tmp_path_factory, value, name, number):
    spool = Spool(tmp_path_factory.mktemp("emit") / "spool")

    spool.emitter.metric(name, number, 1, info=value, agent=name)

    data = spool.path.read_bytes()
    assert data.count(b"\n") == 1
    line = json.loads(data)
    assert (line["name"], line["value"], line["info"], line["agent"]) == (name, number, value, name)
    os.close(spool.fd)


def test_a_name_with_a_counter_does_not_fill_the_memory(spool):
    for number in range(6000):
        spool.emitter.metric(f"name/{number}", 1.0, 1)

    assert len(emit._quoted_texts) <= 4096
    assert spool.last()["name"] == "name/5999"


WRITERS = """
import os, threading
from mosaic_sdk import emit

def emit_lines(who):
    for number in range(300):
        emit.step(number, 0.5, agent_id=who, info={"pad": "x" * (number * 37 % 9000)})

for child in range(3):
    if os.fork() == 0:
        break
else:
    child = 3
threads = [threading.Thread(target=emit_lines, args=(f"{child}.{thread}",)) for thread in range(3)]
for thread in threads: thread.start()
for thread in threads: thread.join()
if child < 3:
    os._exit(0)
for _ in range(3): os.wait()
"""


def test_threads_and_forks_print_whole_lines_in_their_order(bench):
    ended = bench.script(WRITERS)

    assert ended.code == 0, ended.err
    steps = {}
    for line in ended.objects:
        steps.setdefault(line["agent_id"], []).append(line["step_index"])
    assert len(steps) == 12
    assert all(numbers == list(range(300)) for numbers in steps.values())


ON_A_PIPE = """
import subprocess
from mosaic_sdk.emit import Emitter
cat = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
emit = Emitter(cat.stdin.fileno())
"""

FORK_UNDER_LOCK = """
import os, threading

def emit_lines():
    while not done.is_set():
        emit.metric("parent", 1.0, 1)

done = threading.Event()
thread = threading.Thread(target=emit_lines)
thread.start()
for number in range(50):
    if os.fork() == 0:
        emit.metric("child", 1.0, number)
        os._exit(0)
    os.waitpid(-1, 0)
done.set()
thread.join()
"""


def test_a_child_forked_while_another_thread_writes_can_write(bench):
    ended = bench.script(ON_A_PIPE + FORK_UNDER_LOCK)  # a pipe, because only there a lock is needed

    children = [line["step"] for line in ended.objects if line["name"] == "child"]
    assert children == list(range(50))


SIGNALS = """
import signal

count = 0
def handle(number, frame):
    global count
    count += 1
    emit.metric("handler", 1.0, count)

signal.signal(signal.SIGALRM, handle)
signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
while count < 100:
    emit.metric("main", 1.0, count)
signal.setitimer(signal.ITIMER_REAL, 0)
"""
ON_STDOUT = "from mosaic_sdk import emit\n"


@pytest.mark.parametrize("where", [ON_STDOUT, ON_A_PIPE], ids=["file", "pipe"])
def test_a_signal_handler_may_emit_inside_an_emit(bench, where):
    ended = bench.script(where + SIGNALS)

    handler = [line["step"] for line in ended.objects if line["name"] == "handler"]
    assert sorted(handler) == list(range(1, len(handler) + 1))  # sorted: the handler interrupts itself too
    assert len(handler) >= 100


def test_print_and_emit_stay_in_order_without_flush(bench):
    ended = bench.script(
        "print('a')\n"
        "from mosaic_sdk import emit\n"
        "emit.step(0); print('b'); emit.step(1); print('c', end=''); emit.step(2); print('d')\n"
        "import os; os._exit(0)"  # nothing may be left in a buffer
    )

    kinds = [json.loads(line)["step_index"] if line.startswith(b"{") else line for line in ended.lines]
    assert kinds == [b"a", 0, b"b", 1, 2, b"cd"]


FULL = """
import os, resource
from mosaic_sdk import emit

def room(n):
    size = os.fstat(1).st_size + n if n is not None else resource.RLIM_INFINITY
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

results = [emit.step(0)]
room({room})
results += [emit.step(1), emit.step(2), emit.step(3)]
room(None)
{after}
import sys
print(results, file=sys.stderr)
"""


@pytest.mark.parametrize("room", [0, 1, 30])
def test_lines_that_did_not_fit_are_a_counted_gap(bench, room):
    ended = bench.script(FULL.format(room=room, after="results += [emit.step(4), emit.step(5)]"))

    assert ended.code == 0, ended.err
    assert ended.err.strip() == "[True, False, False, False, True, True]"
    first, *torn, gap, fourth, fifth = ended.lines
    assert [json.loads(line)["step_index"] for line in (first, fourth, fifth)] == [0, 4, 5]
    assert [len(line) for line in torn] == ([room] if room else [])
    gap = json.loads(gap)
    assert (gap["event"], gap["run_id"]) == ("telemetry_gap", "01ARZ3NDEKTSV4RRFFQ69G5FAV")
    assert gap["payload"]["lines"] == 3
    assert gap["payload"]["reason"] == "File too large"
    assert gap["payload"]["first_ts"] <= gap["payload"]["last_ts"] <= gap["timestamp"]


def test_a_line_that_lacks_only_its_newline_is_not_lost(bench):
    ended = bench.script(FULL.format(room="os.fstat(1).st_size - 1", after="results += [emit.step(4), emit.step(5)]"))

    assert ended.err.strip() == "[True, True, False, False, True, True]"
    first, second, gap, fourth, fifth = map(json.loads, ended.lines)
    assert [line["step_index"] for line in (first, second, fourth, fifth)] == [0, 1, 4, 5]
    assert gap["payload"]["lines"] == 2


def test_a_gap_at_the_end_is_reported_at_exit(bench):
    ended = bench.script(FULL.format(room=10, after=""))

    assert len(ended.lines) == 3
    gap = json.loads(ended.lines[-1])
    assert (gap["event"], gap["payload"]["lines"]) == ("telemetry_gap", 3)


def test_a_gap_is_reported_by_the_process_that_lost_the_lines(bench):
    child = "if os.fork() == 0:\n    emit.step(10); os._exit(0)\nos.wait(); emit.step(4)"
    ended = bench.script(FULL.format(room=0, after=child))

    printed = [line.get("event") or line["step_index"] for line in ended.objects]
    assert printed == [0, 10, "telemetry_gap", 4]


ON_TMPFS = """
set -e
mount -t tmpfs -o size=64k none "$1"
cd "$1"
"$2" -c '
import os, sys
from mosaic_sdk import emit
emit.step(0)
try:
    with open("filler", "wb", buffering=0) as filler:
        while True: filler.write(b"x" * 512)
except OSError: pass
lost = 0
while lost < 10:
    lost += not emit.step(1)
os.unlink("filler")
emit.step(2)
' >> spool
cat spool
"""


def test_a_full_disk_is_a_gap_and_telemetry_goes_on_when_there_is_room(bench, tmp_path):
    probe = bench.run("-U", "-r", "-m", "true", python="unshare")
    if probe.code != 0:
        pytest.skip("no user namespaces here")
    (tmp_path / "disk").mkdir()

    ended = bench.run(
        *("-U", "-r", "-m", "sh", "-c", ON_TMPFS, "sh", tmp_path / "disk", sys.executable), python="unshare"
    )

    assert ended.code == 0, ended.err
    whole = [json.loads(line) for line in ended.lines if line.endswith(b"}")]
    gap = whole[-2]
    assert gap["payload"]["reason"] == "No space left on device"
    assert gap["payload"]["lines"] == 10
    assert whole[-1]["step_index"] == 2
    assert len(ended.lines) - len(whole) <= 1  # the torn one


@pytest.mark.parametrize("blocking", [False, True])
def test_a_full_pipe_is_waited_for_and_threads_keep_their_lines_whole(blocking):
    read, write = os.pipe()
    os.set_blocking(write, blocking)
    emitter = Emitter(write, run_id="r1")

    def emit_lines(who):
        for number in range(300):
            emitter.step(number, agent_id=who, info={"pad": "x" * (number * 997 % 100_000)})

    threads = [threading.Thread(target=emit_lines, args=(who,)) for who in "abc"]
    for thread in threads:
        thread.start()
    closer = threading.Thread(target=lambda: [[thread.join() for thread in threads], os.close(write)])
    closer.start()
    with os.fdopen(read, "rb") as pipe:
        lines = [json.loads(line) for line in pipe.read().splitlines()]
    closer.join()

    for who in "abc":
        assert [line["step_index"] for line in lines if line["agent_id"] == who] == list(range(300))


def test_a_broken_pipe_and_a_closed_descriptor_do_not_raise():
    read, write = os.pipe()
    os.close(read)
    emitter = Emitter(write, run_id="r1")

    assert emitter.step(0) is False

    os.close(write)
    assert emitter.step(1) is False
    assert emitter.run_completed() is False


def test_the_module_writes_to_stdout_for_the_run_in_the_environment(bench):
    ended = bench.script("from mosaic_sdk import emit; emit.run_started(); emit.heartbeat(3)")

    assert [(line["event"], line["run_id"]) for line in ended.objects] == [
        ("run_started", "01ARZ3NDEKTSV4RRFFQ69G5FAV"),
        ("heartbeat", "01ARZ3NDEKTSV4RRFFQ69G5FAV"),
    ]


def test_importing_it_loads_no_heavy_module(bench):
    ended = bench.script(
        "import sys; from mosaic_sdk import emit\n"
        "heavy = ('dataclasses', 'inspect', 'logging', 'difflib', 'subprocess', 'argparse', 'mosaic_sdk.settings')\n"
        "print([name for name in heavy if name in sys.modules], file=sys.stderr)"
    )

    assert (ended.code, ended.err.strip()) == (0, "[]")
