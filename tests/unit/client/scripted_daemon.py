"""A gRPC server on a real socket that gives the answers a test has scripted; it has no real runs."""

import asyncio
import threading

import grpc

from mosaic.wire import mosaic_pb2 as pb
from mosaic.wire.mosaic_pb2_grpc import TrainerServiceServicer, add_TrainerServiceServicer_to_server

RUN_ID = "01JCQ000000000000000000000"
TOKEN = "secret"


def step(seq):
    return pb.Event(seq=seq, step=pb.Step(step_index=seq - 1, reward=1.0))


class ScriptedService(TrainerServiceServicer):
    """Each StreamRunEvents call takes the next turn of the script; a range with until_seq is answered whole."""

    def __init__(self, turns=(), log_turns=(), state=pb.TERMINATED):
        self.turns = list(turns)
        self.log_turns = list(log_turns)
        self.state = state
        self.requests = []
        self.metadata = []
        self.pages = {}  # of ListRuns, by where they begin

    async def StreamRunEvents(self, request, context):
        self.requests.append(request)
        if request.HasField("until_seq"):
            yield pb.EventBatch(events=[step(seq) for seq in range(request.since_seq + 1, request.until_seq + 1)])
            return
        for item in self.turns.pop(0):
            if isinstance(item, grpc.StatusCode):
                await context.abort(item, f"the script says {item.name}")
            yield item

    async def StreamRunLogs(self, request, context):
        self.requests.append(request)
        for item in self.log_turns.pop(0):
            if isinstance(item, grpc.StatusCode):
                await context.abort(item, "broken")
            yield item

    async def GetRun(self, request, context):
        if request.run_id not in (RUN_ID, "last"):
            await context.abort(grpc.StatusCode.NOT_FOUND, f"There is no run '{request.run_id}'.")
        self.metadata.append(dict(context.invocation_metadata()))
        return pb.RunInfo(run_id=RUN_ID, state=self.state)

    async def WatchRuns(self, request, context):
        sent = None
        while True:
            if self.state != sent:
                sent = self.state
                yield pb.ListRunsReply(runs=[self.info()], total=1)
            await asyncio.sleep(0.01)

    async def ListRuns(self, request, context):
        self.requests.append(request)
        return self.pages[request.before]

    async def QueryCurve(self, request, context):
        names = {"": ["a", "b"], "b": ["c"]}[request.names_after]
        return pb.Curve(known_names=names, has_more_names=not request.names_after)

    def info(self):
        return pb.RunInfo(run_id=RUN_ID, state=self.state)

    async def GetHealth(self, request, context):
        return pb.Health(healthy=True, pid=1)


class ScriptedDaemon:
    """Serves on `socket` from `start` to `stop`, in its own thread."""

    def __init__(self, socket, service):
        self.target = f"unix:{socket}"
        self.service = service
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()

    def start(self):
        self._do(self._start())
        return self

    def stop(self):
        self._do(self._server.stop(0))

    def close(self):
        self.stop()
        self._loop.call_soon_threadsafe(self._loop.stop)

    async def _start(self):
        self._server = grpc.aio.server()
        add_TrainerServiceServicer_to_server(self.service, self._server)
        self._server.add_insecure_port(self.target)
        await self._server.start()

    def _do(self, work):
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(20)
