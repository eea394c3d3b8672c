"""Frames of real runs: through shared memory, through the daemon, and through `mosaic frames`."""

import asyncio
import io
import itertools
import json
import os
import re
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import grpc
import numpy as np
import pytest
from lab import wait_until
from mosaic_sdk.fastlane import control
from mosaic_sdk.fastlane.ring import RingFile
from PIL import Image

from mosaic.client.asynchronous import AsyncTrainerClient
from mosaic.client.endpoint import find_endpoint
from mosaic.model.errors import NoFrames, UnknownRun
from mosaic.model.states import RunState
from mosaic.wire import mosaic_pb2 as pb

MOSAIC = Path(sys.executable).with_name("mosaic")
FOR_EVER = 1_000_000


@pytest.fixture
def painting(lab):
    """A run that paints for as long as the test lasts."""
    run = lab.submit(steps=FOR_EVER, rate=200, paint=True)
    lab.wait_for(run, RunState.EXECUTING)
    wait_until(lambda: segments(run) != [])
    return run


@pytest.fixture
def far_away(tmp_path, monkeypatch):
    """This process sees no lane of this machine, like a client on another one; the daemon does."""
    monkeypatch.setattr(control, "FOLDER", str(tmp_path))


def segments(run):
    return sorted(name for name in os.listdir("/dev/shm") if run.run_id in name)


def step_of(frame):
    """The step that the toy wrote into the first and the last pixel."""
    first, last = (int.from_bytes(frame.pixels[corner, corner].tobytes(), "little") for corner in (0, -1))
    assert first == last, "a torn frame"
    return first


def take(lab, run, count, **options):
    with closing(lab.client.frames(run.run_id, **options)) as frames:
        return [next(frames) for _ in range(count)]


def is_watched(run):
    page = control.ControlPage.open(control.create_fastlane_name(run.run_id))
    try:
        return page.words[control.LEASE] > time.monotonic_ns()
    finally:
        page.forget()


def frames_made(run):
    """How many frames the worker has published, without watching it."""
    page = control.ControlPage.open(control.create_fastlane_name(run.run_id))
    ring = RingFile.open(page.lane, page.words[control.GENERATION])
    taken = ring.take()
    ring.close()
    page.forget()
    return taken.number


def test_a_client_on_this_machine_sees_the_picture_move(lab, painting):
    frames = take(lab, painting, 5, hz=60)

    assert {(frame.size, frame.is_shared) for frame in frames} == {((320, 240), True)}
    assert sorted({step_of(frame) for frame in frames}) == [step_of(frame) for frame in frames]
    assert len({frame.pixels.tobytes() for frame in frames}) == 5
    assert frames[-1].cost_ns > 0


def test_a_client_elsewhere_sees_the_same_through_the_daemon(lab, painting, far_away):
    frames = take(lab, painting, 5, hz=20)

    assert {(frame.size, frame.is_shared) for frame in frames} == {((320, 240), False)}
    assert sorted({step_of(frame) for frame in frames}) == [step_of(frame) for frame in frames]
    assert frames[-1].cost_ns > 0


def submit_tile(lab, **settings):
    """A run that paints lane 1 of a grid, as a process of an evaluation does."""
    config = {"steps": FOR_EVER, "rate": 200, "paint": True, "extras": {"fastlane_video_mode": "grid"}, **settings}
    variables = {"GYM_GUI_FASTLANE_TILE": "2"}
    run = lab.submit_worker({"module": "toy_worker.cli", "config": config, "environment": variables})
    wait_until(lambda: segments(run) != [])
    return run


@pytest.mark.parametrize("where", ["here", "elsewhere"])
def test_one_lane_of_an_evaluation_can_be_watched(lab, where, request):
    tile = submit_tile(lab)
    if where == "elsewhere":
        request.getfixturevalue("far_away")

    frames = take(lab, tile, 2, hz=20, lane=1)

    assert {(frame.size, frame.is_shared) for frame in frames} == {((320, 240), where == "here")}
    with pytest.raises(NoFrames, match="has no lane 0 that can be shown yet"):
        take(lab, tile, 1, lane=0, wait_s=0.2)


def test_what_a_killed_lane_leaves_is_removed_with_the_run(lab):
    tile = submit_tile(lab, signal_at=400)
    take(lab, tile, 1, lane=1)
    assert len(segments(tile)) == 2

    lab.wait_for(tile, RunState.FAULTED)

    assert segments(tile) == []


def test_frames_can_be_shrunk_by_the_daemon(lab, painting, far_away):
    (frame,) = take(lab, painting, 1, max_dim=80)

    assert frame.size == (80, 60)


@pytest.mark.parametrize("where", ["here", "elsewhere"])
def test_watching_makes_the_worker_render_and_its_end_stops_it(lab, painting, where, request):
    if where == "elsewhere":
        # Only for this process's client, so that the test can still see what the worker does.
        request.getfixturevalue("monkeypatch").setattr("mosaic.client.frames.FrameStream._attach", lambda *_: None)
    assert not is_watched(painting)

    take(lab, painting, 3, hz=20)
    wait_until(lambda: not is_watched(painting), words="the end of the lease")

    made, steps = frames_made(painting), lab.client.get_run(painting.run_id).summary.steps
    lab.wait_until_run(painting, lambda now: now.summary.steps > steps + 50, "more steps")
    assert frames_made(painting) == made


def test_the_first_frame_is_not_the_one_that_an_earlier_viewer_left(lab, painting):
    take(lab, painting, 1)
    wait_until(lambda: not is_watched(painting), words="the end of the lease")
    steps = lab.client.get_run(painting.run_id).summary.steps
    lab.wait_until_run(painting, lambda now: now.summary.steps > steps + 300, "steps that are not watched")

    assert step_of(take(lab, painting, 1)[0]) > steps + 200


@pytest.mark.parametrize("where", ["here", "elsewhere"])
def test_frames_end_with_their_run(lab, where, request):
    if where == "elsewhere":
        request.getfixturevalue("far_away")
    run = lab.submit(steps=600, rate=200, paint=True)

    frames = list(lab.client.frames(run.run_id, wait_s=60))

    assert lab.state(run) is RunState.TERMINATED
    assert 0 < len(frames) <= 600
    assert segments(run) == []


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ({"paint": False}, "has created no environment that can be shown"),
        ({"paint": True, "extras": {"fastlane_video_mode": "off"}}, "are disabled in its config"),
    ],
    ids=["nothing to show", "off"],
)
def test_a_run_without_frames_says_why(lab, config, reason):
    run = lab.submit(steps=FOR_EVER, rate=100, **config)
    lab.wait_for(run, RunState.EXECUTING)

    with pytest.raises(NoFrames, match=reason):
        take(lab, run, 1, wait_s=0.5)


def test_a_run_that_is_over_or_unknown_says_so(lab):
    run = lab.submit(steps=5, paint=True)
    lab.wait_until_over(run)

    with pytest.raises(NoFrames, match=r"is over \(TERMINATED\)"):
        take(lab, run, 1)
    with pytest.raises(UnknownRun):
        next(lab.client.frames("01AAAAAAAAAAAAAAAAAAAAAAAA"))


def test_an_env_that_takes_no_steps_says_so(lab):
    run = lab.submit(steps=FOR_EVER, rate=100, paint=True, hang_at=20)
    lab.wait_until_run(run, lambda now: now.summary.steps >= 20, "20 steps")

    with pytest.raises(NoFrames, match="its env takes no steps"):
        take(lab, run, 1, wait_s=1)


def test_frames_need_the_token(lab, painting):
    async def ask():
        endpoint = find_endpoint(lab.root)
        async with AsyncTrainerClient(type(endpoint)(endpoint.target, "wrong")) as client:
            async for _ in client._stub.StreamFrames(pb.StreamFramesRequest(run_id=painting.run_id)):
                pass

    with pytest.raises(grpc.aio.AioRpcError) as refused:
        asyncio.run(ask())

    assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED
    assert not is_watched(painting)


@pytest.mark.parametrize("hz", [float("nan"), float("inf"), -1.0, 1e-300])
def test_an_invalid_rate_is_replaced_by_a_valid_one(lab, painting, hz):
    async def look():
        async with AsyncTrainerClient(find_endpoint(lab.root)) as client:
            request = pb.StreamFramesRequest(run_id=painting.run_id, hz=hz, wait_s=60, max_dim=2**32 - 1)
            call = client._stub.StreamFrames(request, metadata=client._metadata)
            return (await call.read()).png

    assert asyncio.run(look()).startswith(b"\x89PNG")


def test_a_client_that_stops_reading_has_no_lease(lab, painting):
    async def sleep_with_an_open_stream():
        async with AsyncTrainerClient(find_endpoint(lab.root)) as client:
            request = pb.StreamFramesRequest(run_id=painting.run_id, hz=30)
            call = client._stub.StreamFrames(request, metadata=client._metadata)
            assert (await call.read()).png
            await asyncio.to_thread(wait_until, lambda: not is_watched(painting), 90, "the end of the lease")

    asyncio.run(sleep_with_an_open_stream())

    assert lab.client.health().healthy


def test_a_slow_client_sees_the_newest_frame(lab, painting, far_away):
    with closing(lab.client.frames(painting.run_id, hz=30)) as frames:
        first = step_of(next(frames))
        lab.wait_until_run(
            painting, lambda now: now.summary.steps > first + 400, "steps while the client reads nothing"
        )

        assert step_of(next(frames)) > first + 300


def test_watching_continues_after_the_daemon_ends_a_stream(lab, painting, far_away):
    with closing(lab.client.frames(painting.run_id, hz=5)) as frames:
        until = time.monotonic() + 12  # longer than one stream
        steps = [step_of(frame) for frame in itertools.takewhile(lambda _: time.monotonic() < until, frames)]

    assert time.monotonic() >= until
    assert steps == sorted(steps)
    assert steps[-1] > steps[0] + 100


@pytest.fixture
def mosaic(lab):
    def call(*arguments, code=0):
        env = {**os.environ, "MOSAIC_HOME": str(lab.root.path), "NO_COLOR": "1"}
        done = subprocess.run([MOSAIC, *arguments], env=env, capture_output=True, text=True, timeout=90)
        assert done.returncode == code, done.stdout + done.stderr
        assert "Traceback" not in done.stderr
        return done.stdout if code == 0 else done.stderr

    return call


def test_the_command_prints_size_rate_metrics_and_cost(mosaic, painting):
    printed = mosaic("frames", painting.run_id[:14], "--seconds", "1")

    pattern = (
        r"320×240  [\d.]+ fps  reward \S+  return \S+  \S+ steps/s  watching costs \S+ ms per frame, \S+% of a core"
    )
    assert re.match(pattern, printed)
    found = json.loads(mosaic("frames", painting.run_id, "--seconds", "1", "--json"))
    assert (found["width"], found["height"], found["channels"], found["through"]) == (320, 240, 3, "shared memory")
    assert found["fps"] > 0
    assert found["core_share"] > 0


def test_the_command_saves_a_picture_that_others_can_read(mosaic, painting, tmp_path):
    mosaic("frames", painting.run_id, "--save", str(tmp_path / "now.png"))

    pixels = np.asarray(Image.open(tmp_path / "now.png"))
    assert pixels.shape == (240, 320, 3)
    assert tuple(pixels[120, 160]) != tuple(pixels[120, 20])
    assert os.listdir(tmp_path) == ["now.png"]


def test_the_command_saves_a_clip_that_moves(mosaic, painting, tmp_path):
    mosaic("frames", painting.run_id, "--clip", str(tmp_path / "run.gif"), "--seconds", "1", "--max-dim", "160")

    clip = Image.open(io.BytesIO((tmp_path / "run.gif").read_bytes()))
    assert (clip.size, clip.n_frames > 2) == ((160, 120), True)
    pictures = []
    for number in range(clip.n_frames):
        clip.seek(number)
        pictures.append(clip.convert("RGB").tobytes())
    assert len(set(pictures)) == len(pictures)


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (("--save", "now.jpg"), 2, "does not end with .png"),
        (("--clip", "run.mp4"), 2, "does not end with .gif"),
        (("--save", "no/such/folder/now.png"), 2, "no/such/folder does not exist. Create it with"),
        (("--save", "there.png"), 1, "exists. Choose another name"),
        (("--clip", "run.gif", "--seconds", "1000"), 2, "the longest is 120 s"),
        (("--hz", "0"), 2, "is not a valid number of frames per second"),
    ],
)
def test_a_file_that_cannot_be_written_is_refused_first(mosaic, lab, home, arguments, code, sentence):
    (home / "there.png").write_bytes(b"precious")
    arguments = [str(home / argument) if "." in argument else argument for argument in arguments]

    printed = mosaic("frames", "01AAAAAAAAAAAAAAAAAAAAAAAA", *arguments, code=code)

    assert sentence in printed
    assert (home / "there.png").read_bytes() == b"precious"


def test_a_file_is_overwritten_on_request(mosaic, painting, tmp_path):
    (tmp_path / "now.png").write_bytes(b"old")

    mosaic("frames", painting.run_id, "--save", str(tmp_path / "now.png"), "--force")

    assert Image.open(tmp_path / "now.png").size == (320, 240)


def test_the_command_explains_why_there_are_no_frames(mosaic, lab):
    run = lab.submit(steps=5)
    lab.wait_until_over(run)

    assert "is over (TERMINATED)" in mosaic("frames", run.run_id, code=1)
    assert "There is no run" in mosaic("frames", "01AAAAAAAAAAAAAAAAAAAAAAAA", code=1)
