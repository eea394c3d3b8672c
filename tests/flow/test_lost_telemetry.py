"""The telemetry file of a finished run is deleted: every command that would show it says so, and the rest goes on."""

import os

import pytest

from mosaic.model.durable import write_bytes
from mosaic.model.errors import StoreFailed


def lose(path):
    path.unlink()


def empty(path):
    os.truncate(path, 0)


@pytest.fixture
def lab(shared_lab):
    return shared_lab


@pytest.fixture
def run(lab):
    return lab.wait_until_over(lab.submit(steps=5, metrics_every=1))


def asks(lab, run):
    client = lab.client
    return {
        "curve": lambda: client.query_curve(run.run_id, "toy/loss"),
        "export": lambda: list(client.stream_events(run.run_id)),
        "logs": lambda: list(client.stream_logs(run.run_id)),
    }


@pytest.mark.parametrize(("damage", "words"), [(lose, "is missing"), (empty, "is empty")])
def test_lost_telemetry_of_a_finished_run_is_named(lab, run, damage, words):
    before = lab.client.get_run(run.run_id)
    damage(lab.rundir(run).telemetry)

    assert before.telemetry == ""
    assert f"telemetry.sqlite {words}" in lab.client.get_run(run.run_id).telemetry
    for ask in asks(lab, run).values():
        with pytest.raises(StoreFailed, match=rf"telemetry\.sqlite {words}: .* is lost"):
            ask()


def test_a_file_that_is_put_back_is_read_again(lab, run):
    path = lab.rundir(run).telemetry
    content = path.read_bytes()
    path.unlink()
    with pytest.raises(StoreFailed):
        lab.events(run)

    write_bytes(path, content)

    assert len(lab.events(run, "step")) == 5
    assert lab.client.get_run(run.run_id).telemetry == ""


def test_a_run_that_never_ran_has_lost_nothing(lab):
    blocker = lab.submit(steps=1_000_000, rate=50, resources={"cpus": 32})
    run = lab.submit(steps=5, resources={"cpus": 32})
    lab.client.cancel_run(run.run_id)
    lab.wait_until_over(run)
    lab.client.cancel_run(blocker.run_id)

    assert lab.events(run) == []
    assert "telemetry.sqlite" not in lab.client.get_run(run.run_id).telemetry
