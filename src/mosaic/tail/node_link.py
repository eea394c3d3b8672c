"""The link of a run's node to the daemon, besides its telemetry: the CPU time of the run, and frames that are watched.

    this thread ── reads orders ◀─┐
                                  ├── LinkNode ──▶ daemon
    gRPC's thread ── `_reports` ──┘

It also notices that the daemon does not answer, and ends the run after a time, if its cluster's file says so.
"""

import logging
import os
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

import grpc
from mosaic_sdk.fastlane.control import FastLaneError

from mosaic.model import procfs
from mosaic.model.durable import read_json
from mosaic.model.frame_viewing import lease_for
from mosaic.model.rundir import RunDir
from mosaic.tail.far_daemon import FarDaemon
from mosaic.tail.publish import OPTIONS, Publisher
from mosaic.wire import mosaic_pb2 as pb
from mosaic.wire.frame_watcher import FrameWatcher
from mosaic.wire.mosaic_pb2_grpc import TrainerServiceStub

FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 5.0
ANSWERED_WITHIN_S = 20.0  # otherwise the connection is dead, and another one is tried
MOST_UNANSWERED = 2  # frames on their way: a slow connection gets fewer, each the newest
LONGEST_WAIT_S = 1.0
_SILENCE = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.CANCELLED)

log = logging.getLogger(__name__)


class NodeLink:
    """One thread. Whatever fails here is tried again: the telemetry of the run does not depend on it."""

    def __init__(self, run: RunDir, daemon: FarDaemon) -> None:
        self._run = run
        self._daemon = daemon
        self._publisher: Publisher | None = None
        self._is_over = threading.Event()
        self._call: Any = None
        self._view = _View(run.run_id)
        self._unanswered = 0
        self._asked_at: float | None = None  # since when an answer is due
        self._has_stopped = False

    def start(self, publisher: Publisher) -> None:
        self._publisher = publisher
        self._report_s = float(publisher.launch.get("report_s") or LONGEST_PAUSE_S)  # none in an older daemon's
        self._lost_s = float(publisher.launch.get("stop_after_lost_contact_s") or 0)
        threading.Thread(target=self._keep, name="link", daemon=True).start()

    def close(self) -> None:
        self._is_over.set()
        self._view.news.set()
        if self._call:
            self._call.cancel()

    def _keep(self) -> None:
        pause_s = FIRST_PAUSE_S
        while not self._is_over.wait(pause_s):
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S, self._report_s)
            self._stop_if_lost()
            if self._publisher and self._publisher.session and self._talk(self._publisher.session):
                pause_s = FIRST_PAUSE_S

    def _talk(self, session: "list[tuple[str, str]]") -> bool:
        """Until the connection breaks. Whether the daemon answered."""
        had_answer = False
        with self._daemon.channel(OPTIONS) as channel:
            stub = TrainerServiceStub(channel)  # type: ignore[no-untyped-call]  # generated code
            self._unanswered = 0
            self._asked_at = time.monotonic()
            done = threading.Event()
            try:
                self._call = stub.LinkNode(self._reports(done), metadata=session)
                for order in self._call:
                    had_answer = True
                    self._daemon.note_answer()
                    self._asked_at = None
                    self._unanswered = max(0, self._unanswered - 1)
                    self._view.follow(order)
            except grpc.RpcError as error:
                if error.code() not in _SILENCE:
                    self._daemon.note_answer()  # it lives, and refuses
                    log.info("Link: %s %s", error.code().name, error.details())
            finally:
                done.set()
                self._view.news.set()
        return had_answer

    def _reports(self, done: threading.Event) -> "Iterator[pb.NodeReport]":
        """What is sent, in the order in which it is due. gRPC asks for the next one when the last is on its way."""
        due_at = time.monotonic()
        while not done.is_set() and not self._is_over.is_set():
            now = time.monotonic()
            self._check_answer(now)
            if now >= due_at:
                due_at = now + self._report_s
                yield self._sent(pb.NodeReport(run_id=self._run.run_id, cpu_s=self._cpu_s()))
            elif self._unanswered < MOST_UNANSWERED and (report := self._view.look()):
                yield self._sent(report)
            self._view.wait(min(due_at - time.monotonic(), LONGEST_WAIT_S))

    def _sent(self, report: pb.NodeReport) -> pb.NodeReport:
        self._unanswered += 1
        self._asked_at = self._asked_at or time.monotonic()
        return report

    def _check_answer(self, now: float) -> None:
        self._stop_if_lost()
        if self._asked_at is not None and now - self._asked_at > ANSWERED_WITHIN_S:
            self._asked_at = None
            self._call.cancel()

    def _cpu_s(self) -> "float | None":
        started = read_json(self._run.started) or {}
        pid = started.get("root_pid")
        if not isinstance(pid, int) or procfs.start_ticks(pid) != started.get("root_start_ticks"):
            return None
        return procfs.tree_cpu_s(pid)

    def _stop_if_lost(self) -> None:
        """End the run, once, if the daemon has not answered for too long; only the holder can, which started us."""
        silent_s = time.monotonic() - self._daemon.answered_at
        if not self._lost_s or self._has_stopped or silent_s < self._lost_s:
            return
        self._has_stopped = True
        log.warning("The daemon has not answered for %.0f s: this run is ended.", silent_s)
        if (read_json(self._run.started) or {}).get("holder_pid") == os.getppid():
            os.kill(os.getppid(), signal.SIGUSR2)


class _View:
    """The frames that are watched: the newest one of each lane, at most as often as ordered."""

    def __init__(self, run_id: str) -> None:
        self._run_id = run_id
        self._watches: "dict[bytes, _Watch]" = {}
        self.news = threading.Event()

    def follow(self, order: pb.NodeOrder) -> None:
        now = time.monotonic()
        wanted: dict[bytes, _Watch] = {}
        for asked in order.watches:
            key = f"{asked.lane if asked.HasField('lane') else ''} {asked.max_dim}".encode()
            watch = self._watches.get(key) or _Watch(self._run_id)
            watch.order(asked, now)
            wanted[key] = watch
        self._watches = wanted
        self.news.set()

    def wait(self, limit_s: float) -> None:
        """Until an order arrives, or the next frame is due."""
        now = time.monotonic()
        dues = [watch.due_at - now for watch in self._watches.values() if watch.until > now]
        if self.news.wait(max(0.0, min([limit_s, *dues]))):
            self.news.clear()

    def look(self) -> "pb.NodeReport | None":
        now = time.monotonic()
        for watch in self._watches.values():
            if watch.due_at <= now < watch.until and (report := watch.look(now)):
                return report
        return None


class _Watch:
    def __init__(self, run_id: str) -> None:
        self._run_id = run_id
        self._watcher: FrameWatcher | None = None
        self._asked = pb.NodeWatch()
        self.until = self.due_at = 0.0

    def order(self, asked: pb.NodeWatch, now: float) -> None:
        self._asked = asked
        self.until = now + asked.for_s

    def look(self, now: float) -> "pb.NodeReport | None":
        self.due_at = now + 1 / max(self._asked.hz, 0.1)
        try:
            if self._watcher is None:
                self._watcher = self._attach()
            frame = self._watcher.look()
        except OSError:
            self._watcher = None  # not there yet, or gone: a lane that is made is found at the next look
            return None
        except FastLaneError as error:
            return self._report(no_frame=str(error))
        except ImportError:
            return self._report(no_frame="Frames need numpy, which the Python of MOSAIC on the run's node lacks.")
        return self._report(frame=frame) if frame else None

    def _attach(self) -> FrameWatcher:
        lane = self._asked.lane if self._asked.HasField("lane") else None
        return FrameWatcher.attach(self._run_id, lease_for(1 / max(self._asked.hz, 0.1)), self._asked.max_dim, lane)

    def _report(self, **parts: Any) -> pb.NodeReport:
        return pb.NodeReport(run_id=self._run_id, watch=self._asked, **parts)
