"""Handles: one run, bound to the client that started it."""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mosaic.client.events import Curve, Event, LogPiece
from mosaic.client.run import Run
from mosaic.model.listed import RunSummary
from mosaic.model.states import RunState

if TYPE_CHECKING:
    import pandas

    from mosaic.client.asynchronous import AsyncTrainerClient
    from mosaic.client.frames import Frame
    from mosaic.client.synchronous import TrainerClient


class AsyncRunHandle:
    """A run, for asyncio code. `latest`, `state` and `summary` are as of the last answer: see `refresh`."""

    def __init__(self, client: "AsyncTrainerClient", run: Run) -> None:
        self._client = client
        self.latest = run

    @property
    def run_id(self) -> str:
        return self.latest.run_id

    @property
    def state(self) -> RunState:
        return self.latest.state

    @property
    def summary(self) -> RunSummary:
        return self.latest.summary

    async def refresh(self) -> Run:
        """Ask the daemon for the run as it is now."""
        self.latest = await self._client.get_run(self.run_id)
        return self.latest

    async def wait(self, timeout_s: float | None = None) -> Run:
        """Wait until the run is over; TimeoutError after `timeout_s`. The run's `state` says how it ended."""
        self.latest = await self._client.wait_run(self.run_id, timeout_s)
        return self.latest

    async def cancel(self) -> Run:
        """Request the end of the run. It ends shortly afterwards: `wait()` returns then."""
        self.latest = await self._client.cancel_run(self.run_id)
        return self.latest

    async def command(self, command: Mapping[str, Any], command_id: str | None = None) -> int:
        """Send a command to the worker, as `AsyncTrainerClient.command_run` does; return its number."""
        return await self._client.command_run(self.run_id, command, command_id)

    async def curve(self, name: str = "episode/return", points: int = 0) -> Curve:
        """A metric over its steps, as `AsyncTrainerClient.query_curve` gives it."""
        return await self._client.query_curve(self.run_id, name, points)

    async def curve_names(self) -> list[str]:
        return await self._client.curve_names(self.run_id)

    async def frame(self, metrics: str | Sequence[str] | None = None, points: int = 0) -> "pandas.DataFrame":
        """Its curves as a pandas DataFrame, as `AsyncTrainerClient.frame` gives them."""
        return await self._client.frame(self.run_id, metrics, points)

    def events(self, since_seq: int = 0) -> AsyncIterator[Event]:
        """Steps, episodes, metrics and lifecycle events, until the run is over."""
        return self._client.stream_events(self.run_id, since_seq)

    def logs(self, follow: bool = False, tail_bytes: int = 0) -> AsyncIterator[LogPiece]:
        """Output of the worker that is not telemetry; with `follow`, until the run is over."""
        return self._client.stream_logs(self.run_id, follow, tail_bytes)

    def frames(
        self, hz: float = 30.0, wait_s: float = 10.0, max_dim: int = 0, lane: int | None = None
    ) -> "AsyncIterator[Frame]":
        """The newest frame each time, as `AsyncTrainerClient.frames` gives them."""
        return self._client.frames(self.run_id, hz, wait_s, max_dim, lane)

    def __repr__(self) -> str:
        return f"<run {self.run_id} ({self.latest.name}): {self.state}>"


class RunHandle:
    """A run. `state` and `summary` are current: each access asks the daemon, until the run is over.

    `latest` is the `Run` as of the last answer, and asks nothing.
    """

    def __init__(self, client: "TrainerClient", run: Run) -> None:
        self._client = client
        self.latest = run  # the last answer

    @property
    def run_id(self) -> str:
        return self.latest.run_id

    @property
    def state(self) -> RunState:
        return self.refresh().state

    @property
    def summary(self) -> RunSummary:
        return self.refresh().summary

    def refresh(self) -> Run:
        """The run as it is now."""
        if not self.latest.state.is_over:
            self.latest = self._client.get_run(self.run_id)
        return self.latest

    def wait(self, timeout_s: float | None = None) -> Run:
        """Wait until the run is over; TimeoutError after `timeout_s`. The run's `state` says how it ended."""
        self.latest = self._client.wait_run(self.run_id, timeout_s)
        return self.latest

    def cancel(self) -> Run:
        """Request the end of the run. It ends shortly afterwards: `wait()` returns then."""
        self.latest = self._client.cancel_run(self.run_id)
        return self.latest

    def command(self, command: Mapping[str, Any], command_id: str | None = None) -> int:
        """Send a command to the worker, as `TrainerClient.command_run` does; return its number."""
        return self._client.command_run(self.run_id, command, command_id)

    def curve(self, name: str = "episode/return", points: int = 0) -> Curve:
        """A metric over its steps, as `TrainerClient.query_curve` gives it."""
        return self._client.query_curve(self.run_id, name, points)

    def curve_names(self) -> list[str]:
        return self._client.curve_names(self.run_id)

    def frame(self, metrics: str | Sequence[str] | None = None, points: int = 0) -> "pandas.DataFrame":
        """Its curves as a pandas DataFrame, as `TrainerClient.frame` gives them."""
        return self._client.frame(self.run_id, metrics, points)

    def events(self, since_seq: int = 0) -> Iterator[Event]:
        """Steps, episodes, metrics and lifecycle events, until the run is over."""
        return self._client.stream_events(self.run_id, since_seq)

    def logs(self, follow: bool = False, tail_bytes: int = 0) -> Iterator[LogPiece]:
        """Output of the worker that is not telemetry; with `follow`, until the run is over."""
        return self._client.stream_logs(self.run_id, follow, tail_bytes)

    def frames(
        self, hz: float = 30.0, wait_s: float = 10.0, max_dim: int = 0, lane: int | None = None
    ) -> "Iterator[Frame]":
        """The newest frame each time, as `TrainerClient.frames` gives them."""
        return self._client.frames(self.run_id, hz, wait_s, max_dim, lane)

    def __repr__(self) -> str:
        return f"<run {self.run_id} ({self.latest.name}): {self.latest.state}>"
