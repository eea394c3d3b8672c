"""Why a run failed, in words."""

import pytest

from mosaic.client.run import Run
from mosaic.present.autopsy import autopsy
from mosaic.wire import mosaic_pb2 as pb

CRASH = """exit code 1
Traceback (most recent call last):
  File "train.py", line 3, in <module>
RuntimeError: asked to crash \x1b[31mat step 3"""


def faulted(reason, state=pb.FAULTED):
    return Run.from_wire(pb.RunInfo(run_id="01A", state=state, reason=reason))


def test_the_error_of_the_traceback_is_part_of_the_sentence():
    found = autopsy(faulted(CRASH))

    assert found.sentence == "exit code 1: RuntimeError: asked to crash at step 3"
    assert found.evidence.startswith("Traceback")
    assert "\x1b" not in found.evidence


@pytest.mark.parametrize(
    ("reason", "advice"),
    [
        ("out of GPU memory (exit code 1)", "smaller batches"),
        ("out of memory (likely): killed by SIGKILL while the kernel was short of memory", "less memory"),
        ("time limit: it ran longer than 3 s", "Raise the time limit"),
        ("hang: no output and no heartbeat\nThread 0x1", "stacks below"),
        ("killed by SIGSEGV", "last lines"),
        ("something new", ""),
    ],
)
def test_advice_depends_on_the_cause(reason, advice):
    found = autopsy(faulted(reason))

    assert advice in found.advice
    assert bool(found.advice) == bool(advice)


def test_a_failure_without_a_reason_still_has_words():
    assert autopsy(faulted("")).sentence == "failed"


def test_a_run_that_did_not_fail_has_no_autopsy():
    assert autopsy(faulted("", pb.TERMINATED)) is None
