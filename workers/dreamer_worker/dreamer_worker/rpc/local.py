"""A client for methods of the same process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any, Protocol


class Caller(Protocol):
    """What a caller of another part of the run needs to know: a `Client` or a `LocalClient`."""

    def call(self, method: str, *args: Any) -> Future[Any]: ...
    def ask(self, method: str, *args: Any, timeout_s: float | None = None) -> Any: ...
    def wait_connected(self, timeout_s: float | None = None) -> bool: ...
    def drain(self, timeout_s: float | None = None) -> bool: ...
    def stats(self) -> dict[str, float]: ...
    def close(self) -> None: ...


class LocalClient:
    """The interface of `Client` without a connection: a call runs at once, in the caller's thread, and raises there."""

    def __init__(self, methods: Mapping[str, Callable[..., Any]]) -> None:
        self._methods = methods

    def call(self, method: str, *args: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(self._methods[method](*args))
        return future

    def ask(self, method: str, *args: Any, timeout_s: float | None = None) -> Any:
        return self._methods[method](*args)

    def wait_connected(self, timeout_s: float | None = None) -> bool:
        return True

    def drain(self, timeout_s: float | None = None) -> bool:
        return True

    def stats(self) -> dict[str, float]:
        return {}

    def close(self) -> None:
        pass
