"""The threads that write telemetry files. SQLite blocks; the daemon's event loop must not."""

import asyncio
import logging
import queue
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from mosaic.model.errors import MosaicError, StoreFailed

log = logging.getLogger(__name__)

T = TypeVar("T")
Job = Callable[[], Any]


class Writer:
    """One thread that runs jobs in order. Promises:

    1. `then` runs on the loop for every job that succeeded, in order, even if the caller has stopped waiting.
    2. An error of a job is raised in its caller, as a MosaicError, and the thread continues: it serves other runs too.
    3. An error of the thread itself ends it and sets `problem`; all waiting and later jobs fail with StoreFailed.
    """

    def __init__(self, name: str) -> None:
        self.problem = ""
        self._jobs: queue.SimpleQueue[tuple[Job, Done] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()  # so that no job is added after the thread has ended
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    async def call(self, job: Callable[[], T], then: "Callable[[T], None] | None" = None) -> T:
        done = Done(then)
        with self._lock:
            if self.problem:
                raise StoreFailed(self.problem)
            self._jobs.put((job, done))
        result: T = await done.future
        return result

    def post(self, job: Job) -> None:
        """Run the job in its turn, without waiting for it."""
        with self._lock:
            if not self.problem:
                self._jobs.put((job, Done(None)))

    async def stop(self) -> None:
        """Run the waiting jobs, then end the thread."""
        with self._lock:
            self._jobs.put(None)
        await asyncio.get_running_loop().run_in_executor(None, self._thread.join)

    def _work(self) -> None:
        while (item := self._jobs.get()) is not None:
            job, done = item
            try:
                _run(job, done)
            except BaseException as error:  # the edge of the thread: callers must not wait forever
                log.exception("A telemetry writer failed with an unexpected error.")
                self._die(f"A telemetry writer failed ({type(error).__name__}: {error}). Restart the daemon.", done)
                return
        self._close("The telemetry writers have stopped.")

    def _die(self, problem: str, done: "Done") -> None:
        self._close(problem)
        done.fail(StoreFailed(problem))

    def _close(self, problem: str) -> None:
        with self._lock:
            self.problem = problem
            while not self._jobs.empty():
                if (item := self._jobs.get()) is not None:
                    item[1].fail(StoreFailed(problem))


def _run(job: Job, done: "Done") -> None:
    try:
        result = job()
    except MosaicError as error:
        done.fail(error)
    except Exception as error:
        log.exception("A job of a telemetry writer failed with an unexpected error.")
        done.fail(
            StoreFailed(f"Unexpected error ({type(error).__name__}: {error}). The daemon's log has the traceback.")
        )
    else:
        done.succeed(result)


class Done:
    """Passes the result of a job from the thread to the loop."""

    def __init__(self, then: "Callable[[Any], None] | None") -> None:
        self._loop = asyncio.get_running_loop()
        self._then = then
        self.future: asyncio.Future[Any] = self._loop.create_future()

    def succeed(self, result: object) -> None:
        self._call_on_loop(self._succeed, result)

    def fail(self, error: Exception) -> None:
        self._call_on_loop(self._fail, error)

    def _call_on_loop(self, callback: Callable[[Any], None], value: object) -> None:
        try:
            self._loop.call_soon_threadsafe(callback, value)
        except RuntimeError:  # the loop is closed, so no caller is waiting
            log.debug("A writer's job ended after the loop.")

    def _succeed(self, result: object) -> None:
        try:
            if self._then:
                self._then(result)
        finally:
            if not self.future.done():
                self.future.set_result(result)

    def _fail(self, error: Exception) -> None:
        if not self.future.done():
            self.future.set_exception(error)
            self.future.exception()  # marks it as retrieved: no one awaits a posted job, or one whose caller is gone
