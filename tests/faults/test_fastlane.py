"""Faults of frames: kills, stops, damaged segments, a full /dev/shm. Viewers and the daemon survive."""

import contextlib
import os
import random
import secrets
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import closing

import pytest
from lab import alive, all_pids, cmdline, wait_until
from mosaic_sdk.fastlane import FastLaneReader, control

from mosaic.client import TrainerClient
from mosaic.client.frames import FrameStream
from mosaic.model.errors import NoFrames
from mosaic.model.states import RunState

S = RunState
FOR_EVER = 1_000_000


def segments(run_id):
    return sorted(name for name in os.listdir("/dev/shm") if run_id in name)


def check_whole(pixels):
    """The toy writes its step into the first and the last pixel."""
    assert pixels[0, 0].tolist() == pixels[-1, -1].tolist(), "a torn frame"


def paint(lab, **config):
    run = lab.submit(**{"steps": FOR_EVER, "rate": 300, "paint": True} | config)
    lab.wait_for(run, S.EXECUTING)
    wait_until(lambda: segments(run.run_id) != [], words="the run's lane")
    return run


def worker_pids(run):
    """The toy's own processes, as this pid namespace sees them; its init is not among them."""
    return [pid for pid in all_pids() if b"toy_worker.cli" in cmdline(pid) and run.run_id.encode() in cmdline(pid)]


class Viewer:
    """Views a run in a thread of its own until the run is over."""

    def __init__(self, lab, run, is_far, monkeypatch):
        self.seen, self.error = 0, None
        self._client = TrainerClient.connect(lab.root)
        stream = self._client.frames(run.run_id, hz=30, wait_s=60)
        if is_far:
            monkeypatch.setattr(FrameStream, "_attach", lambda *_: None)
        self._thread = threading.Thread(target=self._look, args=(stream,), daemon=True)
        self._thread.start()

    def _look(self, frames):
        try:
            for frame in frames:
                check_whole(frame.pixels)
                self.seen += 1
        except BaseException as error:  # noqa: BLE001 - the edge of the thread: the test reads it
            self.error = error

    def wait_for_more(self, count=3):
        wanted = self.seen + count
        wait_until(lambda: self.seen >= wanted or self.error, 60, f"{count} more frames")
        assert self.error is None

    def join(self):
        self._thread.join(60)
        self._client.close()
        assert not self._thread.is_alive()
        assert self.error is None


@pytest.mark.parametrize("is_far", [False, True], ids=["shared memory", "StreamFrames"])
def test_a_killed_writer_ends_its_viewers_and_leaves_nothing(lab, is_far, monkeypatch):
    run = paint(lab)
    daemon = lab.daemon_pid()
    viewer = Viewer(lab, run, is_far, monkeypatch)
    viewer.wait_for_more()

    for pid in worker_pids(run):
        os.kill(pid, signal.SIGKILL)

    viewer.join()
    end = lab.wait_until_over(run)
    assert (end.state, "SIGKILL" in end.reason) == (S.FAULTED, True)
    assert segments(run.run_id) == []
    assert lab.daemon_pid() == daemon


@pytest.mark.parametrize("is_far", [False, True], ids=["shared memory", "StreamFrames"])
def test_viewers_of_a_writer_that_is_stopped_repeatedly_see_whole_frames(lab, is_far, monkeypatch):
    run = paint(lab, rate=0, paint_width=640, paint_height=480)
    viewer = Viewer(lab, run, is_far, monkeypatch)
    viewer.wait_for_more()
    (pid,) = worker_pids(run)

    for _ in range(30):
        os.kill(pid, signal.SIGSTOP)
        time.sleep(random.uniform(0, 0.03))  # at any point of a frame
        os.kill(pid, signal.SIGCONT)
    viewer.wait_for_more()

    lab.client.cancel_run(run.run_id)
    viewer.join()


HALF_A_FRAME = """
import os, signal, sys, time
import numpy as np
from mosaic_sdk.fastlane import FastLaneConfig, FastLaneReader, FastLaneWriter
writer = FastLaneWriter.create(sys.argv[1], FastLaneConfig(64, 48))
while not writer.publish(np.full((48, 64, 3), 1, np.uint8)): time.sleep(0.001)
ring = writer.ring
class Slow:  # pixels whose copy is interrupted in the middle
    def __init__(self, place): self.place = place
    def __setitem__(self, _, frame):
        self.place[:24] = frame[:24]
        os.kill(os.getpid(), signal.SIGSTOP)
        self.place[24:] = frame[24:]
ring._slots[:] = [(words, floats, Slow(place)) for words, floats, place in ring._slots]
writer.publish(np.full((48, 64, 3), 2, np.uint8))
sys.stdin.readline()
"""


@contextlib.contextmanager
def script(text, run_id, *before):
    process = subprocess.Popen([*before, sys.executable, "-c", text, run_id], stdin=subprocess.PIPE)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()
        control.remove_dead(run_id)


@pytest.fixture
def run_id():
    return f"test-{os.getpid()}-{secrets.token_hex(4)}"


def state_of(pid):
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0]


def test_a_writer_stopped_in_the_middle_of_a_frame_shows_the_one_before(run_id):
    with script(HALF_A_FRAME, run_id) as process:
        wait_until(lambda: segments(run_id) != [])
        reader = FastLaneReader.attach(run_id, lease_s=1000)
        wait_until(lambda: state_of(process.pid) == "T", words="the writer in the middle of its second frame")

        assert set(reader.latest_frame().pixels.ravel().tolist()) == {1}
        process.send_signal(signal.SIGCONT)
        wait_until(lambda: set(reader.latest_frame().pixels.ravel().tolist()) == {2}, words="the whole second frame")
        reader.close()


def frames_of(run):
    return [f"/dev/shm/{name}" for name in segments(run.run_id) if name.rpartition(".")[2].isdigit()]


def page_of(run):
    return f"/dev/shm/mosaic.fastlane.{run.run_id}"


def fill_with_garbage(path):
    with open(path, "r+b") as file:
        file.write(random.Random(3).randbytes(os.stat(path).st_size))


def replace(path, data):
    with open(f"{path}~", "wb") as file:
        file.write(data)
    os.rename(f"{path}~", path)


CRUELTIES = {
    "frames full of garbage": lambda run: fill_with_garbage(frames_of(run)[0]),
    "frames replaced": lambda run: replace(frames_of(run)[0], b"not a ring"),
    "frames removed": lambda run: os.unlink(frames_of(run)[0]),
    "page replaced": lambda run: replace(page_of(run), b"\xff" * 8192),
    "page removed": lambda run: os.unlink(page_of(run)),
    "all removed": lambda run: [os.unlink(path) for path in (*frames_of(run), page_of(run))],
}


@pytest.mark.parametrize("is_far", [False, True], ids=["shared memory", "StreamFrames"])
@pytest.mark.parametrize("cruelty", CRUELTIES)
def test_frames_damaged_by_another_program_recover_while_they_are_viewed(lab, cruelty, is_far, monkeypatch):
    run = paint(lab)
    daemon = lab.daemon_pid()
    viewer = Viewer(lab, run, is_far, monkeypatch)
    viewer.wait_for_more()

    with contextlib.suppress(AssertionError) if "garbage" in cruelty else contextlib.nullcontext():
        CRUELTIES[cruelty](run)
        viewer.wait_for_more()

    # A new viewer sees them too. Garbage in the pixels is overwritten frame by frame.
    wait_until(lambda: is_seen(lab, run), 60, "a whole frame for a newcomer")
    assert lab.state(run) is S.EXECUTING
    assert lab.daemon_pid() == daemon
    lab.client.cancel_run(run.run_id)
    lab.wait_until_over(run)
    assert segments(run.run_id) == []


def is_seen(lab, run):
    try:
        with closing(lab.client.frames(run.run_id, wait_s=30)) as frames:
            pixels = next(frames).pixels
    except NoFrames:
        return False
    return pixels[0, 0].tolist() == pixels[-1, -1].tolist()


@pytest.mark.parametrize("part", ["frames", "page"])
def test_a_segment_truncated_by_another_program_ends_no_viewer_and_no_daemon(lab, part, monkeypatch):
    """It may end the writer, whose memory it was: then the run reports that."""
    run = paint(lab)
    daemon = lab.daemon_pid()
    near, far = Viewer(lab, run, False, monkeypatch), None
    near.wait_for_more()
    far = Viewer(lab, run, True, monkeypatch)
    far.wait_for_more()

    for path in frames_of(run) if part == "frames" else [page_of(run)]:
        os.truncate(path, 0)

    wait_until(lambda: lab.state(run).is_over or is_seen(lab, run), 60, "an end, or frames again")
    if not lab.state(run).is_over:
        lab.client.cancel_run(run.run_id)
    end = lab.wait_until_over(run)
    assert end.state is S.CANCELLED or "SIGBUS" in end.reason
    near.join()
    far.join()
    assert lab.daemon_pid() == daemon
    assert segments(run.run_id) == []


def test_two_runs_never_touch_each_others_frames(lab, monkeypatch):
    killed, lives = paint(lab), paint(lab)
    viewers = [Viewer(lab, run, False, monkeypatch) for run in (killed, lives)]
    for viewer in viewers:
        viewer.wait_for_more()
    before = segments(lives.run_id)

    for pid in worker_pids(killed):
        os.kill(pid, signal.SIGKILL)
    lab.wait_until_over(killed)

    assert segments(killed.run_id) == []
    assert segments(lives.run_id) == before
    viewers[1].wait_for_more()
    lab.client.cancel_run(lives.run_id)
    for viewer in viewers:
        viewer.join()


WATCH = """
import sys
from pathlib import Path
from mosaic.client import TrainerClient
from mosaic.client.frames import FrameStream
from mosaic.model.rundir import StateRoot
FrameStream._attach = lambda *_: None  # as a client on another machine
with TrainerClient.connect(StateRoot(Path(sys.argv[2])), start=False) as client:
    for frame in client.frames(sys.argv[1], hz=30): print(frame.number, flush=True)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_a_dead_or_stopped_client_affects_no_other_and_stops_being_a_viewer(lab, number, monkeypatch):
    run = paint(lab)
    arguments = [sys.executable, "-c", WATCH, run.run_id, str(lab.root.path)]
    client = subprocess.Popen(arguments, stdout=subprocess.PIPE)
    try:
        client.stdout.readline()
        client.send_signal(number)

        page = control.ControlPage.open(control.create_fastlane_name(run.run_id))
        wait_until(lambda: page.words[control.LEASE] < time.monotonic_ns(), 60, "the end of the lease")
        page.forget()

        viewer = Viewer(lab, run, True, monkeypatch)
        viewer.wait_for_more()
        lab.client.cancel_run(run.run_id)
        viewer.join()
    finally:
        client.kill()
        client.communicate()


def can_mount():
    if not shutil.which("unshare"):
        return False
    tried = subprocess.run([*SMALL_SHM, "true"], capture_output=True)
    return tried.returncode == 0


# A /dev/shm of 200 kB for one process and its children.
MOUNT = 'mount -t tmpfs -o size=200k tmpfs /dev/shm && exec "$@"'
SMALL_SHM = ("unshare", "--user", "--map-root-user", "--mount", "sh", "-c", MOUNT, "sh")
needs_mount = pytest.mark.skipif(not can_mount(), reason="no tmpfs can be mounted here")

FULL = """
import sys, os
import numpy as np
os.environ |= {"MOSAIC_RUN_ID": sys.argv[1], "GYM_GUI_FASTLANE_ONLY": "1", "CLEANRL_FASTLANE_INTERVAL_MS": "0"}
import mosaic_sdk.fastlane.lane as lane
from mosaic_sdk.fastlane import FastLaneReader, maybe_wrap_env
lane._RETRY_NS = 0
class Env:
    render_mode = "rgb_array"
    size = 400
    def reset(self): return None, {}
    def step(self, action): return None, 1.0, False, False, {}
    def render(self): return np.full((self.size, self.size, 3), 7, np.uint8)
    def close(self): pass
env = maybe_wrap_env(Env())
reader = FastLaneReader.attach(sys.argv[1])
env.reset()
for _ in range(100): assert env.step(0)[1] == 1.0
assert reader.latest_frame() is None
env.env.size = 40
env.step(0)
assert reader.latest_frame().pixels.shape == (40, 40, 3)
open("/dev/shm/filler", "wb", buffering=0).write(bytes(1 << 17))
try: open("/dev/shm/filler2", "wb", buffering=0).write(bytes(1 << 17))
except OSError: pass
for _ in range(10): env.step(0)
env.close()
assert not [name for name in os.listdir("/dev/shm") if "fastlane" in name]
other = Env()
while True:
    try: open("/dev/shm/" + os.urandom(4).hex(), "wb", buffering=0).write(bytes(4096))
    except OSError: break
assert maybe_wrap_env(other) is other
"""


@needs_mount
def test_a_full_dev_shm_is_a_note_and_the_training_continues(run_id):
    done = subprocess.run([*SMALL_SHM, sys.executable, "-c", FULL, run_id], capture_output=True, text=True, timeout=60)

    assert done.returncode == 0, done.stderr
    assert "no frames for now: [Errno 28] No space left on device" in done.stderr
    assert "no frames of Env: [Errno 28] No space left on device" in done.stderr
    assert len(done.stderr.splitlines()) < 6


@needs_mount
def test_a_whole_run_with_a_full_dev_shm_succeeds(home):
    fill = 'head -c 1000000 /dev/zero > /dev/shm/filler; exec "$@"'
    mosaic = [os.path.join(os.path.dirname(sys.executable), "mosaic"), "run", "toy", "steps=50", "paint=true"]
    command = [*SMALL_SHM, "sh", "-c", fill, "sh", *mosaic]
    env = {**os.environ, "MOSAIC_HOME": str(home), "NO_COLOR": "1"}
    try:
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=100)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "TERMINATED" in done.stdout
    finally:
        # The daemon that it started runs in its namespaces, and its command line names this folder.
        mark = str(home).encode()
        for pid in all_pids():
            if pid != os.getpid() and mark in cmdline(pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                wait_until(lambda pid=pid: not alive(pid))
