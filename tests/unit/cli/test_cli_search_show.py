"""`mosaic search show` of a search whose driver ended early."""

from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from mosaic.cli import search
from mosaic.cli.experiment import describe
from mosaic.cli.main import main
from mosaic.cli.resume import next_steps
from mosaic.cli.search import cancel_search, results, text_of
from mosaic.model.experiment import Experiment, reconstructed


class Client:
    """Answers with these runs; they have no events."""

    def __init__(self, *runs):
        self.runs = runs

    def list_runs(self):
        return self

    def get_run(self, run_id):
        return next(run for run in self.runs if run.run_id == run_id)


@pytest.fixture
def driver(make_run):
    def make(state, **fields):
        return make_run(state, worker_name="search", experiment="lr", **fields)

    return make


def test_a_search_that_failed_says_how_it_is_continued(driver):
    shown = text_of(results(Client(driver("FAULTED", reason="killed by SIGKILL")), "lr"))

    assert shown.splitlines()[1:] == ["killed by SIGKILL", "Continue it with: mosaic search resume lr"]


def test_a_search_that_failed_says_why_in_the_words_of_its_driver(driver):
    reason = "exit code 2\nSome output\nsampler_options: TPESampler does not accept them."

    shown = text_of({**results(Client(driver("FAULTED", reason=reason)), "lr"), "asked": 1})

    assert "Search lr is FAULTED: 1 trial asked; none is over." in shown
    assert shown.splitlines()[1] == "exit code 2: sampler_options: TPESampler does not accept them."


def test_a_resumed_search_has_the_state_of_its_newest_driver(driver):
    first = driver("FAULTED", reason="killed by SIGKILL", summary={"checkpoints": 3})
    resumed = driver("INIT", run_id="01JCQ5W2ZK8M3N4P5Q6R7S8T9W")

    found = results(Client(resumed, first), "lr")

    assert (found["state"], found["driver"]) == ("INIT", resumed.run_id)
    assert "SIGKILL" not in text_of(found)


def test_only_a_search_that_is_complete_suggests_more_trials(driver, tmp_path):
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "checkpoints" / "study.log").touch()
    place = {"area": "runs", "run_dir": str(tmp_path)}

    assert next_steps(driver("TERMINATED", **place)) == ["mosaic search resume lr --trials N"]
    # `text_of` says how this one is continued.
    assert next_steps(driver("FAULTED", **place)) == []


def test_the_experiment_of_a_search_says_what_it_is(make_run):
    document = reconstructed("toy", [{"rate": 1}], "DRIVER")
    experiment = Experiment("lr", document, is_reconstructed=True)
    trials = [make_run("TERMINATED", run_id=run_id, experiment="lr", axes_json='{"rate": 1}') for run_id in "AB"]

    shown = describe(experiment, trials)

    assert "worker toy · a search: mosaic search show lr\n1 earlier run not shown: equal settings\n" in shown
    assert "lost" not in shown


def test_failed_trials_are_left_to_the_driver(make_run):
    experiment = Experiment("lr", reconstructed("toy", [{"rate": 1}], "DRIVER"), is_reconstructed=True)

    shown = describe(experiment, [make_run("FAULTED", experiment="lr", axes_json='{"rate": 1}')])

    assert shown.splitlines()[-1] == "Its driver replaces trials that failed: mosaic search show lr"


def test_a_word_that_is_no_worker_is_not_asked_for_a_range(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("MOSAIC_HOME", str(tmp_path))

    assert main(["search", "list"]) == 1
    assert "Worker 'list' is not installed." in capsys.readouterr().err


def test_a_search_that_is_over_is_not_said_to_be_cancelled(driver, monkeypatch, capsys):
    monkeypatch.setattr(search, "connected", lambda args: nullcontext(Client(driver("TERMINATED"))))

    assert cancel_search(SimpleNamespace(name="lr")) == 0

    assert capsys.readouterr().out == "Nothing to cancel: the search 'lr' is TERMINATED.\n"
