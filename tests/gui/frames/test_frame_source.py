"""Real frames of a real worker, which renders only while they can be seen."""

import dataclasses
import os
import signal
import time

import pytest
from mosaic_sdk.fastlane.control import GENERATION, LEASE, ControlPage, create_fastlane_name
from mosaic_sdk.fastlane.ring import NEWEST, RingFile
from PySide6.QtWidgets import QTabWidget, QWidget

from mosaic.gui.frames.source import FrameSource
from mosaic.gui.frames.view import FrameView
from mosaic.model.states import RunState

WAIT_MS = 30000


@pytest.fixture
def watch(qtbot, context):
    """A view in a tab widget beside an empty page, and its source with what it sent."""

    kept = []

    def open_view(run, lane=None):
        tabs = QTabWidget()
        kept.append(tabs)
        qtbot.addWidget(tabs)
        view = FrameView(context)
        tabs.addTab(view, "frames")
        tabs.addTab(QWidget(), "other")
        source = FrameSource(context, run.run_id, view, lane)
        frames = []
        source.arrived.connect(frames.append)
        tabs.show()
        return tabs, source, frames

    return open_view


def lease_of(run):
    page = ControlPage.open(create_fastlane_name(run.run_id))
    lease = page.words[LEASE]
    page.forget()
    return lease


def newest_of(run):
    """The number of the newest frame, read without becoming a viewer."""
    lane = create_fastlane_name(run.run_id)
    page = ControlPage.open(lane)
    ring = RingFile.open(lane, page.words[GENERATION])
    number = ring._words[NEWEST]
    ring.close()
    page.forget()
    return number


def steps_of(hub, run):
    return hub.runs[run.run_id].summary.env_steps


def test_frames_arrive_through_shared_memory(qtbot, watch, painting):
    _, _source, frames = watch(painting)

    qtbot.waitUntil(lambda: len(frames) > 3, timeout=WAIT_MS)

    assert frames[-1].size == (320, 240)
    assert frames[-1].is_shared
    assert len({frame.number for frame in frames}) == len(frames)


@pytest.mark.parametrize("way", ["other tab", "minimised", "closed", "paused"])
def test_the_run_is_watched_only_while_the_view_is_seen(qtbot, watch, painting, way):
    tabs, source, frames = watch(painting)
    qtbot.waitUntil(lambda: len(frames) > 1, timeout=WAIT_MS)

    if way == "other tab":
        tabs.setCurrentIndex(1)
    elif way == "minimised":
        tabs.showMinimized()
    elif way == "closed":
        tabs.close()
    else:
        source.set_paused(True)
    qtbot.waitUntil(lambda: not source.is_watching, timeout=WAIT_MS)
    lease = lease_of(painting)
    count = len(frames)
    qtbot.wait(100)

    assert lease_of(painting) == lease
    assert len(frames) == count


def test_a_view_that_comes_back_gets_frames_again(qtbot, watch, painting):
    tabs, source, frames = watch(painting)
    qtbot.waitUntil(lambda: len(frames) > 1, timeout=WAIT_MS)

    tabs.setCurrentIndex(1)
    qtbot.waitUntil(lambda: not source.is_watching, timeout=WAIT_MS)
    count = len(frames)
    tabs.setCurrentIndex(0)

    qtbot.waitUntil(lambda: len(frames) > count, timeout=WAIT_MS)


def test_the_worker_stops_rendering_when_nobody_looks(qtbot, watch, painting):
    tabs, source, frames = watch(painting)
    qtbot.waitUntil(lambda: len(frames) > 1, timeout=WAIT_MS)

    tabs.setCurrentIndex(1)
    qtbot.waitUntil(lambda: not source.is_watching, timeout=WAIT_MS)
    qtbot.waitUntil(lambda: time.monotonic_ns() > lease_of(painting) + 100_000_000, timeout=WAIT_MS)
    number = newest_of(painting)
    steps = steps_of(context_hub := source._context.hub, painting)
    qtbot.waitUntil(lambda: steps_of(context_hub, painting) > steps, timeout=WAIT_MS)

    assert newest_of(painting) == number


def test_a_run_that_ends_says_so_and_is_not_watched(qtbot, watch, lab):
    run = lab.submit("ends", steps=1_000_000, rate=200, paint=True)
    _, source, frames = watch(run)
    qtbot.waitUntil(lambda: len(frames) > 1, timeout=WAIT_MS)

    lab.client.cancel_run(run.run_id)

    qtbot.waitUntil(lambda: source.situation.is_over, timeout=WAIT_MS)
    assert not source.is_watching
    assert source.situation.title == "The run is over"


def test_a_worker_without_frames_is_explained(qtbot, watch, lab):
    run = lab.submit("blind", steps=1_000_000, rate=20)
    _, source, _ = watch(run)

    qtbot.waitUntil(lambda: "created no environment" in source.situation.text, timeout=WAIT_MS)

    assert source.situation.title == "No frame yet"
    lab.client.cancel_run(run.run_id)


def test_a_run_that_waits_is_explained(qtbot, watch, lab):
    run = lab.submit("waits", steps=5, paint=True, resources={"cpus": 32})
    other = lab.submit("waits too", steps=5, paint=True, resources={"cpus": 32})
    _, source, _ = watch(other)

    qtbot.waitUntil(lambda: source.situation.title == "The run has not started yet", timeout=WAIT_MS)
    lab.client.cancel_run(other.run_id)
    lab.client.cancel_run(run.run_id)


def test_frames_continue_when_the_worker_starts_its_lane_again(qtbot, watch, context):
    """The segment is removed and written again by another process, as after a restart of the worker."""
    import numpy as np
    from mosaic_sdk.fastlane import FastLaneConfig, FastLaneWriter

    run_id = f"again{os.getpid()}"
    run = type("Run", (), {"run_id": run_id, "state": RunState.EXECUTING, "waiting_for": "", "on": ""})()
    context.hub.runs[run_id] = run
    writer = FastLaneWriter.create(run_id, FastLaneConfig(8, 8))
    _, source, frames = watch(run)

    def publish(value):
        if source.is_watching:
            writer.publish(np.full((8, 8, 3), value, np.uint8))
        return any(frame.pixels[0, 0, 0] == value for frame in frames)

    qtbot.waitUntil(lambda: publish(1), timeout=WAIT_MS)
    writer.unlink()
    writer = FastLaneWriter.create(run_id, FastLaneConfig(8, 8))
    qtbot.waitUntil(lambda: publish(2), timeout=WAIT_MS)
    writer.unlink()


def test_a_daemon_that_dies_stops_no_frame(qtbot, watch, painting, lab):
    _, _source, frames = watch(painting)
    qtbot.waitUntil(lambda: len(frames) > 1, timeout=WAIT_MS)

    os.kill(lab.daemon_pid(), signal.SIGKILL)
    count = len(frames)

    qtbot.waitUntil(lambda: len(frames) > count + 10, timeout=WAIT_MS)
    lab.restart_daemon()


def test_a_remote_run_is_relayed(qtbot, watch, painting, context, monkeypatch):
    monkeypatch.setattr("mosaic.client.frames.FrameStream._attach", lambda self, run_id: None)
    far = dataclasses.replace(context, root=None, host="user@box")
    view = FrameView(far)
    qtbot.addWidget(view)
    source = FrameSource(far, painting.run_id, view)
    frames = []
    source.arrived.connect(frames.append)
    view.show()

    qtbot.waitUntil(lambda: len(frames) > 1, timeout=WAIT_MS)
    assert not frames[-1].is_shared
    view.hide()
    qtbot.waitUntil(lambda: not source.is_watching, timeout=WAIT_MS)
