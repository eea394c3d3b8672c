"""`mosaic search show` of a search whose driver ended early."""

import pytest

from mosaic.cli.search import results, text_of


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


def test_a_resumed_search_has_the_state_of_its_newest_driver(driver):
    first = driver("FAULTED", reason="killed by SIGKILL", summary={"checkpoints": 3})
    resumed = driver("INIT", run_id="01JCQ5W2ZK8M3N4P5Q6R7S8T9W")

    found = results(Client(resumed, first), "lr")

    assert (found["state"], found["driver"]) == ("INIT", resumed.run_id)
    assert "SIGKILL" not in text_of(found)
