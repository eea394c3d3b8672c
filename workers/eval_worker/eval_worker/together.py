"""Several calls at the same time, each in a thread of its own."""

import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


def together(calls: Sequence[Callable[[], T]]) -> list[T]:
    """The results in the order of the calls. If some raise, the error of the first of them is raised."""
    if len(calls) == 1:
        return [calls[0]()]
    results: dict[int, T] = {}
    errors: dict[int, BaseException] = {}

    def run(place: int) -> None:
        try:
            results[place] = calls[place]()
        except BaseException as error:  # noqa: BLE001  # raised again below, in the caller's thread
            errors[place] = error

    # Daemons: a run that is stopped does not wait for a decision.
    threads = [threading.Thread(target=run, args=(place,), daemon=True) for place in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[min(errors)]
    return [results[place] for place in range(len(calls))]
