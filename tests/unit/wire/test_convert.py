from dataclasses import fields

import pytest

from mosaic.model.errors import BadConfig
from mosaic.model.run import Move, RunSummary
from mosaic.model.states import RunState
from mosaic.wire import mosaic_pb2 as pb
from mosaic.wire.convert import (
    move_from_wire,
    move_to_wire,
    state_from_wire,
    state_to_wire,
    summary_from_wire,
    summary_to_wire,
)

# The daemon uses them itself: the run's reason, RunInfo.total_steps, RunInfo.telemetry.
NOT_SENT = {"failed_message", "total_steps", "note"}


def filled(field):
    """A value that differs from the field's default."""
    samples = {"recent_returns": [1.0, -2.0], "return_trace": [0.5], "last_values": {"loss": 0.25}}
    samples["observed"] = [("metrics", "wandb.log")]
    return samples.get(field.name, 7)


def test_a_summary_survives_the_wire_field_by_field():
    sent = {field.name: filled(field) for field in fields(RunSummary) if field.name not in NOT_SENT}

    assert summary_from_wire(summary_to_wire(RunSummary(**sent))) == RunSummary(**sent)


def test_an_empty_summary_survives_the_wire():
    assert summary_from_wire(summary_to_wire(RunSummary())) == RunSummary()


def test_a_summary_without_env_steps_counts_from_the_highest_step():
    assert summary_from_wire(pb.Summary(last_step=41)).env_steps == 42


@pytest.mark.parametrize("old", [None, RunState.INIT])
def test_a_move_survives_the_wire(old):
    move = Move(old, RunState.HANDSHAKE, 12.5, "why")

    assert move_from_wire(move_to_wire(move)) == move


@pytest.mark.parametrize("state", RunState)
def test_every_state_survives_the_wire(state):
    assert state_from_wire(pb.State.Value(state_to_wire(state))) is state


@pytest.mark.parametrize("number", [0, 99])
def test_an_unknown_state_is_refused(number):
    with pytest.raises(BadConfig, match=f"{number} is not a valid state"):
        state_from_wire(number)
