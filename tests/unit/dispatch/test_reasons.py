import pytest

from mosaic.dispatch.reasons import final_state
from mosaic.model.run import Limits, RunRecord
from mosaic.model.states import RunState

RUN = RunRecord("id", "n", "runs", "toy", RunState.EXECUTING, limits=Limits(time_s=60.0))
CANCELLED_RUN = RunRecord("id", "n", "runs", "toy", RunState.EXECUTING, cancel_requested=True)

CASES = [
    (RUN, {"exit_code": 0}, "", RunState.TERMINATED, ""),
    (RUN, {"exit_code": 3}, "Traceback\nValueError: no", RunState.FAULTED, "exit code 3\nTraceback\nValueError: no"),
    (RUN, {"signal": "SIGSEGV"}, "", RunState.FAULTED, "killed by SIGSEGV"),
    (RUN, {"signal": "SIGKILL", "oom_kills": 1, "max_rss_kb": 2048}, "", RunState.FAULTED, "out of memory (likely)"),
    (RUN, {"signal": "SIGKILL", "oom_kills": 0}, "", RunState.FAULTED, "killed by SIGKILL"),
    (RUN, {"exit_code": 1}, "torch.OutOfMemoryError: CUDA out of memory.", RunState.FAULTED, "out of GPU memory"),
    (RUN, {"exit_code": 1}, "MemoryError", RunState.FAULTED, "out of memory (likely; exit code 1)"),
    (RUN, {"ended_by": "time limit", "signal": "SIGTERM"}, "", RunState.FAULTED, "time limit: it ran longer than 60 s"),
    (RUN, {"ended_by": "hang"}, "Thread 0x1\n  File x", RunState.FAULTED, "hang: "),
    (RUN, {"ended_by": "spawn error", "error": "no such file"}, "", RunState.FAULTED, "spawn error: no such file"),
    (RUN, {"ended_by": "holder died"}, "", RunState.FAULTED, "holder died: "),
    (RUN, {"ended_by": "lost contact"}, "", RunState.FAULTED, "lost contact: "),
    (RUN, {"ended_by": "cancel"}, "", RunState.FAULTED, "the holder received a SIGTERM"),
    (RUN, {"unkillable": True}, "", RunState.FAULTED, "unkillable: "),
    (CANCELLED_RUN, {"ended_by": "cancel", "signal": "SIGKILL"}, "", RunState.CANCELLED, "cancelled by request"),
]


@pytest.mark.parametrize(("record", "exit", "stderr", "state", "reason"), CASES)
def test_the_state_and_the_reason_follow_from_the_exit(record, exit, stderr, state, reason):
    found, why = final_state(record, exit, "", stderr)

    assert found is state
    assert why.startswith(reason)
    assert bool(why) is (state is not RunState.TERMINATED)


@pytest.mark.parametrize("unread", [None, 0])
def test_a_clean_exit_has_no_reason(unread):
    assert final_state(RUN, {"exit_code": 0, "commands_unread": unread}, "", "") == (RunState.TERMINATED, "")


def test_a_clean_exit_says_how_many_commands_were_not_read():
    state, reason = final_state(RUN, {"exit_code": 0, "commands_unread": 3}, "", "")

    assert state is RunState.TERMINATED
    assert reason == "finished with exit code 0; commands that its worker did not read: 3"


def test_run_failed_followed_by_exit_0_is_a_fault():
    state, reason = final_state(RUN, {"exit_code": 0}, "loss is NaN", "")

    assert state is RunState.FAULTED
    assert reason == "the worker reported run_failed: loss is NaN"


def test_the_dispatchers_own_reason_wins_over_the_exit():
    _, reason = final_state(
        RUN, {"ended_by": "hang", "signal": "SIGKILL"}, "", "File stack", "hang: no heartbeat for 5 min"
    )

    assert reason == "hang: no heartbeat for 5 min\nFile stack"
