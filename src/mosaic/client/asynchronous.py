"""The asyncio client: one method per RPC, typed results, and the errors of `mosaic.model.errors`."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Coroutine, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import grpc

from mosaic.catalog.request import RunOptions, for_caller, nest, trainer_config, worker_section
from mosaic.client.channel import open_channel
from mosaic.client.dataframe import Runs, frame
from mosaic.client.endpoint import Endpoint, endpoint_elsewhere, find_endpoint, how_to_start, is_elsewhere
from mosaic.client.events import Curve, Event, LogPiece
from mosaic.client.experiments import Continued, ExperimentRuns, resume_runs, run_experiment
from mosaic.client.frames import Frame, FrameRequest, FrameStream
from mosaic.client.handle import AsyncRunHandle
from mosaic.client.request_text import command_text, config_text, states_to_wire
from mosaic.client.run import Run, RunList
from mosaic.client.starting import StartedDaemon, may_start
from mosaic.client.status import error_from, with_sentence
from mosaic.client.streams import EventPage, EventStream, LogStream, repeat_until_answered, watch_runs
from mosaic.model.errors import BadConfig, NoDaemon
from mosaic.model.experiment import Experiment
from mosaic.model.home import refuse_odd
from mosaic.model.ordering import ordered, sort_names
from mosaic.model.owner import refuse_foreign
from mosaic.model.rundir import StateRoot
from mosaic.model.states import RunState
from mosaic.model.ulid import is_ulid, new_ulid
from mosaic.wire import mosaic_pb2 as pb
from mosaic.wire.convert import experiment_from_wire
from mosaic.wire.mosaic_pb2_grpc import TrainerServiceStub

if TYPE_CHECKING:  # evaluations and imports: with them every command would take longer to start
    import pandas

    from mosaic.client.evaluation import AsyncEvaluation, EvaluationSource
    from mosaic.client.importing import ImportStream

REACH_WITHIN_S = 10.0
CALL_TIMEOUT_S = 30.0
PAGE_RUNS = 500
SLOW_CALL_TIMEOUT_S = 180.0  # for calls that end process trees or delete large folders


class AsyncTrainerClient:
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
        """`patience_s`: how long a broken stream waits for the next daemon before it raises NoDaemon; None: for ever.

        `root`: the state folder whose workers `run` looks up; None if the daemon is on another machine.
        """
        self.target = endpoint.name
        self.daemon_version = endpoint.version  # empty if only the daemon itself can say it: see `health`
        self._root = root
        self.patience_s = patience_s
        self._background: set[asyncio.Task[None]] = set()
        self._metadata = (("authorization", f"Bearer {endpoint.token}"),)
        self._channel = open_channel(endpoint.target)
        self._stub: Any = TrainerServiceStub(self._channel)  # type: ignore[no-untyped-call]

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

    async def wait_run(self, run_id: str, timeout_s: float | None = None) -> Run:
        """Wait until a run is over and return it; TimeoutError after `timeout_s`."""
        run_id = await self._id_of(run_id)
        try:
            async with asyncio.timeout(timeout_s), aclosing(self.watch_runs(run_ids=(run_id,))) as changes:
                async for change in changes:
                    if run_id in change.deleted or any(run.state.is_over for run in change.runs):
                        break
        except TimeoutError:
            raise TimeoutError(f"Run {run_id} is not over after {timeout_s} s.") from None
        return await self.get_run(run_id)

    async def submit_run(self, config: Mapping[str, Any] | str | Path, idempotency_key: str = "") -> Run:
        """Submit a trainer config: a mapping, JSON text, or the path of a JSON file."""
        request = pb.SubmitRunRequest(config_json=config_text(config), idempotency_key=idempotency_key)
        return Run.from_wire(await self._ask(self._stub.SubmitRun, request))

    async def submit_runs(
        self,
        configs: Sequence[Mapping[str, Any] | str | Path],
        idempotency_keys: Sequence[str] = (),
        *,
        experiment: str = "",
        document: Mapping[str, Any] | None = None,
        is_new_experiment: bool = False,
        is_dry_run: bool = False,
    ) -> list[Run]:
        """Submit many trainer configs in one call: all become runs, or none if one of them is invalid.

        With a `document` the `experiment` is created or extended together with them (`is_new_experiment`: its name
        must be unused). With `is_dry_run` they are only checked, and the result is empty.
        """
        keys = [*idempotency_keys, *[""] * (len(configs) - len(idempotency_keys))]
        request = pb.SubmitRunsRequest(
            runs=[
                pb.SubmitRunRequest(config_json=config_text(config), idempotency_key=key)
                for config, key in zip(configs, keys, strict=True)
            ],
            experiment=None
            if document is None
            else pb.PutExperimentRequest(
                name=experiment, document_json=config_text(document), must_be_new=is_new_experiment
            ),
            is_dry_run=is_dry_run,
        )
        reply = await self._ask(self._stub.SubmitRuns, request, SLOW_CALL_TIMEOUT_S)
        return [Run.from_wire(info) for info in reply.runs]

    # Experiments

    async def put_experiment(self, name: str, document: Mapping[str, Any], note: str | None = None) -> Experiment:
        """Create an experiment, or add the seeds and axis values of `document` to it; see `mosaic.model.experiment`.

        ExperimentDiffers if the name belongs to an experiment with another worker, base or axes.
        """
        request = pb.PutExperimentRequest(name=name, document_json=config_text(document), note=note)
        return experiment_from_wire(await self._ask(self._stub.PutExperiment, request))

    async def experiment(self, name: str) -> Experiment:
        """One experiment with the number of its runs in each state; `list_runs(experiment=name)` has the runs."""
        return experiment_from_wire(await self._ask(self._stub.GetExperiment, pb.ExperimentRequest(name=name)))

    async def experiments(self) -> list[Experiment]:
        """All experiments, newest first."""
        reply = await self._ask(self._stub.ListExperiments, pb.ListExperimentsRequest())
        return [experiment_from_wire(wire) for wire in reply.experiments]

    async def delete_experiment(self, name: str) -> None:
        """Delete an experiment that has no runs any more."""
        await self._ask(self._stub.DeleteExperiment, pb.ExperimentRequest(name=name))

    async def run_experiment(
        self,
        name: str,
        document: Mapping[str, Any],
        *,
        retry_faulted: bool = False,
        is_new: bool = False,
        is_dry_run: bool = False,
    ) -> ExperimentRuns:
        """Submit the runs of the document's grid that the experiment does not have yet, in one call.

        `retry_faulted`: also those whose newest run is FAULTED. `is_new`: the name must be unused.
        """
        return await run_experiment(self, self._root, name, document, retry_faulted, is_new, is_dry_run)

    async def resume_experiment(self, name: str, runs: Sequence[Run]) -> list[Continued]:
        """Continue these runs of an experiment, from their checkpoints, or from the beginning where there is none."""
        return await resume_runs(self, self._root, await self.experiment(name), runs)

    async def cancel_run(self, run_id: str, reason: str = "") -> Run:
        """Request the end of a run. The request is durable when this returns; the run ends shortly afterwards.

        `reason`: one line that says why, for the state CANCELLED.
        """
        request = pb.RunRequest(run_id=run_id, reason=reason)
        return Run.from_wire(await self._ask(self._stub.CancelRun, request))

    async def command_run(self, run_id: str, command: Mapping[str, Any], command_id: str | None = None) -> int:
        """Send a command (`{"cmd": "pause"}`) to a run's worker and return its number, 1, 2, 3 …

        It is durable when this returns, and the worker receives it exactly once: after a restart of the daemon the call
        is repeated with the same id. To repeat a call yourself, choose the `command_id`.
        """
        request = pb.CommandRunRequest(
            run_id=await self._id_of(run_id), command_id=command_id or new_ulid(), command_json=command_text(command)
        )
        call = self._open(self._stub.CommandRun, timeout=CALL_TIMEOUT_S)
        reply = await repeat_until_answered(call, request, self.target, self._wait_for_daemon)
        return int(reply.seq)

    async def delete_run(self, run_id: str) -> int:
        """Delete a run that is over, with its folder; return the number of bytes freed."""
        reply = await self._ask(self._stub.DeleteRun, pb.RunRequest(run_id=run_id), SLOW_CALL_TIMEOUT_S)
        return int(reply.freed_bytes)

    async def get_run(self, run_id: str) -> Run:
        """One run with its history and config. `run_id` may be an id, a prefix of one, a name, `last` or `last~N`."""
        return Run.from_wire(await self._ask(self._stub.GetRun, pb.RunRequest(run_id=run_id)))

    async def edit_run(
        self,
        run_id: str | Collection[str],
        *,
        name: str | None = None,
        note: str | None = None,
        add_tags: Collection[str] = (),
        remove_tags: Collection[str] = (),
    ) -> list[Run]:
        """Change the name, the note and the tags of one run or several; all of them change, or none.

        What is not given stays; an empty note removes it. The change is durable when this returns.
        """
        run_ids = (run_id,) if isinstance(run_id, str) else tuple(run_id)
        request = pb.EditRunRequest(run_ids=run_ids, name=name, note=note, add_tags=add_tags, remove_tags=remove_tags)
        reply = await self._ask(self._stub.EditRun, request)
        return [Run.from_wire(info) for info in reply.runs]

    async def list_runs(
        self,
        states: Collection[RunState | str] = (),
        limit: int = 0,
        *,
        experiment: str = "",
        where: str = "",
        sort: str = "",
        columns: Collection[str] = (),
    ) -> RunList:
        """Newest first. Default: runs in all states, without a limit. A state may be given by its name.

        `experiment`: only its runs. `where`: a condition, such as `algo=ppo and return>400`. `sort`: names of fields,
        settings or metrics, such as `-return,seed`. `columns`: names whose values each run has in `chosen`. BadQuery if
        one does not parse.
        """
        request = pb.ListRunsRequest(
            states=states_to_wire(states),
            limit=limit,
            page_runs=PAGE_RUNS,
            experiment=experiment,
            where=where,
            setting_keys=columns,
        )
        if 0 < limit <= PAGE_RUNS:
            request.sort = sort  # the daemon sends only the first ones
        elif sort:
            return await self._list_sorted(request, sort)
        return await self._list(request)

    async def _list_sorted(self, request: pb.ListRunsRequest, sort: str) -> RunList:
        """More runs than one reply has: they come in pages, and are sorted here."""
        names, limit = sort_names(sort), request.limit
        request.limit = 0
        request.setting_keys.extend(name for name, _ in names)
        found = await self._list(request)
        runs = ordered(found.runs, names, lambda run, name: run.chosen.get(name))
        return replace(found, runs=tuple(runs[: limit or None]))

    async def _list(self, request: pb.ListRunsRequest) -> RunList:
        pages: list[pb.ListRunsReply] = []
        while not pages or request.before:
            pages.append(await self._ask(self._stub.ListRuns, request))
            request.before = pages[-1].next
            request.limit -= min(request.limit, len(pages[-1].runs))
        return RunList.joined(pages)

    def watch_runs(
        self,
        states: Collection[RunState | str] = (),
        limit: int = 0,
        interval_ms: int = 500,
        run_ids: Collection[str] = (),
        *,
        experiment: str = "",
    ) -> AsyncGenerator[RunList, None]:
        """All runs that match, then changes, without end. After 5 s without a change the next item is empty."""
        request = pb.WatchRunsRequest(
            states=states_to_wire(states),
            limit=limit,
            interval_ms=interval_ms,
            run_ids=run_ids,
            experiment=experiment,
        )
        return watch_runs(self._open(self._stub.WatchRuns), request, self.target, self._wait_for_daemon)

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

    async def _id_of(self, reference: str) -> str:
        """The id, for calls that are repeated after a broken connection: by then `last` may mean another run."""
        return reference if is_ulid(reference) else (await self.get_run(reference)).run_id

    def frames(
        self, run_id: str, hz: float = 30.0, wait_s: float = 10.0, max_dim: int = 0, lane: int | None = None
    ) -> AsyncIterator[Frame]:
        """Frames of a run, the newest each time, at most `hz` per second, until it is over.

        The worker renders only while this is iterated. Frames come through shared memory if the run is on this
        machine, else through the daemon. NoFrames, with the reason, if there is no frame within `wait_s`. `max_dim`:
        the longest side in pixels (0: full size). `lane`: one lane (0, 1 …) of an evaluation, in place of the grid of
        all of them.
        """
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
        self, runs: Runs, metrics: str | Sequence[str] | None = None, points: int = 0
    ) -> "pandas.DataFrame":
        """Curves as a pandas DataFrame, a row for each point of each metric; needs the extra [pandas].

        `runs`: one or several references, `Run`s or handles. `metrics`: default all; MosaicError for one that no run
        has. `points`: at most this many for each curve (0: 2000). A curve with more values than that is reduced, and
        `value` is then the mean over a part of it. Columns: run_id, name, algo, env_id, seed, experiment, one for each
        axis of the runs' experiments, metric, step, value, time (UTC).
        """
        return await frame(self, runs, metrics, points)

    # Imported runs

    def import_run(self, format: str, path: str | Path) -> "ImportStream":
        """A stream that imports one run of another program; `path` and `format` are its identity."""
        from mosaic.client.importing import ImportStream

        return ImportStream(self._stub.ImportRun(metadata=self._metadata), format, str(path), self.target)

    # Daemon

    async def health(self) -> pb.Health:
        reply: pb.Health = await self._ask(self._stub.GetHealth, pb.GetHealthRequest(), timeout_s=10.0)
        return reply

    async def shutdown(self, kill_runs: bool = False) -> int:
        """Stop the daemon; return how many runs continue without it (none with `kill_runs`)."""
        request = pb.ShutdownRequest(kill_runs=kill_runs)
        reply = await self._ask(self._stub.Shutdown, request, SLOW_CALL_TIMEOUT_S)
        return int(reply.runs_left)

    async def _ask(self, call: Any, request: Any, timeout_s: float = CALL_TIMEOUT_S) -> Any:
        try:
            return await call(request, timeout=timeout_s, metadata=self._metadata)
        except grpc.aio.AioRpcError as failure:
            raise error_from(failure, self.target) from None

    def _open(self, call: Any, timeout: float | None = None) -> Any:
        return lambda request: call(request, metadata=self._metadata, timeout=timeout)

    async def _wait_for_daemon(self) -> None:
        """Wait until a daemon answers at this address again."""
        try:
            await self._stub.GetHealth(
                pb.GetHealthRequest(), metadata=self._metadata, timeout=self.patience_s, wait_for_ready=True
            )
        except grpc.aio.AioRpcError as failure:
            raise error_from(failure, self.target) from None
