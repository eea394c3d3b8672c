"""The client for code without asyncio."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from mosaic.catalog.request import RunOptions
from mosaic.client.asynchronous import AsyncTrainerClient
from mosaic.client.endpoint import Endpoint
from mosaic.client.events import Curve, Event, LogPiece
from mosaic.client.handle import RunHandle
from mosaic.client.run import Run, RunList
from mosaic.model.errors import MosaicError
from mosaic.model.experiment import Experiment
from mosaic.model.rundir import StateRoot
from mosaic.model.states import RunState
from mosaic.wire import mosaic_pb2 as pb

if TYPE_CHECKING:
    import pandas

    from mosaic.client.dataframe import Runs
    from mosaic.client.evaluation import Evaluation, EvaluationSource
    from mosaic.client.experiments import Continued, ExperimentRuns
    from mosaic.client.frames import Frame
    from mosaic.client.importing import Imported
    from mosaic.imports.source import Source

T = TypeVar("T")


class LoopThread:
    """An event loop in its own thread, so that Ctrl-C interrupts the caller and never a half-finished call."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="mosaic-client", daemon=True)
        self._thread.start()

    @property
    def is_closed(self) -> bool:
        return self._loop.is_closed()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        if self.is_closed:
            work.close()  # or Python warns that it was never awaited
            raise MosaicError("This client is closed. Connect a new one with: TrainerClient.connect()")
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def iterate(self, batches: AsyncIterator[T]) -> Iterator[T]:
        """Cross from one thread to the other once per batch, not once per event."""
        try:
            while (batch := self.run(_next(batches))) is not None:
                yield batch
        finally:
            if not self.is_closed:
                self.run(_close(batches))

    def listen(self, source: AsyncIterator[T], receive: Callable[[T | MosaicError], None]) -> Callable[[], None]:
        listening = self.run(_begin(_pump(source, receive)))
        return lambda: self.run(_end(listening))

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class TrainerClient:
    """Talks to the daemon: start runs, follow them, read their results.

    Its methods are those of `AsyncTrainerClient`, with plain iterators for streams.

    Example::

        with TrainerClient.connect() as client:  # starts the daemon if none is running
            run = client.run("toy", steps=200)
            for event in run.events():
                print(event.seq, event.to_dict())
            print(run.wait().state)
    """

    def __init__(self, inner: AsyncTrainerClient, loop: LoopThread) -> None:
        self._inner = inner
        self._loop = loop

    @classmethod
    def connect(
        cls, root: StateRoot | None = None, start: bool = True, options: tuple[str, ...] = ()
    ) -> "TrainerClient":
        """Connect to the daemon of `root` (default: MOSAIC_HOME's); start it, with `options`, if none answers."""
        return cls._in_thread(lambda: AsyncTrainerClient.connect(root, start, options))

    @classmethod
    def at(cls, endpoint: Endpoint) -> "TrainerClient":
        """A client of exactly this endpoint. No daemon is started, and no call is made yet."""

        async def make() -> AsyncTrainerClient:
            return AsyncTrainerClient(endpoint)

        return cls._in_thread(make)

    @classmethod
    def _in_thread(cls, make: Any) -> "TrainerClient":
        loop = LoopThread()
        try:
            return cls(loop.run(make()), loop)
        except BaseException:
            loop.stop()
            raise

    @property
    def target(self) -> str:
        return self._inner.target

    @property
    def daemon_version(self) -> str:
        return self._inner.daemon_version

    def close(self) -> None:
        """Close it. A second call does nothing."""
        if not self._loop.is_closed:
            self._loop.run(self._inner.close())
            self._loop.stop()

    def __enter__(self) -> "TrainerClient":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(
        self, worker: str, /, *, run_options: RunOptions | Mapping[str, Any] | None = None, **settings: Any
    ) -> RunHandle:
        """Start a run of `worker` (`NAME` or `NAME@VARIANT`) and return a handle to it at once.

        Every keyword except `run_options` is a setting of the worker: see `AsyncTrainerClient.run`.
        """
        started = self._loop.run(self._inner.run(worker, run_options=run_options, **settings))
        return RunHandle(self, started.latest)

    def attach(self, run_id: str) -> RunHandle:
        """A handle to a run that exists already."""
        return RunHandle(self, self.get_run(run_id))

    def evaluate(
        self,
        script: "EvaluationSource",
        *,
        manual: bool = False,
        run_options: RunOptions | Mapping[str, Any] | None = None,
    ) -> "Evaluation":
        """Start the evaluation that `script` describes: a mapping, or the path of a YAML, JSON or Python file.

        With `manual` it waits for commands; without, it plays all episodes and ends.
        """
        from mosaic.client.evaluation import Evaluation

        started = self._loop.run(self._inner.evaluate(script, manual=manual, run_options=run_options))
        return Evaluation(self, started, self._loop.run)

    def attach_evaluation(self, run_id: str) -> "Evaluation":
        """A handle to an evaluation that exists already."""
        from mosaic.client.evaluation import Evaluation

        return Evaluation(self, self._loop.run(self._inner.attach_evaluation(run_id)), self._loop.run)

    def wait_run(self, run_id: str, timeout_s: float | None = None) -> Run:
        return self._loop.run(self._inner.wait_run(run_id, timeout_s))

    def submit_run(self, config: Mapping[str, Any] | str | Path, idempotency_key: str = "") -> Run:
        return self._loop.run(self._inner.submit_run(config, idempotency_key))

    def submit_runs(
        self,
        configs: Sequence[Mapping[str, Any] | str | Path],
        idempotency_keys: Sequence[str] = (),
        *,
        experiment: str = "",
        document: Mapping[str, Any] | None = None,
        is_new_experiment: bool = False,
        is_dry_run: bool = False,
    ) -> list[Run]:
        return self._loop.run(
            self._inner.submit_runs(
                configs,
                idempotency_keys,
                experiment=experiment,
                document=document,
                is_new_experiment=is_new_experiment,
                is_dry_run=is_dry_run,
            )
        )

    def put_experiment(self, name: str, document: Mapping[str, Any], note: str | None = None) -> Experiment:
        return self._loop.run(self._inner.put_experiment(name, document, note))

    def experiment(self, name: str) -> Experiment:
        return self._loop.run(self._inner.experiment(name))

    def experiments(self) -> list[Experiment]:
        return self._loop.run(self._inner.experiments())

    def delete_experiment(self, name: str) -> None:
        return self._loop.run(self._inner.delete_experiment(name))

    def run_experiment(
        self,
        name: str,
        document: Mapping[str, Any],
        *,
        retry_faulted: bool = False,
        is_new: bool = False,
        is_dry_run: bool = False,
    ) -> "ExperimentRuns":
        return self._loop.run(
            self._inner.run_experiment(
                name, document, retry_faulted=retry_faulted, is_new=is_new, is_dry_run=is_dry_run
            )
        )

    def resume_experiment(self, name: str, runs: Sequence[Run]) -> "list[Continued]":
        return self._loop.run(self._inner.resume_experiment(name, runs))

    def cancel_run(self, run_id: str, reason: str = "") -> Run:
        return self._loop.run(self._inner.cancel_run(run_id, reason))

    def cancel_runs(self, run_ids: Sequence[str], reason: str = "") -> list[Run]:
        return self._loop.run(self._inner.cancel_runs(run_ids, reason))

    def command_run(self, run_id: str, command: Mapping[str, Any], command_id: str | None = None) -> int:
        return self._loop.run(self._inner.command_run(run_id, command, command_id))

    def delete_run(self, run_id: str) -> int:
        return self._loop.run(self._inner.delete_run(run_id))

    def get_run(self, run_id: str) -> Run:
        return self._loop.run(self._inner.get_run(run_id))

    def edit_run(
        self,
        run_id: str | Collection[str],
        *,
        name: str | None = None,
        note: str | None = None,
        add_tags: Collection[str] = (),
        remove_tags: Collection[str] = (),
    ) -> list[Run]:
        return self._loop.run(
            self._inner.edit_run(run_id, name=name, note=note, add_tags=add_tags, remove_tags=remove_tags)
        )

    def list_runs(
        self,
        states: Collection[RunState | str] = (),
        limit: int = 0,
        *,
        experiment: str = "",
        where: str = "",
        sort: str = "",
        columns: Collection[str] = (),
    ) -> RunList:
        return self._loop.run(
            self._inner.list_runs(states, limit, experiment=experiment, where=where, sort=sort, columns=columns)
        )

    def watch_runs(
        self,
        states: Collection[RunState | str] = (),
        limit: int = 0,
        interval_ms: int = 500,
        run_ids: Collection[str] = (),
        *,
        experiment: str = "",
    ) -> Iterator[RunList]:
        return self._loop.iterate(self._inner.watch_runs(states, limit, interval_ms, run_ids, experiment=experiment))

    def listen(
        self, source: Callable[[AsyncTrainerClient], AsyncIterator[T]], receive: Callable[[T | MosaicError], None]
    ) -> Callable[[], None]:
        """Pass every item of `source` to `receive`, in the client's thread, until the returned function is called.

        For views that also wait for keys: no stream can block them. If the stream fails, the last item is its error.
        """
        return self._loop.listen(source(self._inner), receive)

    def stream_steps(
        self, run_id: str, since_seq: int = 0, until_seq: int | None = None, tail: int = 0
    ) -> Iterator[Event]:
        return self._events("step", run_id, since_seq, until_seq, tail)

    def stream_episodes(
        self, run_id: str, since_seq: int = 0, until_seq: int | None = None, tail: int = 0
    ) -> Iterator[Event]:
        return self._events("episode", run_id, since_seq, until_seq, tail)

    def stream_events(
        self, run_id: str, since_seq: int = 0, until_seq: int | None = None, tail: int = 0
    ) -> Iterator[Event]:
        return self._events("", run_id, since_seq, until_seq, tail)

    def _events(self, kind: str, run_id: str, since_seq: int, until_seq: int | None, tail: int) -> Iterator[Event]:
        for batch in self._loop.iterate(self._inner.event_batches(kind, run_id, since_seq, until_seq, tail)):
            yield from batch

    def stream_logs(
        self, run_id: str, follow: bool = False, tail_bytes: int = 0, since_stdout: int = 0, since_stderr: int = 0
    ) -> Iterator[LogPiece]:
        for batch in self._loop.iterate(
            self._inner.log_batches(run_id, follow, tail_bytes, since_stdout, since_stderr)
        ):
            yield from batch

    def frames(
        self, run_id: str, hz: float = 30.0, wait_s: float = 10.0, max_dim: int = 0, lane: int | None = None
    ) -> "Iterator[Frame]":
        return self._loop.iterate(self._inner.frames(run_id, hz, wait_s, max_dim, lane))

    def query_curve(
        self, run_id: str, name: str, points: int = 0, to_step: int | None = None, from_step: int | None = None
    ) -> Curve:
        return self._loop.run(self._inner.query_curve(run_id, name, points, to_step, from_step))

    def curve_names(self, run_id: str) -> list[str]:
        return self._loop.run(self._inner.curve_names(run_id))

    def frame(self, runs: "Runs", metrics: str | Sequence[str] | None = None, points: int = 0) -> "pandas.DataFrame":
        return self._loop.run(self._inner.frame(runs, metrics, points))

    def import_run(
        self,
        format: str,
        path: str | Path,
        read: "Callable[[dict[str, Any]], Source]",
        describe: "Callable[[Source], dict[str, Any]]",
        on_block: Callable[[int], None] = lambda events: None,
    ) -> "Imported":
        """Import one run of another program, or what is new in one that was imported before.

        `read` gets the cursor of the last import and returns a reader; `describe` says what is known of the run when
        everything is read (submit/imported.py); `on_block` is told how many events have been sent.
        """
        from mosaic.client.importing import import_source, opened

        stream = self._loop.run(opened(self._inner, format, path))
        try:
            return import_source(self._loop.run, stream, read, describe, on_block)
        finally:
            self._loop.run(stream.close())

    def health(self) -> pb.Health:
        return self._loop.run(self._inner.health())

    def shutdown(self, kill_runs: bool = False) -> int:
        return self._loop.run(self._inner.shutdown(kill_runs))


async def _next(batches: AsyncIterator[T]) -> T | None:
    return await anext(batches, None)


async def _pump(source: AsyncIterator[T], receive: Callable[[T | MosaicError], None]) -> None:
    try:
        async for item in source:
            receive(item)
    except MosaicError as error:
        receive(error)
    finally:
        await _close(source)


async def _begin(work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
    return asyncio.ensure_future(work)


async def _end(listening: "asyncio.Task[None]") -> None:
    """Cancel and wait: a stream that is still closing when the loop stops would log an error."""
    listening.cancel()
    await asyncio.wait({listening})


async def _close(batches: AsyncIterator[T]) -> None:
    for _ in range(100):
        try:
            await batches.aclose()  # type: ignore[attr-defined]
            return
        except RuntimeError:
            # Ctrl-C cancelled a step that has not finished yet; closing must wait for it.
            await asyncio.sleep(0.01)
