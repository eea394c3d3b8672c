"""Every state is explained in one line, with the reason of the run if it has one."""

import pytest

from mosaic.model.states import RunState
from mosaic.present.states import MEANING, explain


def test_every_state_has_a_meaning():
    assert set(MEANING) == set(RunState)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"state": "INIT"}, "INIT: submitted, about to start"),
        ({"state": "INIT", "waiting_for": "1 free CPU"}, "INIT: waiting for 1 free CPU"),
        ({"state": "READY"}, "READY: started, no telemetry yet"),
        ({"life": "quiet 6 min"}, "EXECUTING: running, telemetry is being stored; quiet 6 min"),
        ({"cancel_requested": True}, "EXECUTING: being cancelled"),
        ({"state": "TERMINATED"}, "TERMINATED: finished with exit code 0"),
        ({"state": "FAULTED", "reason": "killed by SIGSEGV\nlast line"}, "FAULTED: killed by SIGSEGV"),
        ({"state": "CANCELLED", "telemetry": "incomplete"}, "CANCELLED: cancelled by request; incomplete"),
    ],
)
def test_a_state_is_explained_in_one_line(make_run, fields, expected):
    assert explain(make_run(**fields)) == expected


def test_a_reason_cannot_move_the_cursor(make_run):
    assert "\x1b" not in explain(make_run(state="FAULTED", reason="\x1b[2Jgone"))
