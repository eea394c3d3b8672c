"""The part of a daemon that a run on a node talks to, for tests of a launcher alone: launch, reports, files.

Launches, reports and files go through the daemon's own classes; of telemetry only the offsets are kept.
"""

import asyncio
import threading
from types import SimpleNamespace

import grpc

from mosaic.daemon.arrivals import Arrivals
from mosaic.daemon.certificate import load_certificate
from mosaic.daemon.incoming import put_file
from mosaic.dispatch.live_runs import LiveRuns
from mosaic.model.durable import read_json
from mosaic.model.errors import NotAllowed
from mosaic.model.states import RunState
from mosaic.wire import mosaic_pb2 as pb
from mosaic.wire.mosaic_pb2_grpc import TrainerServiceServicer, add_TrainerServiceServicer_to_server


class NodeEar(TrainerServiceServicer):
    def __init__(self, root, rundir):
        self.rundir = rundir
        self._arrivals = Arrivals(root, self, LiveRuns())
        self._offsets = {pb.STDOUT: 0, pb.STDERR: 0}
        self._loop = asyncio.new_event_loop()
        key, certificate = load_certificate(root)
        self.certificate = certificate.decode()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.address = self._run(self._serve(key, certificate))

    async def do(self, _):
        """As the registry: the run, whose current attempt is the one of launch.json."""
        attempt = (read_json(self.rundir.launch) or {}).get("attempt", 0)
        return SimpleNamespace(
            run_id=self.rundir.run_id, area="runs", attempt=attempt, state=RunState.INIT, cancel_requested=False
        )

    def close(self):
        self._run(self._server.stop(0))
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    async def TakeLaunch(self, request, context):
        try:
            return await self._arrivals.take(request)
        except NotAllowed as error:
            return await context.abort(grpc.StatusCode.PERMISSION_DENIED, str(error))

    async def RegisterWorker(self, request, context):
        cursor = pb.Cursor(stdout_offset=self._offsets[pb.STDOUT], stderr_offset=self._offsets[pb.STDERR])
        return pb.RegisterWorkerReply(session_token="token", cursor=cursor)

    async def PublishTelemetry(self, requests, context):
        async for request in requests:
            self._offsets[request.stream] = request.end
            yield pb.PublishTelemetryReply(next_offset=request.end)

    async def ReportRun(self, request, context):
        await self._arrivals.report(self.rundir, request)
        return pb.ReportRunReply()

    async def PutFile(self, request, context):
        return pb.PutFileReply(next_offset=put_file(self.rundir, request))

    async def _serve(self, key, certificate):
        self._server = grpc.aio.server()
        add_TrainerServiceServicer_to_server(self, self._server)
        port = self._server.add_secure_port("127.0.0.1:0", grpc.ssl_server_credentials([(key, certificate)]))
        await self._server.start()
        return f"127.0.0.1:{port}"

    def _run(self, work):
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(30)
