"""One evaluation as a terminal sees it: its run, its lanes, and the commands that were sent from here."""

from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from mosaic.cli.follow import EVERY_MS, latest_of
from mosaic.cli.inbox import Inbox
from mosaic.cli.live_runs import LiveRuns
from mosaic.client.evaluation_state import Answer, EvaluationState
from mosaic.model.errors import MosaicError

if TYPE_CHECKING:
    from mosaic.client import AsyncTrainerClient, Run
    from mosaic.client.events import Event

Command = Mapping[str, Any]


class Session:
    """Follows the evaluation and sends commands, one after the other, without blocking the view."""

    def __init__(self, inbox: Inbox, run: "Run") -> None:
        self.run = run
        self.evaluation = EvaluationState()
        self.answered: deque[tuple[Command, Answer]] = deque()  # since the view last looked
        self._error: MosaicError | None = None
        self._has_ended = False  # the events have
        self._inbox = inbox
        self._queue: deque[Command] = deque()  # not sent yet; the first one is being sent
        self._sent: dict[int, Command] = {}  # without an answer
        self._runs = LiveRuns(inbox, [run.run_id], EVERY_MS).follow()
        inbox.subscribe(lambda inner: _events(inner, run.run_id), self._receive)

    @property
    def is_over(self) -> bool:
        """Whether the run is over and all its events are here."""
        return self.run.state.is_over and self._has_ended

    @property
    def is_busy(self) -> bool:
        """Whether a command waits for its answer."""
        return bool(self._queue or self._sent)

    def refresh(self) -> None:
        """Take what has arrived. Raises what ends a view."""
        self._inbox.deliver()
        self.run = latest_of(self._runs, self.run.run_id) or self.run
        if self._error:
            raise self._error
        if self.run.state.is_over:
            self._queue.clear()
            self._sent.clear()

    def send(self, command: Command) -> None:
        self._queue.append(command)
        if len(self._queue) == 1:
            self._send_next()

    def _send_next(self) -> None:
        command = self._queue[0]
        # A subscription that yields the one number: the call may take as long as a restart of the daemon.
        cancel = self._inbox.subscribe(lambda inner: _number(inner, self.run.run_id, command), lambda item: done(item))

        def done(item: int | MosaicError) -> None:
            cancel()
            self._was_sent(command, item)

    def _was_sent(self, command: Command, item: int | MosaicError) -> None:
        if self._queue:
            self._queue.popleft()
        if isinstance(item, MosaicError):
            self.answered.append((command, Answer(0, str(command["cmd"]), False, str(item))))
        else:
            self._sent[item] = command
            self._settle()
        if self._queue:
            self._send_next()

    def _receive(self, item: "list[Event] | MosaicError | None") -> None:
        if item is None:
            self._has_ended = True
        elif isinstance(item, MosaicError):
            self._error = item
        else:
            self.evaluation.receive(item)
            self._settle()

    def _settle(self) -> None:
        """Match answers with commands. Either may arrive first: they come by two streams."""
        for seq in [seq for seq in self._sent if seq in self.evaluation.answers]:
            self.answered.append((self._sent.pop(seq), self.evaluation.answers[seq]))


async def _events(inner: "AsyncTrainerClient", run_id: str) -> "AsyncIterator[list[Event] | None]":
    """The events, then None: the inbox does not report the end of a stream."""
    async with aclosing(inner.event_batches("", run_id)) as batches:  # type: ignore[type-var]
        async for batch in batches:
            yield batch
    yield None


async def _number(inner: "AsyncTrainerClient", run_id: str, command: Command) -> AsyncIterator[int]:
    yield await inner.command_run(run_id, command)
