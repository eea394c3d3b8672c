"""`mosaic search`, with the real daemon, the real driver in its own environment, and trials of the toy worker."""

import json
import os
import signal
from pathlib import Path

import pytest
from lab import alive, wait_until

from mosaic.model.states import RunState

S = RunState
ENVIRONMENT = Path(__file__).parents[2] / ".venv-search"
SPACE = ("--space", "episode_length=int:10:60")

pytestmark = [
    pytest.mark.skipif(not ENVIRONMENT.exists(), reason="make .venv-search/.ready"),
    pytest.mark.xdist_group("search"),
]


@pytest.fixture
def search(lab, mosaic):
    """Starts a search named `s` and returns its driver."""
    lab.root.envs.mkdir(exist_ok=True)
    (lab.root.envs / "search").symlink_to(ENVIRONMENT)

    def start(*words):
        return lab.client.get_run(
            json.loads(mosaic("search", "toy", *words, "--name", "s", "--detach", "--json"))["run_id"]
        )

    return start


@pytest.fixture
def show(mosaic):
    return lambda: json.loads(mosaic("search", "show", "s", "--json"))


def trials_of(lab):
    return [run for run in lab.client.list_runs().runs if run.experiment == "s" and run.worker_name == "toy"]


def over(lab):
    return [run for run in trials_of(lab) if run.state.is_over]


def test_a_search_completes_exactly_the_trials_that_were_asked(lab, search, show, mosaic):
    driver = search("steps=120", *SPACE, "--space", "metrics_every=choice:5,10", "--trials", "4", "--max-parallel", "2")

    end = lab.wait_until_over(driver)

    assert (end.state, end.cpus, end.memory_mb, end.experiment) == (S.TERMINATED, 0, 0, "s")
    trials = trials_of(lab)
    assert [run.state for run in trials] == [S.TERMINATED] * 4
    assert all(run.axes.keys() == {"episode_length", "metrics_every"} for run in trials)
    found = show()
    assert found["counts"] == {"complete": 4}
    best = found["best"]
    assert best["value"] == max(trial["value"] for trial in found["trials"])
    assert best["command"].startswith(f"mosaic run toy steps=120 episode_length={best['settings']['episode_length']}")
    assert lab.client.get_run(best["runs"][0]).axes == best["settings"]
    assert "Best: trial" in mosaic("search", "show", "s")
    assert "***" not in mosaic("show", driver.run_id)  # no setting of a search is taken for a secret


def test_a_killed_driver_is_resumed_without_losing_or_doubling_a_trial(lab, search, show, mosaic):
    driver = search("steps=150", "rate=150", *SPACE, "--trials", "4", "--max-parallel", "2")
    wait_until(lambda: len(over(lab)) >= 1 and len(trials_of(lab)) >= 3, 60, words="a finished trial and two others")
    first = {run.run_id for run in trials_of(lab)}

    os.kill(worker_pid(lab, driver), signal.SIGKILL)
    end = lab.wait_until_over(driver)
    resumed = json.loads(mosaic("search", "resume", "s", "--detach", "--json"))
    last = lab.wait_until_over(lab.client.get_run(resumed["run_id"]))

    assert (end.state, last.state, last.reason) == (S.FAULTED, S.TERMINATED, "")
    assert (last.parent_run_id, last.experiment) == (driver.run_id, "s")
    trials = trials_of(lab)
    assert first <= {run.run_id for run in trials}
    assert sorted(run.name for run in trials) == [f"s trial {number}" for number in range(4)]
    assert {run.state for run in trials} == {S.TERMINATED}
    found = show()
    assert found["counts"] == {"complete": 4}
    assert {run_id for trial in found["trials"] for run_id in trial["runs"]} == {run.run_id for run in trials}


def test_a_search_survives_the_daemon(lab, search, show):
    driver = search("steps=150", "rate=150", *SPACE, "--trials", "3", "--max-parallel", "2")
    wait_until(lambda: len(trials_of(lab)) >= 2, 60, words="two trials")

    lab.kill_daemon()
    lab.restart_daemon()
    end = lab.wait_until_over(driver)

    assert (end.state, end.attempt) == (S.TERMINATED, 1)
    assert sorted(run.name for run in trials_of(lab)) == [f"s trial {number}" for number in range(3)]
    assert show()["counts"] == {"complete": 3}


def test_a_hopeless_trial_is_cancelled_with_the_reason(lab, search, show):
    # The first trial learns, the second one does not: seed 0 of this sampler chooses 1000, then 1.
    choice = ("--space", "forget_at=choice:1,1000", "--sampler", "random", "--sampler-seed", "0", "--trials", "2")
    pruning = ("--pruner", "median", "--pruner-option", "n_startup_trials=1")
    driver = search("steps=200", "rate=50", *choice, *pruning)

    lab.wait_until_over(driver)

    pruned, complete = trials_of(lab)
    assert (complete.state, complete.axes) == (S.TERMINATED, {"forget_at": 1000})
    assert (pruned.state, pruned.axes) == (S.CANCELLED, {"forget_at": 1})
    assert pruned.reason.startswith("pruned at step ")
    assert pruned.reason.endswith(": below the median")
    found = show()
    assert found["counts"] == {"complete": 1, "pruned": 1}
    assert found["trials"][1]["reason"] == pruned.reason


def test_failed_trials_are_named_replaced_and_end_the_search_if_nothing_else_happens(lab, search, show, mosaic):
    driver = search("steps=50", "crash_at=3", *SPACE, "--trials", "5", "--max-failures", "2")

    end = lab.wait_until_over(driver)

    assert end.state is S.FAULTED
    assert "2 trials in a row have failed. The last one: run " in end.reason
    found = show()
    assert found["counts"] == {"failed": 2}
    assert all("is FAULTED" in trial["reason"] for trial in found["trials"])
    assert len(trials_of(lab)) == 2


FILE = """
name: s
worker: toy
base: {steps: 60}
space: {episode_length: int:10:60, metrics_every: [5, 10]}
trials: 1
max_parallel: 2
seeds: 0-1
options: {tags: [demo]}
"""


def test_a_search_in_a_file_runs_each_trial_with_its_seeds(lab, search, show, mosaic, tmp_path):
    (tmp_path / "any.yaml").write_text(FILE)
    driver = lab.client.get_run(
        json.loads(mosaic("search", str(tmp_path / "any.yaml"), "--detach", "--json"))["run_id"]
    )
    end = lab.wait_until_over(driver)

    runs = sorted(trials_of(lab), key=lambda run: run.seed)

    assert (end.state, show()["counts"]) == (S.TERMINATED, {"complete": 1})
    assert [run.axes.pop("seed") for run in runs] == [0, 1]
    assert runs[0].axes == runs[1].axes
    assert [list(run.tags) for run in runs] == [["demo"], ["demo"]]
    assert sorted(show()["trials"][0]["runs"]) == sorted(run.run_id for run in runs)
    # The driver's config names the setting as well, twice.
    assert {run.run_id for run in lab.client.list_runs(where="episode_length>0").runs} == {run.run_id for run in runs}


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ["--space", "episode_lenth=int:1:9"],
            "episode_lenth: the worker has no such setting. Did you mean 'episode_length'?",
        ),
        (["--space", "episode_length=int:0:9"], "episode_length: must be at least 1, not 0."),
        (["--space", "agents=choice:1,many"], "agents: must be an integer"),
        (["--space", "steps=int:9:1"], "the lowest value must be less than the highest"),
        (["agents=2", "--space", "agents=int:1:9"], "agents is searched and has a fixed value as well"),
        (["--space", "agents"], "'agents' is not KEY=RANGE"),
        ([*SPACE, "--seeds", "2-0"], "--seeds: '2-0' is not a list of seeds"),
        ([*SPACE, "--name", "a/b"], "--name: 'a/b' is not a valid name"),
    ],
)
def test_what_cannot_be_searched_is_refused_and_nothing_is_made(lab, search, mosaic, words, sentence):
    assert sentence in mosaic("search", "toy", *words, code=1)

    assert lab.client.list_runs().total == 0


def worker_pid(lab, run):
    """The driver's own process, in its namespace's tree."""
    mark = f"worker-{run.run_id}.json".encode()
    found = []

    def look():
        found[:] = [
            int(pid)
            for pid in os.listdir("/proc")
            if pid.isdigit() and mark in _cmdline(pid) and b"search_worker" in _cmdline(pid) and alive(int(pid))
        ]
        return bool(found)

    wait_until(look, words="the driver's process")
    return max(found)


def _cmdline(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
