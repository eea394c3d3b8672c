"""A stand-in for the daemon: a real gRPC server on a Unix socket; its in-memory store refuses wrong offsets."""

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent import futures
from pathlib import Path

import grpc

from mosaic.model.durable import write_json
from mosaic.model.rundir import StateRoot
from mosaic.wire import mosaic_pb2 as pb
from mosaic.wire.mosaic_pb2_grpc import TrainerServiceServicer, add_TrainerServiceServicer_to_server

RUN_ID = "01HZY0000000000000000000AB"
LIMIT_S = 60.0


class MemoryStore(TrainerServiceServicer):
    """What a run's telemetry file would hold. `fault` may stop a request, or its answer, with a status."""

    def __init__(self):
        self.lock = threading.Lock()
        self.next_offset = {pb.STDOUT: 0, pb.STDERR: 0}
        self.events, self.texts, self.rejects, self.gaps = [], [], [], []
        self.requests = []
        self.streams = self.open_streams = 0
        self.requests_per_stream: float = float("inf")
        self.registrations = []
        self.durable = 0
        self.drained = threading.Event()
        self.fault: Callable[[pb.PublishTelemetryRequest, str], grpc.StatusCode | None] = lambda request, when: None

    def RegisterWorker(self, request, context):
        with self.lock:
            self.registrations.append(request)
            if (code := self.fault(request, "register")) is not None:
                context.abort(code, "fault")
            cursor = pb.Cursor(stdout_offset=self.next_offset[pb.STDOUT], stderr_offset=self.next_offset[pb.STDERR])
            return pb.RegisterWorkerReply(session_token="session", cursor=cursor)

    def PublishTelemetry(self, requests, context):
        if ("authorization", "Bearer session") not in context.invocation_metadata():
            context.abort(grpc.StatusCode.UNAUTHENTICATED, "no session")
        with self.lock:
            self.streams += 1
            self.open_streams += 1
        try:
            for taken, request in enumerate(requests, start=1):
                yield self._take(request, context)
                if taken >= self.requests_per_stream:
                    return
        finally:
            with self.lock:
                self.open_streams -= 1

    def _take(self, request, context):
        with self.lock:
            if (code := self.fault(request, "before")) is not None:
                context.abort(code, "fault before the commit")
            if request.start != self.next_offset[request.stream]:
                context.abort(grpc.StatusCode.FAILED_PRECONDITION, "wrong offset")
            self._commit(request)
            if (code := self.fault(request, "after")) is not None:
                context.abort(code, "the answer got lost")
            return pb.PublishTelemetryReply(next_offset=request.end, durable_offset=self.durable)

    def _commit(self, request):
        self.next_offset[request.stream] = request.end
        self.events += request.events
        self.texts += request.texts
        self.rejects += request.rejects
        self.gaps += request.gaps
        self.requests.append(request)
        if request.drained:
            self.drained.set()

    def steps(self):
        return [event.step.step_index for event in self.events]

    def text(self, stream=pb.STDOUT):
        return b"".join(text.text for text in self.texts if text.stream == stream)


class Bench:
    """A run folder, its spool, and a server that can be stopped and started at the same address."""

    def __init__(self, folder: Path):
        self.root = StateRoot(folder)
        self.root.make()
        self.run = self.root.run("runs", RUN_ID)
        self.run.make()
        self.socket = f"unix:{self.root.socket}"
        self.store = MemoryStore()
        self.server = None
        self.tailers = []
        write_json(self.run.launch, {"version": 1, "run_id": RUN_ID, "attempt": 1, "nonce": "n"})
        self.stdout = open(self.run.stdout, "ab", buffering=0)  # noqa: SIM115
        self.stderr = open(self.run.stderr, "ab", buffering=0)  # noqa: SIM115

    def start_server(self):
        options = [("grpc.max_receive_message_length", 64 << 20), ("grpc.so_reuseport", 0)]
        self.server = grpc.server(futures.ThreadPoolExecutor(4), options=options)
        add_TrainerServiceServicer_to_server(self.store, self.server)
        self.server.add_insecure_port(self.socket)
        self.server.start()

    def stop_server(self):
        self.server.stop(None).wait()
        self.server = None

    def start_tailer(self, *more: str, pass_fds: tuple[int, ...] = (), module: str = "mosaic.tail") -> subprocess.Popen:
        argv = [sys.executable, "-m", module, "--run-dir", str(self.run.path)]
        argv += ["--address", self.socket, "--root", str(self.root.path), *more]
        with open(self.run.tailer_log, "ab") as log:
            tailer = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, pass_fds=pass_fds)
        self.tailers.append(tailer)
        return tailer

    def with_write_fds(self) -> tuple[list[str], tuple[int, ...]]:
        fds = (self.stdout.fileno(), self.stderr.fileno())
        return ["--stdout-fd", str(fds[0]), "--stderr-fd", str(fds[1])], fds

    def end_run(self):
        write_json(self.run.exit, {"version": 1, "attempt": 1, "exit_code": 0})

    def finish(self, tailer):
        """End the run and let the tailer drain it."""
        self.end_run()
        assert tailer.wait(LIMIT_S) == 0, self.run.tailer_log.read_text()[-2000:]

    def close(self):
        for tailer in self.tailers:
            if tailer.poll() is None:
                tailer.kill()
            tailer.wait()
        if self.server:
            self.stop_server()
        self.stdout.close()
        self.stderr.close()


def wait_until(condition: Callable[[], object], what: str, limit_s: float = LIMIT_S):
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline, f"waited {limit_s} s for: {what}"
        time.sleep(0.005)


def step_line(index: int, **more: object) -> bytes:
    rest = "".join(f', "{name}": {value}' for name, value in more.items())
    return f'{{"type": "step", "step_index": {index}, "reward": 1.0{rest}}}\n'.encode()
