"""A run is named by id, start of an id, name, `last` or `last~N`, in every verb and every call of the client."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from lab import Lab

from mosaic.model.errors import AmbiguousRun, UnknownRun

MOSAIC = Path(sys.executable).with_name("mosaic")


@pytest.fixture(scope="module")
def shared():
    """One daemon with three runs that are over: alpha, beta and beta again."""
    home = Path(tempfile.mkdtemp(prefix="mosaic-"))
    lab = Lab(home)
    lab.runs = [lab.wait_until_over(lab.submit(name, steps=120, text_every=50)) for name in ("alpha", "beta", "beta")]
    yield lab
    lab.close()
    shutil.rmtree(home, ignore_errors=True)


@pytest.fixture
def mosaic(shared):
    def call(*words, code=0):
        env = {**os.environ, "MOSAIC_HOME": str(shared.root.path), "NO_COLOR": "1"}
        done = subprocess.run([MOSAIC, *words], env=env, capture_output=True, text=True, timeout=60)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout if code == 0 else done.stderr

    return call


@pytest.mark.parametrize(("reference", "index"), [("alpha", 0), ("last", 2), ("last~1", 1), ("last~2", 0)])
def test_show_accepts_names_and_last(shared, mosaic, reference, index):
    assert json.loads(mosaic("show", reference, "--json"))["run_id"] == shared.runs[index].run_id


def test_a_shared_name_is_refused_with_the_candidates(shared, mosaic):
    output = mosaic("show", "beta", code=1).splitlines()

    assert "Several runs have the name 'beta'" in output[0]
    assert [line.split()[:3] for line in output[1:]] == [
        [run.run_id, "beta", "TERMINATED"] for run in reversed(shared.runs[1:])
    ]


def test_an_unknown_name_gets_a_suggestion(mosaic):
    assert "There is no run 'alhpa'. Did you mean 'alpha'? List all runs with: mosaic runs" in mosaic(
        "show", "alhpa", code=1
    )


@pytest.mark.parametrize("verb", [("export",), ("logs",), ("logs", "--tail", "1"), ("curve",), ("cancel",)])
def test_every_verb_accepts_the_name_of_a_run(shared, mosaic, verb):
    assert mosaic(*verb, "alpha") == mosaic(*verb, shared.runs[0].run_id) != ""


def test_every_call_of_the_client_accepts_a_name(shared):
    client, run = shared.client, shared.runs[0].run_id

    assert client.get_run("alpha").run_id == client.cancel_run("alpha").run_id == run
    for stream in (client.stream_steps, client.stream_episodes, client.stream_events, client.stream_logs):
        assert list(stream("alpha")) == list(stream(run)) != []
    assert client.curve_names("alpha") == client.curve_names(run)
    assert client.query_curve("alpha", "step/reward") == client.query_curve(run, "step/reward")
    for refused in (client.delete_run, lambda name: next(client.frames(name, wait_s=0))):
        with pytest.raises(AmbiguousRun):
            refused("beta")
        with pytest.raises(UnknownRun):
            refused("gamma")


def test_after_the_last_run_is_deleted_last_is_the_one_before(shared):
    gone = shared.wait_until_over(shared.submit("gone", steps=1))

    shared.client.delete_run("last")

    assert shared.client.get_run("last").run_id == shared.runs[-1].run_id != gone.run_id


@pytest.mark.parametrize(
    ("name", "expected"),
    [("toy/los", "Did you mean 'toy/loss'? Its metrics: "), ("reward", "Did you mean 'step/reward'?")],
)
def test_an_unknown_metric_is_refused_with_the_known_ones(mosaic, name, expected):
    for words in (("curve", "alpha", name), ("curve", "alpha", name, "--json")):
        refused = mosaic(*words, code=1)

        assert f"has no metric '{name}'. {expected}" in refused
        assert "episode/return" in refused
