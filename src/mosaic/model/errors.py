"""The errors of MOSAIC. Each message says what happened, to what, and what to do next.

MosaicError
├── BadConfig          a field of a submitted config is invalid
│   └── UnknownWorker  no environment has this worker
├── BadQuery           a condition on runs that does not parse, or asks for what no run has
├── UnknownRun         a reference that matches no run
├── UnknownExperiment  a name that no experiment has
├── ExperimentDiffers  the name of an experiment with other settings
├── ExperimentTaken    a name that is used already, where a new one is needed
├── ExperimentHasRuns  an experiment that cannot be deleted yet
├── AmbiguousRun       a name or id prefix that several runs share
├── IllegalMove        a state change that is not in the table of states
├── KeyTaken           an idempotency key that belongs to a run with another config
├── RunIsLive          the request needs a run that is over
├── FolderRemains      a deleted run whose folder could not be emptied
├── RunIsOver          the request needs a run that is live
├── BadCommand         a command that cannot be sent
├── CommandTaken       a command id that belongs to another command
├── NoCommands         a run that does not take commands, or no longer
├── NoCheckpoint       a run without a checkpoint to resume or evaluate
├── NoFrames           a run without frames
├── GpuTaken           a GPU that another run owns, or that is drained
├── NotAllowed         no token, a wrong one, or one of another run
├── WrongOffset        a publish that does not start where the store ends
├── BadBatch           a publish whose parts contradict each other (a ValueError too)
├── StoreUnavailable   the store cannot be written now (disk full); retry
├── StoreFailed        a writer thread died; the daemon is unhealthy until it is restarted
├── BadRoot            the state folder cannot be used
│   ├── SchemaTooNew   written by a newer MOSAIC
│   ├── WrongPlace     it was copied, moved or restored and is not adopted yet
│   └── RootGone       it was removed or moved while its daemon ran
├── AlreadyRunning     another daemon holds the lock
├── AddressTaken       the TCP address is in use
└── NoDaemon           no daemon answers at the address
"""

from collections.abc import Sequence

LONGEST_FIELD = 200  # characters of a field's path in a message


class MosaicError(Exception):
    """An error that a user can act on; its message says how."""


class BadConfig(MosaicError):
    """A field of a config is invalid."""

    def __init__(self, field: str, why: str) -> None:
        # A key may have 20,000 characters; the message is cut at 2,000, and the reason must be in it.
        shown = field if len(field) <= LONGEST_FIELD else f"{field[: LONGEST_FIELD - 1]}…"
        super().__init__(f"{shown}: {why}" if field else why)
        self.field = field


class UnknownWorker(BadConfig):
    """No environment has this worker."""


class BadQuery(MosaicError):
    """A condition on runs that does not parse, or asks for what no run has; the message says why and where."""


class UnknownRun(MosaicError):
    """A reference that matches no run."""

    def __init__(self, reference: str, hint: str = "", advice: str = "List all runs with: mosaic runs --all") -> None:
        super().__init__(" ".join(filter(None, (f"There is no run '{reference}'.", hint, advice))))


class UnknownExperiment(MosaicError):
    """A name that no experiment has."""

    def __init__(self, name: str, hint: str = "") -> None:
        advice = "List all experiments with: mosaic experiment list"
        super().__init__(" ".join(filter(None, (f"There is no experiment '{name}'.", hint, advice))))


class ExperimentDiffers(MosaicError):
    """The name of an experiment with other settings; `differences` say which."""

    def __init__(self, name: str, differences: Sequence[str]) -> None:
        super().__init__(
            f"The experiment '{name}' exists and is another one: {'; '.join(differences)}. "
            f"Choose another name (--name, or name: in the file), or delete it with: mosaic experiment rm {name}"
        )


class ExperimentTaken(MosaicError):
    """A name that is used already, where a new one is needed."""

    def __init__(self, name: str) -> None:
        super().__init__(f"There is an experiment '{name}' already. Choose another name.")


class ExperimentHasRuns(MosaicError):
    """An experiment that cannot be deleted yet."""

    def __init__(self, name: str, runs: int) -> None:
        them = "its run" if runs == 1 else f"its {runs:,} runs"
        super().__init__(f"The experiment '{name}' still has {them}. Delete both with: mosaic experiment rm {name}")


class AmbiguousRun(MosaicError):
    """A name or id prefix that several runs share; `lines` list them."""

    def __init__(self, why: str, lines: Sequence[str], is_cut: bool = False) -> None:
        shown = "\n".join(f"  {line}" for line in (*lines, *(["…"] if is_cut else [])))
        super().__init__(f"{why}. Use an id, or a unique prefix of one:\n{shown}")


class IllegalMove(MosaicError):
    """A state change that is not in the table of states."""

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
    """The request needs a run that is over."""

    def __init__(self, run_id: str, state: str) -> None:
        super().__init__(f"Run {run_id} is {state}. End it first with: mosaic cancel {run_id}")


class FolderRemains(MosaicError):
    """A deleted run whose folder could not be emptied."""

    def __init__(self, run_id: str, folder: object, problems: Sequence[str]) -> None:
        why = "; ".join(problems)
        super().__init__(f"Run {run_id} is deleted, but {folder} remains: {why}. Then remove it with: mosaic gc --yes")


class RunIsOver(MosaicError):
    """The request needs a run that is live."""

    def __init__(self, run_id: str, state: str) -> None:
        super().__init__(f"Run {run_id} is {state}: it takes no more commands.")


class BadCommand(MosaicError):
    """A command that cannot be sent; the message says why."""


class CommandTaken(MosaicError):
    """A command id that belongs to another command."""

    def __init__(self, run_id: str, command_id: str, seq: int) -> None:
        super().__init__(
            f"Run {run_id}: the command id '{command_id}' belongs to command {seq}, which is another command. "
            "Choose a new id for every command."
        )


class NoCommands(MosaicError):
    """A run that does not take commands, or no longer; the message says why."""

    def __init__(self, run_id: str, why: str) -> None:
        super().__init__(f"Run {run_id} {why}")


class NoCheckpoint(MosaicError):
    """A run without a checkpoint to resume or evaluate; the message says why."""

    def __init__(self, run_id: str, why: str) -> None:
        super().__init__(f"Run {run_id} {why}")


class NoFrames(MosaicError):
    """A run without frames; the message says why."""


class NoCurve(MosaicError):
    """A metric name without a curve, because its run has too many names."""

    def __init__(self, run_id: str, name: str, most: int) -> None:
        super().__init__(
            f"Run {run_id} has no curve of '{name[:80]}': only its first {most:,} metrics have curves. "
            f"All values are in its events: mosaic export {run_id}"
        )


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
    """A publish whose parts contradict each other; nothing of it is stored."""

    def __init__(self, run_id: str, why: str) -> None:
        super().__init__(f"Run {run_id}: {why}. Nothing of the batch was stored.")


class StoreUnavailable(MosaicError):
    """The store cannot be written now (for example, the disk is full); the sender keeps the data and retries."""


class StoreFailed(MosaicError):
    """What was asked cannot be stored or read, and a retry may not help; the message says why."""


class StoreDamaged(StoreFailed):
    """The telemetry file of one run cannot be used; other runs do not notice."""


class StoreIncomplete(StoreUnavailable):
    """The telemetry file was lost and is being rebuilt: it is not the whole run yet."""


class BadRoot(MosaicError):
    """The state folder cannot be used."""


class SchemaTooNew(BadRoot):
    """Written by a newer MOSAIC."""

    def __init__(self, path: object, found: int, known: int) -> None:
        super().__init__(
            f"{path} has schema {found}; this MOSAIC knows up to {known}. Upgrade MOSAIC, or set MOSAIC_HOME elsewhere."
        )


class WrongPlace(BadRoot):
    """The state folder was copied, moved or restored, and nobody has adopted it yet."""


class RootGone(BadRoot):
    """The state folder was removed or moved while its daemon ran."""


class AlreadyRunning(MosaicError):
    """Another daemon holds the lock."""


class AddressTaken(MosaicError):
    """The TCP address is in use."""


class NoDaemon(MosaicError):
    """No daemon answers at the address."""
