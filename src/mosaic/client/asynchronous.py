"""The asyncio client: one method per RPC, typed results, and the errors of `mosaic.model.errors`."""

import asyncio
import json
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import grpc

from mosaic.catalog.request import RunOptions, for_caller, nest, trainer_config, worker_section
from mosaic.client.caller import SLOW_CALL_TIMEOUT_S
from mosaic.client.endpoint import Endpoint, endpoint_elsewhere, find_endpoint, how_to_start, is_elsewhere
from mosaic.client.events import Curve, Event, LogPiece
from mosaic.client.experiment_calls import ExperimentCalls
from mosaic.client.handle import AsyncRunHandle
from mosaic.client.import_calls import ImportCalls
from mosaic.client.request_text import config_text
from mosaic.client.starting import StartedDaemon, may_start
from mosaic.client.status import with_sentence
from mosaic.client.streams import EventPage, EventStream, LogStream
from mosaic.model.errors import BadConfig, NoDaemon
from mosaic.model.home import refuse_odd
from mosaic.model.owner import refuse_foreign
from mosaic.model.rundir import StateRoot
from mosaic.wire import mosaic_pb2 as pb

if TYPE_CHECKING:  # what only some calls need is imported by them: every command waits for this file
    import pandas

    from mosaic.client.dataframe import Runs
    from mosaic.client.evaluation import AsyncEvaluation, EvaluationSource
    from mosaic.client.frames import Frame

REACH_WITHIN_S = 10.0


class AsyncTrainerClient(ExperimentCalls, ImportCalls):
    """Talks to the daemon from asyncio code.

    1. Every failure is a `MosaicError` whose text says what to do.
    2. A stream delivers every event once and in order, even if the daemon restarts or the reader is slow.

    Example::

        async with await AsyncTrainerClient.connect() as client:
            run = await client.run("toy", steps=200)
            async for event in run.events():
                print(event.seq, event.to_dict())
            print((await run.wait()).state)
    """

    def __init__(self, endpoint: Endpoint, patience_s: float | None = 60.0, root: StateRoot | None = None) -> None:
        super().__init__(endpoint, patience_s, root)
        self._background: set[asyncio.Task[None]] = set()

    @classmethod
    async def connect(
        cls, root: StateRoot | None = None, start: bool = True, options: tuple[str, ...] = ()
    ) -> "AsyncTrainerClient":
        """Connect to the daemon of `root` (default: MOSAIC_HOME's); start it, with `options`, if none answers."""
        root = root or StateRoot.from_environment()
        if is_elsewhere():
            return await cls._answering(endpoint_elsewhere(root))
        refuse_odd(root.path)
        refuse_foreign(root.path)
        try:
            return await cls._answering(find_endpoint(root), root)
        except NoDaemon:
            if not start or not may_start():
                raise
        return await cls._started(root, options)

    @classmethod
    async def _answering(cls, endpoint: Endpoint | None, root: StateRoot | None = None) -> "AsyncTrainerClient":
        if endpoint is None:
            raise NoDaemon("No daemon is running. Start it with: mosaic daemon start")
        client = cls(endpoint, root=root)
        try:
            await asyncio.wait_for(client._reach(), REACH_WITHIN_S)
            return client
        except TimeoutError:
            error = NoDaemon(f"The daemon at {endpoint.target} does not answer. Look at it with: mosaic doctor")
        except NoDaemon as refused:
            error = refused
        await client.close()
        raise error

    @classmethod
    async def _started(cls, root: StateRoot, options: tuple[str, ...]) -> "AsyncTrainerClient":
        daemon = StartedDaemon(root, options)
        while True:
            try:
                return await cls._answering(find_endpoint(root), root)
            except NoDaemon:
                daemon.check()
            await asyncio.sleep(0.03)

    async def _reach(self) -> None:
        """Wait for the connection. This is cheaper than a call, and it fails at once if no process listens."""
        state = self._channel.get_state(try_to_connect=True)
        while state is not grpc.ChannelConnectivity.READY:
            if state is grpc.ChannelConnectivity.TRANSIENT_FAILURE:
                raise NoDaemon(f"No daemon answers at {self.target}. {how_to_start(self.target)}")
            await self._channel.wait_for_state_change(state)
            state = self._channel.get_state(try_to_connect=True)

    async def close(self) -> None:
        for task in self._background:
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)
        await self._channel.close()

    def keep(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        """Run `work` in the background until it ends or the client is closed."""
        task = asyncio.ensure_future(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)
        return task

    async def __aenter__(self) -> "AsyncTrainerClient":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # Runs

    async def run(
        self, worker: str, /, *, run_options: RunOptions | Mapping[str, Any] | None = None, **settings: Any
    ) -> AsyncRunHandle:
        """Start a run of `worker` (`NAME` or `NAME@VARIANT`) and return a handle to it at once.

        Every keyword except `run_options` is a setting of the worker, placed by the worker's schema as `mosaic run`
        does. Dots nest: `**{"extras.algo_params.gamma": 0.9}`. BadConfig for a setting that the worker does not know,
        UnknownWorker for a worker that is not installed.
        """
        options = RunOptions.of(run_options)
        try:
            plain = json.loads(config_text(nest(settings.items())))
            # In a thread: the worker may have to be started to describe its settings.
            section = await asyncio.to_thread(worker_section, worker, plain, self._root)
            run = await self.submit_run(trainer_config(section, options), options.idempotency_key)
        except BadConfig as error:
            raise with_sentence(type(error), for_caller(str(error))) from None
        return AsyncRunHandle(self, run)

    async def attach(self, run_id: str) -> AsyncRunHandle:
        """A handle to a run that exists already."""
        return AsyncRunHandle(self, await self.get_run(run_id))

    async def evaluate(
        self,
        script: "EvaluationSource",
        *,
        manual: bool = False,
        run_options: RunOptions | Mapping[str, Any] | None = None,
    ) -> "AsyncEvaluation":
        """Start the evaluation that `script` describes: a mapping, or the path of a YAML, JSON or Python file.

        With `manual` it waits for commands; without, it plays all episodes and ends.
        """
        from mosaic.client.evaluation import AsyncEvaluation, submit_evaluation

        run = await submit_evaluation(self, script, manual, RunOptions.of(run_options), is_remote=self._root is None)
        return AsyncEvaluation(self, run)

    async def attach_evaluation(self, run_id: str) -> "AsyncEvaluation":
        """A handle to an evaluation that exists already."""
        from mosaic.client.evaluation import AsyncEvaluation

        return AsyncEvaluation(self, await self.get_run(run_id))

    # Telemetry

    async def stream_steps(
        self, run_id: str, since_seq: int = 0, until_seq: int | None = None, tail: int = 0
    ) -> AsyncIterator[Event]:
        """The steps of a run, then live ones until it is over."""
        async for batch in self.event_batches("step", run_id, since_seq, until_seq, tail):
            for event in batch:
                yield event

    async def stream_episodes(
        self, run_id: str, since_seq: int = 0, until_seq: int | None = None, tail: int = 0
    ) -> AsyncIterator[Event]:
        """The episodes of a run, then live ones until it is over."""
        async for batch in self.event_batches("episode", run_id, since_seq, until_seq, tail):
            for event in batch:
                yield event

    async def stream_events(
        self, run_id: str, since_seq: int = 0, until_seq: int | None = None, tail: int = 0
    ) -> AsyncIterator[Event]:
        """Steps, episodes, metrics and lifecycle events of a run, then live ones until it is over.

        `since_seq`: begin after this event. `until_seq`: stop after this event. `tail`: begin with the newest N events.
        """
        async for batch in self.event_batches("", run_id, since_seq, until_seq, tail):
            for event in batch:
                yield event

    async def event_batches(
        self, kind: str, run_id: str, since_seq: int = 0, until_seq: int | None = None, tail: int = 0
    ) -> AsyncIterator[list[Event]]:
        """The events in batches, for callers that process many at once. `kind`: step, episode, or empty for all."""
        stream = await self._event_stream(kind, run_id, since_seq, until_seq, tail)
        async with aclosing(stream.batches()) as batches:
            async for batch in batches:
                yield batch

    async def event_pages(self, run_id: str, since_seq: int = 0, tail: int = 0) -> AsyncIterator[EventPage]:
        """As `stream_events`, for a caller that would rather miss events than lag behind: it is told which it missed.

        `event_batches` with `since_seq` and `until_seq` fetches them later.
        """
        stream = await self._event_stream("", run_id, since_seq, None, tail)
        async with aclosing(stream.pages()) as pages:
            async for page in pages:
                yield page

    async def _event_stream(
        self, kind: str, run_id: str, since_seq: int, until_seq: int | None, tail: int
    ) -> EventStream:
        calls = {
            "step": self._stub.StreamRunSteps,
            "episode": self._stub.StreamRunEpisodes,
            "": self._stub.StreamRunEvents,
        }
        run_id = await self._id_of(run_id)
        request = pb.StreamRequest(run_id=run_id, since_seq=since_seq, until_seq=until_seq, tail=tail)

        async def is_over() -> bool:
            return (await self.get_run(run_id)).state.is_over

        return EventStream(self._open(calls[kind]), request, self.target, self._wait_for_daemon, is_over)

    async def stream_logs(
        self, run_id: str, follow: bool = False, tail_bytes: int = 0, since_stdout: int = 0, since_stderr: int = 0
    ) -> AsyncIterator[LogPiece]:
        """Output of the worker that is not telemetry; with `follow`, until the run is over."""
        async for batch in self.log_batches(run_id, follow, tail_bytes, since_stdout, since_stderr):
            for piece in batch:
                yield piece

    async def log_batches(
        self, run_id: str, follow: bool = False, tail_bytes: int = 0, since_stdout: int = 0, since_stderr: int = 0
    ) -> AsyncIterator[list[LogPiece]]:
        """The log in batches."""
        run_id = await self._id_of(run_id)
        request = pb.StreamLogsRequest(
            run_id=run_id, since_stdout=since_stdout, since_stderr=since_stderr, follow=follow, tail_bytes=tail_bytes
        )
        stream = LogStream(self._open(self._stub.StreamRunLogs), request, self.target, self._wait_for_daemon)
        async with aclosing(stream.batches()) as batches:
            async for batch in batches:
                yield batch

    def frames(
        self, run_id: str, hz: float = 30.0, wait_s: float = 10.0, max_dim: int = 0, lane: int | None = None
    ) -> "AsyncIterator[Frame]":
        """Frames of a run, the newest each time, at most `hz` per second, until it is over.

        The worker renders only while this is iterated. Frames come through shared memory if the run is on this
        machine, else through the daemon. NoFrames, with the reason, if there is no frame within `wait_s`. `max_dim`:
        the longest side in pixels (0: full size). `lane`: one lane (0, 1 …) of an evaluation, in place of the grid of
        all of them.
        """
        from mosaic.client.frames import FrameRequest, FrameStream

        request = FrameRequest(hz, wait_s, max_dim, lane)
        call = self._open(self._stub.StreamFrames)
        return FrameStream(call, self.get_run, self._wait_for_daemon, self.target, request).of(run_id)

    async def query_curve(
        self, run_id: str, name: str, points: int = 0, to_step: int | None = None, from_step: int | None = None
    ) -> Curve:
        """A metric, `step/reward`, `episode/return` or `episode/length` in at most `points` (0: 2000) points.

        `from_step` and `to_step` select a part of it, in more detail. The curve is empty if the run has no values of
        that name, or none yet: see `curve_names`.
        """
        request = pb.QueryCurveRequest(run_id=run_id, name=name, points=points, from_step=from_step, to_step=to_step)
        return Curve.from_wire(await self._ask(self._stub.QueryCurve, request))

    async def curve_names(self, run_id: str) -> list[str]:
        """The names of all curves that `query_curve` has for this run."""
        request, names = pb.QueryCurveRequest(run_id=await self._id_of(run_id)), list[str]()
        while True:
            reply = await self._ask(self._stub.QueryCurve, request)
            names += reply.known_names
            if not reply.has_more_names:
                return names
            request.names_after = names[-1]

    async def frame(
        self, runs: "Runs", metrics: str | Sequence[str] | None = None, points: int = 0
    ) -> "pandas.DataFrame":
        """Curves as a pandas DataFrame, a row for each point of each metric; needs the extra [pandas].

        `runs`: one or several references, `Run`s or handles. `metrics`: default all; MosaicError for one that no run
        has. `points`: at most this many for each curve (0: 2000). A curve with more values than that is reduced, and
        `value` is then the mean over a part of it. Columns: run_id, name, algo, env_id, seed, experiment, one for each
        axis of the runs' experiments, metric, step, value, time (UTC).
        """
        from mosaic.client.dataframe import frame

        return await frame(self, runs, metrics, points)

    # Daemon

    async def health(self) -> pb.Health:
        reply: pb.Health = await self._ask(self._stub.GetHealth, pb.GetHealthRequest(), timeout_s=10.0)
        return reply

    async def shutdown(self, kill_runs: bool = False) -> int:
        """Stop the daemon; return how many runs continue without it (none with `kill_runs`)."""
        request = pb.ShutdownRequest(kill_runs=kill_runs)
        reply = await self._ask(self._stub.Shutdown, request, SLOW_CALL_TIMEOUT_S)
        return int(reply.runs_left)
