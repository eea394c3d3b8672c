"""The gRPC service of the daemon. A handler parses, calls and converts; the guard handles errors and tokens."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from typing import Any

from mosaic.daemon.admission import refuse_other_run
from mosaic.daemon.auth import bearer
from mosaic.daemon.editing import edit_runs
from mosaic.daemon.experiments import put_experiment, submit_runs
from mosaic.daemon.frames import Frames
from mosaic.daemon.health import report_health
from mosaic.daemon.listing import curve_names, list_runs
from mosaic.daemon.lost_telemetry import refuse_lost
from mosaic.daemon.trainer import Trainer
from mosaic.daemon.watching import Query, watch
from mosaic.ingest.check import LARGEST
from mosaic.ingest.follow import stream_logs
from mosaic.model.errors import BadConfig
from mosaic.model.run import RunRecord
from mosaic.model.rundir import RunDir
from mosaic.wire import mosaic_pb2 as pb
from mosaic.wire.convert import experiment_to_wire, state_from_wire
from mosaic.wire.mosaic_pb2_grpc import TrainerServiceServicer


class Service(TrainerServiceServicer):
    def __init__(self, trainer: Trainer, stop: Callable[[bool], None]) -> None:
        self._trainer = trainer
        self._stop = stop
        self._frames = Frames(trainer)

    # ---- runs

    async def SubmitRun(self, request: pb.SubmitRunRequest, context: Any) -> pb.RunInfo:
        return await self._trainer.submit(request.config_json, request.idempotency_key)

    async def CancelRun(self, request: pb.RunRequest, context: Any) -> pb.RunInfo:
        return await self._trainer.cancel(request.run_id, request.reason)

    async def CommandRun(self, request: pb.CommandRunRequest, context: Any) -> pb.CommandRunReply:
        seq, is_repeat = await self._trainer.commands.send(request.run_id, request.command_id, request.command_json)
        return pb.CommandRunReply(seq=seq, is_repeat=is_repeat)

    async def DeleteRun(self, request: pb.RunRequest, context: Any) -> pb.DeleteRunReply:
        return pb.DeleteRunReply(freed_bytes=await self._trainer.delete(request.run_id))

    async def GetRun(self, request: pb.RunRequest, context: Any) -> pb.RunInfo:
        return await self._trainer.get(request.run_id)

    async def ListRuns(self, request: pb.ListRunsRequest, context: Any) -> pb.ListRunsReply:
        return await list_runs(self._trainer, request)

    async def EditRun(self, request: pb.EditRunRequest, context: Any) -> pb.ListRunsReply:
        return await edit_runs(self._trainer, request)

    async def WatchRuns(self, request: pb.WatchRunsRequest, context: Any) -> AsyncIterator[pb.ListRunsReply]:
        interval_s = max(0.05, (request.interval_ms or 500) / 1000)
        states = tuple(map(state_from_wire, request.states))
        query = Query(states, request.limit, tuple(request.run_ids), request.experiment)
        async for reply in watch(self._trainer, query, interval_s):
            yield reply

    # ---- experiments

    async def SubmitRuns(self, request: pb.SubmitRunsRequest, context: Any) -> pb.SubmitRunsReply:
        return await submit_runs(self._trainer, request)

    async def PutExperiment(self, request: pb.PutExperimentRequest, context: Any) -> pb.ExperimentInfo:
        return await put_experiment(self._trainer, request)

    async def GetExperiment(self, request: pb.ExperimentRequest, context: Any) -> pb.ExperimentInfo:
        return experiment_to_wire(await self._trainer.registry.do(lambda r: r.experiments.get(request.name)))

    async def ListExperiments(self, request: pb.ListExperimentsRequest, context: Any) -> pb.ListExperimentsReply:
        found = await self._trainer.registry.do(lambda r: r.experiments.list())
        return pb.ListExperimentsReply(experiments=map(experiment_to_wire, found))

    async def DeleteExperiment(self, request: pb.ExperimentRequest, context: Any) -> pb.DeleteExperimentReply:
        await self._trainer.registry.do(lambda r: r.experiments.delete(request.name))
        return pb.DeleteExperimentReply()

    # ---- workers and tailers

    async def RegisterWorker(self, request: pb.RegisterWorkerRequest, context: Any) -> pb.RegisterWorkerReply:
        token, cursor = await self._trainer.register(
            request.run_id, request.attempt, request.nonce, request.capabilities_json
        )
        return pb.RegisterWorkerReply(session_token=token, cursor=cursor)

    async def Heartbeat(self, request: pb.HeartbeatRequest, context: Any) -> pb.HeartbeatReply:
        progress = request.progress if request.HasField("progress") else None
        if progress is not None and progress < 0:
            raise BadConfig("progress", f"is {progress}; it counts from 0.")
        await self._trainer.heartbeat(request.run_id, bearer(context.invocation_metadata()), progress)
        return pb.HeartbeatReply()

    async def PublishTelemetry(
        self, requests: AsyncIterator[pb.PublishTelemetryRequest], context: Any
    ) -> AsyncIterator[pb.PublishTelemetryReply]:
        token = bearer(context.invocation_metadata())
        async for request in self._trainer.request_streams.each(requests):
            rundir = await self._trainer.sessions.allow(request.run_id, token)
            yield await self._trainer.ingest.publish(rundir, request)

    async def LinkNode(self, requests: AsyncIterator[pb.NodeReport], context: Any) -> AsyncIterator[pb.NodeOrder]:
        token = bearer(context.invocation_metadata())
        reports = self._trainer.request_streams.each(requests)
        async with aclosing(self._trainer.node_links.serve(reports, token, self._trainer.sessions)) as orders:
            async for order in orders:
                yield order

    # ---- nodes without a shared file system

    async def TakeLaunch(self, request: pb.TakeLaunchRequest, context: Any) -> pb.TakeLaunchReply:
        refuse_other_run(request.run_id, context.invocation_metadata())
        return await self._trainer.arrivals.take(request)

    async def ReportRun(self, request: pb.ReportRunRequest, context: Any) -> pb.ReportRunReply:
        rundir = await self._trainer.sessions.allow(request.run_id, bearer(context.invocation_metadata()))
        await self._trainer.arrivals.report(rundir, request)
        return pb.ReportRunReply()

    async def PutFile(self, request: pb.PutFileRequest, context: Any) -> pb.PutFileReply:
        rundir = await self._trainer.sessions.allow(request.run_id, bearer(context.invocation_metadata()))
        await self._trainer.arrivals.refuse_complete(request.run_id)
        return pb.PutFileReply(next_offset=await self._trainer.incoming.put(rundir, request))

    # ---- streams

    async def StreamRunSteps(self, request: pb.StreamRequest, context: Any) -> AsyncIterator[pb.EventBatch]:
        async for batch in self._stream(request, ("step",)):
            yield batch

    async def StreamRunEpisodes(self, request: pb.StreamRequest, context: Any) -> AsyncIterator[pb.EventBatch]:
        async for batch in self._stream(request, ("episode",)):
            yield batch

    async def StreamRunEvents(self, request: pb.StreamRequest, context: Any) -> AsyncIterator[pb.EventBatch]:
        async for batch in self._stream(request, None):
            yield batch

    async def _stream(self, request: pb.StreamRequest, kinds: tuple[str, ...] | None) -> AsyncIterator[pb.EventBatch]:
        record, rundir = await self._stored(request.run_id)
        since = min(request.since_seq, LARGEST)
        if request.tail:
            since = await self._trainer.ingest.since_of_tail(rundir, request.tail, kinds)
        until = min(request.until_seq, LARGEST) if request.HasField("until_seq") else None
        read, live = self._trainer.ingest.reader(rundir), not record.state.is_over
        async for batch in self._trainer.broadcaster.stream(read, record.run_id, since, until, kinds, live):
            yield batch

    async def StreamRunLogs(self, request: pb.StreamLogsRequest, context: Any) -> AsyncIterator[pb.LogBatch]:
        record, rundir = await self._stored(request.run_id)
        async for batch in stream_logs(self._trainer.ingest, rundir, request, live=not record.state.is_over):
            yield batch

    async def StreamFrames(self, request: pb.StreamFramesRequest, context: Any) -> AsyncIterator[pb.Frame]:
        async for frame in self._frames.stream(request):
            yield frame

    async def QueryCurve(self, request: pb.QueryCurveRequest, context: Any) -> pb.Curve:
        _, rundir = await self._stored(request.run_id)
        if not request.name:
            return curve_names(await self._trainer.ingest.curve_names(rundir), request.names_after)
        return await self._trainer.ingest.curve(rundir, request)

    async def _stored(self, run_id: str) -> tuple[RunRecord, RunDir]:
        """A run whose telemetry is asked for."""
        record = await self._trainer.find(run_id)
        rundir = self._trainer.rundir(record)
        refuse_lost(record, rundir)
        return record, rundir

    # ---- imported runs

    async def ImportRun(
        self, requests: AsyncIterator[pb.ImportRunRequest], context: Any
    ) -> AsyncIterator[pb.ImportRunReply]:
        parts = self._trainer.request_streams.each(requests)
        async with aclosing(self._trainer.importer.receive(parts)) as replies:
            async for reply in replies:
                yield reply

    # ---- daemon

    async def GetHealth(self, request: pb.GetHealthRequest, context: Any) -> pb.Health:
        return await report_health(self._trainer)

    async def Shutdown(self, request: pb.ShutdownRequest, context: Any) -> pb.ShutdownReply:
        if request.kill_runs:
            await self._trainer.end_all()
        health = await report_health(self._trainer)
        asyncio.get_running_loop().call_soon(self._stop, True)
        return pb.ShutdownReply(runs_left=health.live_runs)
