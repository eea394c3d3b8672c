"""What a script's SummaryWriter receives is emitted as telemetry."""

import json
import math
import os

import numpy as np
import pytest
import torch
from cleanrl_worker.telemetry import Diverged, Scalars
from mosaic_sdk.emit import Emitter


@pytest.fixture
def recorded(tmp_path):
    fd = os.open(tmp_path / "spool", os.O_RDWR | os.O_CREAT | os.O_APPEND)
    steps = []
    scalars = Scalars(Emitter(fd, run_id="01A"), steps.append)
    yield scalars, steps, lambda: [json.loads(line) for line in (tmp_path / "spool").read_text().splitlines()]
    os.close(fd)


def test_scalars_of_any_type_become_metrics_under_their_own_names(recorded):
    scalars, steps, lines = recorded

    for value in (0.5, 3, np.array([1.5]), np.float32(2.5), torch.tensor(4.5, requires_grad=True), torch.ones(1, 1)):
        scalars.record("charts/x", value, 7)

    assert [line["value"] for line in lines()] == [0.5, 3.0, 1.5, 2.5, 4.5, 1.0]
    assert {(line["name"], line["step"]) for line in lines()} == {("charts/x", 7)}
    assert steps == [7] * 6


def test_a_return_and_its_length_become_an_episode_too(recorded):
    scalars, _, lines = recorded

    for number in range(2):
        scalars.record("charts/episodic_return", 21.0 + number, 100)
        scalars.record("charts/episodic_length", 21, 100)

    episodes = [line for line in lines() if line["event_type"] == "episode"]
    assert [(line["episode_index"], line["total_reward"], line["steps"]) for line in episodes] == [
        (0, 21.0, 21),
        (1, 22.0, 21),
    ]


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_loss_that_is_nan_or_infinite_ends_the_training(recorded, value):
    scalars, _, lines = recorded

    with pytest.raises(Diverged, match=r"losses/value_loss is .* at step 512: the training has diverged"):
        scalars.record("losses/value_loss", value, 512)

    assert len(lines()) == 1  # emitted before the training ends


def test_a_nan_loss_does_not_end_the_training_without_stop_on_nan(recorded):
    scalars, _, lines = recorded
    scalars.stop_on_nan = False

    scalars.record("losses/value_loss", math.nan, 512)

    assert lines()[1]["event"] == "training_diverged"


def test_an_undefined_explained_variance_does_not_end_the_training(recorded):
    scalars, _, lines = recorded

    scalars.record("losses/explained_variance", math.nan, 512)

    assert len(lines()) == 1


def test_a_writer_class_is_observed_and_still_writes(recorded):
    scalars, _, lines = recorded

    class Writer:
        def __init__(self):
            self.written = []

        def add_scalar(self, tag, scalar_value, global_step=None, walltime=None):
            self.written.append((tag, scalar_value, global_step))

    scalars.observe(Writer)
    writer = Writer()
    writer.add_scalar("charts/SPS", 100, 5)
    writer.add_scalar("charts/SPS", scalar_value=101, global_step=6)

    assert writer.written == [("charts/SPS", 100, 5), ("charts/SPS", 101, 6)]
    assert [line["value"] for line in lines()] == [100.0, 101.0]
