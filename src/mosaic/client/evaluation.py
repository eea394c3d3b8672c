"""Handles of evaluations: a run whose lanes can be watched, and stepped by hand.

`lanes` is built from the run's events, so it is the same in every client and after a restart of the daemon.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from mosaic.catalog import evaluation
from mosaic.catalog.request import RunOptions
from mosaic.client.evaluation_state import Answer, EvaluationState
from mosaic.client.handle import AsyncRunHandle, RunHandle
from mosaic.client.lanes import ActionRequest, LaneState
from mosaic.client.run import Run
from mosaic.client.script_file import parse_script, read_script
from mosaic.client.status import with_sentence
from mosaic.model.errors import BadConfig, MosaicError, UnknownWorker

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from mosaic.client.asynchronous import AsyncTrainerClient
    from mosaic.client.synchronous import TrainerClient

    Work = Callable[[Coroutine[Any, Any, "T"]], "T"]

T = TypeVar("T")

Lanes = list[LaneState]
# Lanes show their first observations at once. The fixed id: submitting again with one key must not start them again.
FIRST_COMMAND = ({"cmd": "start"}, "start")
EvaluationSource = Mapping[str, Any] | str | Path  # a document, or the path of a file


async def submit_evaluation(
    client: "AsyncTrainerClient", source: EvaluationSource, manual: bool, options: RunOptions, is_remote: bool
) -> Run:
    # In a thread: a Python file runs in a process of its own until it has printed its document.
    document = source if isinstance(source, Mapping) else await asyncio.to_thread(read_script, Path(source))
    mode = evaluation.MANUAL if manual else evaluation.SCRIPT
    config = evaluation.evaluation_config(parse_script(document, mode), mode, options, is_remote=is_remote)
    try:
        run = await client.submit_run(config, options.idempotency_key)
    except BadConfig as error:
        raise for_author(error) from None
    if manual:
        await client.command_run(run.run_id, *FIRST_COMMAND)
    return run


def for_author(error: BadConfig) -> MosaicError:
    """An error about the trainer config, in the words of the script: its author has not seen the config."""
    if isinstance(error, UnknownWorker) and error.field == "metadata.worker.module":
        return MosaicError("The worker 'eval' is not installed. Install it with: mosaic worker install eval")
    return with_sentence(type(error), evaluation.for_author(str(error)))


class AsyncEvaluation(AsyncRunHandle):
    """An evaluation, for asyncio code. It is followed from its creation until it is over or `close` is called.

    A command returns when it has been carried out, or when a lane waits for a person: then `act` comes first.
    MosaicError, with the conductor's reason, if it was refused.
    """

    def __init__(self, client: "AsyncTrainerClient", run: Run) -> None:
        super().__init__(client, run)
        self.status = EvaluationState()
        self._changed = asyncio.Condition()
        self._order = asyncio.Lock()
        self._error: MosaicError | None = None
        self._is_followed = True
        self._following = client.keep(self._follow())

    @property
    def lanes(self) -> Lanes:
        """The lanes as of the last event; empty until the evaluation has started."""
        return list(self.status.lanes)

    async def start(self) -> Lanes:
        """Begin the first episode of every lane, or the next one of those that have finished theirs."""
        return await self._command({"cmd": "start"})

    async def step(self, count: int = 1, lanes: Sequence[int] | None = None) -> Lanes:
        """Take `count` steps in these lanes, or in all."""
        return await self._command({"cmd": "step", "count": count, **_in(lanes)})

    async def play(self, rate: float | None = None) -> Lanes:
        """Step without further commands, `rate` steps per second (None: the script's pace)."""
        return await self._command({"cmd": "play", **({} if rate is None else {"rate": rate})})

    async def pause(self) -> Lanes:
        return await self._command({"cmd": "pause"})

    async def reset(self, lanes: Sequence[int] | None = None, seed: int | None = None) -> Lanes:
        """Begin the episode again in these lanes, or in all; the next one if it is over. `seed`: one with this seed."""
        return await self._command({"cmd": "reset", **_in(lanes), **({} if seed is None else {"seed": seed})})

    async def act(self, lane: int, action: Any, agent_id: str | None = None) -> Lanes:
        """Answer a lane that asks a person. `action`: a value of the action space, or the name of a choice."""
        request = self._request(lane, agent_id)
        return await self._command(act_command(request, action))

    async def finish(self) -> Run:
        """Write the results and end the run; returns the run when it is over."""
        await self._command({"cmd": "finish"})
        return await self.wait()

    async def wait_until(self, condition: Callable[[Lanes], bool], timeout_s: float | None = None) -> Lanes:
        """Wait until the lanes fulfil a condition. TimeoutError after `timeout_s`, MosaicError if the run ends."""
        try:
            async with asyncio.timeout(timeout_s), self._changed:
                await self._changed.wait_for(lambda: condition(self.lanes) or not self._is_followed)
        except TimeoutError:
            raise TimeoutError(f"The lanes of run {self.run_id} are not as expected after {timeout_s} s.") from None
        if not condition(self.lanes):
            raise await self._ended()
        return self.lanes

    async def close(self) -> None:
        """Stop following. The evaluation continues."""
        self._following.cancel()
        await asyncio.wait({self._following})

    def _request(self, lane: int, agent_id: str | None) -> ActionRequest:
        for request in self.status.requests_for(agent_id or ""):
            if request.lane == lane:
                return request
        raise MosaicError(f"Lane {lane} does not ask {agent_id or 'a person'} for an action.")

    async def _command(self, command: Mapping[str, Any]) -> Lanes:
        async with self._order:  # commands of this handle arrive in the order of their calls
            seq = await self._client.command_run(self.run_id, dict(command))
        answer = await self._answer(seq, may_wait_for_a_person=command["cmd"] not in ("act", "finish"))
        if answer and not answer.ok:
            raise MosaicError(f"{command['cmd']}: {answer.message or 'refused.'}")
        return self.lanes

    async def _answer(self, seq: int, may_wait_for_a_person: bool) -> Answer | None:
        def is_due() -> bool:
            waits = may_wait_for_a_person and bool(self.status.requests_for())
            return seq in self.status.answers or waits or not self._is_followed

        async with self._changed:
            await self._changed.wait_for(is_due)
        if seq not in self.status.answers and not self._is_followed:
            raise await self._ended()
        return self.status.answers.get(seq)

    async def _ended(self) -> MosaicError:
        if self._error:
            return self._error
        run = await self.refresh()
        return MosaicError(
            f"The evaluation {self.run_id} is over ({run.state}{f': {run.reason}' if run.reason else ''})."
        )

    async def _follow(self) -> None:
        try:
            async with aclosing(self._client.event_batches("", self.run_id)) as batches:  # type: ignore[type-var]
                async for batch in batches:
                    self.status.receive(batch)
                    await self._notify()
        except MosaicError as error:
            self._error = error
        finally:
            self._is_followed = False
            await self._notify()

    async def _notify(self) -> None:
        async with self._changed:
            self._changed.notify_all()


class Evaluation(RunHandle):
    """An evaluation: see `AsyncEvaluation`. It is followed in the client's thread."""

    def __init__(self, client: "TrainerClient", inner: AsyncEvaluation, work: "Work[Any]") -> None:
        super().__init__(client, inner.latest)
        self._inner = inner
        self._work = work

    @property
    def status(self) -> EvaluationState:
        """Everything that the events say about the evaluation. It changes while you read it; `lanes` is a copy."""
        return self._inner.status

    @property
    def lanes(self) -> Lanes:
        """The lanes as of the last event; empty until the evaluation has started."""
        return self._inner.lanes

    def start(self) -> Lanes:
        """Begin the first episode of every lane, or the next one of those that have finished theirs."""
        return self._do(self._inner.start())

    def step(self, count: int = 1, lanes: Sequence[int] | None = None) -> Lanes:
        """Take `count` steps in these lanes, or in all."""
        return self._do(self._inner.step(count, lanes))

    def play(self, rate: float | None = None) -> Lanes:
        """Step without further commands, `rate` steps per second (None: the script's pace)."""
        return self._do(self._inner.play(rate))

    def pause(self) -> Lanes:
        return self._do(self._inner.pause())

    def reset(self, lanes: Sequence[int] | None = None, seed: int | None = None) -> Lanes:
        """Begin the episode again in these lanes, or in all; the next one if it is over. `seed`: one with this seed."""
        return self._do(self._inner.reset(lanes, seed))

    def act(self, lane: int, action: Any, agent_id: str | None = None) -> Lanes:
        """Answer a lane that asks a person. `action`: a value of the action space, or the name of a choice."""
        return self._do(self._inner.act(lane, action, agent_id))

    def finish(self) -> Run:
        """Write the results and end the run; returns the run when it is over."""
        self.latest = self._do(self._inner.finish())
        return self.latest

    def wait_until(self, condition: Callable[[Lanes], bool], timeout_s: float | None = None) -> Lanes:
        """Wait until the lanes fulfil a condition. TimeoutError after `timeout_s`, MosaicError if the run ends."""
        return self._do(self._inner.wait_until(condition, timeout_s))

    def close(self) -> None:
        """Stop following. The evaluation continues."""
        self._do(self._inner.close())

    def _do(self, work: "Coroutine[Any, Any, T]") -> T:
        result: T = self._work(work)
        return result


def act_command(request: ActionRequest, action: Any) -> dict[str, Any]:
    """The command that answers a request."""
    if isinstance(action, str) and request.choices:
        try:
            action = request.value_of(action)
        except KeyError:
            names = ", ".join(choice.name for choice in request.choices)
            raise MosaicError(f"action: '{action}' is not one of the actions. Choose from: {names}.") from None
    agent = {"agent_id": request.agent_id} if request.agent_id else {}
    return {"cmd": "act", "lane": request.lane, **agent, "request": request.request, "action": action}


def _in(lanes: Sequence[int] | None) -> dict[str, Any]:
    return {} if lanes is None else {"lanes": list(lanes)}
