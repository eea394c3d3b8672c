"""Why a run failed, in words: the cause, what to do about it, and the evidence that its reason contains.

The daemon stores the evidence with the reason: the last lines of stderr, or after a hang the stacks of all threads.
"""

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mosaic.model.states import RunState
from mosaic.present.states import MEANING
from mosaic.present.text import printable

if TYPE_CHECKING:
    from mosaic.client import Run

# The first pattern that matches the cause; the advice is for the user, who has not seen the code that failed.
ADVICE = (
    (r"^out of GPU memory", "Use smaller batches, fewer environments, or a GPU with more memory."),
    (r"^out of memory", "Use less memory (a smaller replay buffer, fewer environments), or request more of it."),
    (r"^time limit", "Raise the time limit, or resume the run from its newest checkpoint."),
    (r"^(hang|stalled|no progress)", "The stacks below show where each thread was when it stopped working."),
    (r"^spawn error|^handshake", "The worker could not be started. Look at its environment on the Workers page."),
    (r"^holder died|^killed by SIGKILL", "It was ended from outside, or by the kernel. Resume it or run it again."),
    (r"^unkillable", "Its GPUs stay reserved until the machine is restarted."),
    (r"folder .* was deleted", "Its files are gone. Run it again with the same settings."),
    (r"^exit code|run_failed|^killed by", "The last lines of its output usually name the error."),
)
ERROR = re.compile(r"^(?:[A-Za-z_][\w.]*\.)?[A-Za-z_]\w*(?:Error|Exception|Exit|Interrupt|Warning)\b.*")


@dataclass(frozen=True)
class Autopsy:
    cause: str  # "exit code 1"
    error: str  # the line that names the exception; empty if none does
    advice: str
    evidence: str  # last lines of stderr, or stacks; empty if there was no output

    @property
    def sentence(self) -> str:
        """`exit code 1: ValueError: …`."""
        return f"{self.cause}: {self.error}" if self.error else self.cause


def autopsy(run: "Run") -> Autopsy | None:
    """What is known about a failure; None if the run has not failed."""
    if run.state is not RunState.FAULTED:
        return None
    cause, *lines = run.reason.strip().split("\n")
    evidence = [printable(line) for line in lines]
    cause = printable(cause) or MEANING[run.state]
    return Autopsy(cause, _error(evidence), _advice(cause), "\n".join(evidence))


def _error(lines: list[str]) -> str:
    found = (match.group() for line in reversed(lines) if (match := ERROR.match(line.strip())))
    return next(found, "")


def _advice(cause: str) -> str:
    return next((advice for pattern, advice in ADVICE if re.search(pattern, cause)), "")
