"""The tree of errors. Each says what happened, to which thing, and what to do next.

MosaicError
├── BadConfig          a field of a submitted config cannot be used
│   └── UnknownWorker  no environment has this worker
├── UnknownRun         a reference that means no run
├── AmbiguousRun       a name or a start of an id that several runs share
├── IllegalMove        a move that is not in the table of states
├── KeyTaken           an idempotency key that belongs to a run with another config
├── RunIsLive          the wish needs a run that is over
├── NoCheckpoint       a run that left nothing to continue from or to evaluate
├── NoFrames           a run that shows nothing
├── GpuTaken           a GPU that another run owns, or that is drained
├── NotAllowed         no token, a wrong one, or one of another run
├── WrongOffset        a publish that does not start where the store ends
├── BadBatch           a publish whose parts contradict each other (a ValueError too)
├── StoreUnavailable   the telemetry store cannot take this now (disk full); try again
├── StoreFailed        a writer died; the daemon is unhealthy until restarted
├── BadRoot            the state folder cannot be used
│   └── SchemaTooNew   written by a newer MOSAIC
├── AlreadyRunning     another daemon holds the lock
├── AddressTaken       the TCP address is in use
└── NoDaemon           nobody answers at the address
"""

from collections.abc import Sequence


class MosaicError(Exception):
    """An error a person can act on; its text is one sentence that says how."""


class BadConfig(MosaicError):
    """A field of a config cannot be used."""

    def __init__(self, field: str, why: str) -> None:
        super().__init__(f"{field}: {why}" if field else why)
        self.field = field


class UnknownWorker(BadConfig):
    """No environment has this worker."""


class UnknownRun(MosaicError):
    """A reference that means no run."""

    def __init__(self, reference: str, hint: str = "") -> None:
        super().__init__(
            f"There is no run '{reference}'. {f'{hint} ' if hint else ''}List them with: mosaic runs --all"
        )


class AmbiguousRun(MosaicError):
    """A name or a start of an id that several runs share; `lines` tell them apart."""

    def __init__(self, why: str, lines: Sequence[str], is_cut: bool = False) -> None:
        shown = "\n".join(f"  {line}" for line in (*lines, *(["…"] if is_cut else [])))
        super().__init__(f"{why}. Use an id, or as much of it as no other run shares:\n{shown}")


class IllegalMove(MosaicError):
    """A move that is not in the table of states."""

    def __init__(self, run_id: str, old: str, new: str) -> None:
        super().__init__(f"Run {run_id} is {old}; it cannot become {new}.")


class KeyTaken(MosaicError):
    """An idempotency key that belongs to a run with another config."""

    def __init__(self, key: str, run_id: str, name: str) -> None:
        super().__init__(
            f"The idempotency key '{key}' belongs to run {run_id} ({name}), which was submitted with another config. "
            "Choose another key, or submit that config again to get that run."
        )


class RunIsLive(MosaicError):
    """The wish needs a run that is over."""

    def __init__(self, run_id: str, state: str) -> None:
        super().__init__(f"Run {run_id} is {state}. End it first with: mosaic cancel {run_id}")


class NoCheckpoint(MosaicError):
    """A run that left nothing to continue from or to evaluate; the text says why."""

    def __init__(self, run_id: str, why: str) -> None:
        super().__init__(f"Run {run_id} {why}")


class NoFrames(MosaicError):
    """A run that shows nothing; the text says why."""


class GpuTaken(MosaicError):
    """A GPU that another run owns, or that is drained."""

    def __init__(self, uuid: str, holder: str) -> None:
        super().__init__(f"GPU {uuid} is not free ({holder}). See: mosaic daemon status")


class NotAllowed(MosaicError):
    """No token, a wrong one, or one of another run."""


class WrongOffset(MosaicError):
    """A publish that does not start where the store ends."""

    def __init__(self, run_id: str, stream: str, got: int, expected: int) -> None:
        super().__init__(f"Run {run_id}: {stream} continues at byte {expected}, not {got}.")
        self.expected = expected


class BadBatch(MosaicError, ValueError):
    """A publish whose parts contradict each other; it is refused whole."""

    def __init__(self, run_id: str, why: str) -> None:
        super().__init__(f"Run {run_id}: {why}. The batch was refused whole.")


class StoreUnavailable(MosaicError):
    """The telemetry store cannot take this now (disk full, say); the sender keeps it and tries again."""


class StoreFailed(MosaicError):
    """A writer died; the daemon is unhealthy until it is restarted."""


class BadRoot(MosaicError):
    """The state folder cannot be used."""


class SchemaTooNew(BadRoot):
    """Written by a newer MOSAIC."""

    def __init__(self, path: object, found: int, known: int) -> None:
        super().__init__(
            f"{path} has schema {found}; this MOSAIC knows up to {known}. Upgrade MOSAIC, or set MOSAIC_HOME elsewhere."
        )


class AlreadyRunning(MosaicError):
    """Another daemon holds the lock."""


class AddressTaken(MosaicError):
    """The TCP address is in use."""


class NoDaemon(MosaicError):
    """Nobody answers at the address."""
