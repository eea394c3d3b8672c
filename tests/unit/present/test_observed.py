import json

import pytest

from mosaic.present.observed import observed_lines
from mosaic.wire import mosaic_pb2 as pb

WRITER = "torch.utils.tensorboard.SummaryWriter"


@pytest.fixture
def lines(make_run):
    def lines(worker, state="TERMINATED", observed=(), **summary):
        heard = [pb.Observed(what=what, by=by) for what, by in observed]
        config = json.dumps({"metadata": {"worker": worker}})
        return observed_lines(make_run(state, {"observed": heard, **summary}, config_json=config))

    return lines


def test_every_hook_is_named_with_what_it_reported(lines):
    heard = [
        ("metrics", WRITER),
        ("metrics", "wandb.log"),
        ("episodes", "gymnasium.make"),
        ("frames", "gymnasium.make"),
    ]

    assert lines({"script": "/x.py"}, observed=heard, metrics=1200, episodes=7, events=1207) == [
        f"metrics: 1,200 lines, by {WRITER}, wandb.log",
        "episodes: 7, by gymnasium.make",
        "frames: by gymnasium.make",
    ]


def test_a_run_without_telemetry_says_what_to_do(lines):
    [line] = lines({"script": "/x.py"})

    assert line.startswith("Nothing was observed: the script uses none of TensorBoard")
    assert "docs/howto/scripts.md" in line


@pytest.mark.parametrize(
    ("worker", "state", "events", "expected"),
    [
        ({"script": "/x.py"}, "TERMINATED", 5, "Nothing was observed: all telemetry is what the script prints itself."),
        ({"script": "/x.py"}, "FAULTED", 0, "Nothing was observed before it ended."),
        ({"module": "a.b", "python": "/p"}, "READY", 0, "Nothing yet."),
        ({"script": "/x.py", "observe": False}, "TERMINATED", 0, "Nothing was observed, as requested"),
    ],
)
def test_nothing_has_its_reason(lines, worker, state, events, expected):
    [line] = lines(worker, state, events=events)

    assert line.startswith(expected)


def test_a_worker_that_is_not_observed_has_no_section(lines):
    assert lines({"module": "toy_worker.cli"}, events=5) == []
