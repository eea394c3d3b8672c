"""Two runs of one script print the same, and so does a run that was cancelled or killed at any place and resumed."""

import json
import random
import shutil
import subprocess
import tempfile
from collections import Counter
from pathlib import Path

import pytest
from lab import wait_until
from stage import REPO, needs, stage, timeless

from mosaic.model.states import RunState

pytestmark = needs("eval")
LAKE = {"env": "FrozenLake-v1", "operators": {"a": "random", "b": "passive"}, "seeds": "0-5", "max_steps": 15}
POLE = {"env": "CartPole-v1", "operators": {"a": "random", "b": "random"}, "seeds": {"procedural": 7, "count": 6}}
SERVER = REPO / "workers/llm_worker/tests/server/serve.py"


@pytest.fixture(scope="module")
def theatre():
    home = Path(tempfile.mkdtemp(prefix="mosaic-"))
    with stage(home, "eval", "llm") as opened:
        yield opened
    shutil.rmtree(home, ignore_errors=True)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """An LLM operator: a tiny random model behind a real llama.cpp server."""
    ready = tmp_path_factory.mktemp("server") / "ready.json"
    python = REPO / ".venv-llm-server/bin/python"
    server = subprocess.Popen([python, SERVER, "--ready-file", ready, "--with-parent"], stdout=subprocess.DEVNULL)
    wait_until(lambda: ready.exists() or server.poll() is not None, 60, "the test server")
    about = json.loads(ready.read_text())
    yield {
        "kind": "llm",
        "model": about["model"],
        "base_url": about["base_url"],
        "settings": {"temperature": 1.2, "max_tokens": 40},
    }
    server.kill()
    server.wait()


def exported(theatre, run):
    """What `mosaic export` prints, without times and ids."""
    lines = theatre.type_in("export", run.run_id).splitlines()
    return [row for line in lines if (row := timeless(json.loads(line), run.run_id))]


def ledger(run):
    lines = (Path(run.run_dir) / "operators/llm.ledger.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def interrupt(theatre, run, how):
    if how == "cancel":
        theatre.lab.client.cancel_run(run.run_id)
    else:
        assert theatre.kill(run, how)
    ended = theatre.lab.wait_until_over(run)
    assert ended.state in (RunState.CANCELLED, RunState.FAULTED), ended.reason
    return ended


@pytest.mark.parametrize("script", [LAKE, pytest.param(POLE, marks=pytest.mark.slow)], ids=["lake", "pole"])
def test_two_runs_of_one_script_and_a_resumed_one_are_equal(theatre, script):
    first, second = theatre.start(script), theatre.start(script)
    slow = theatre.start({**script, "pace": 20})
    assert theatre.wait_for_steps(slow, random.Random("lake").randint(10, 30))
    resumed = theatre.resume(interrupt(theatre, slow, "cancel"))

    runs = [theatre.lab.wait_until_over(run) for run in (first, second, resumed)]

    assert [run.state for run in runs] == [RunState.TERMINATED] * 3
    one, two, three = [exported(theatre, run) for run in runs]
    assert sum(row["type"] == "episode" for row in one) == 12
    assert one == two
    assert one == three


@pytest.mark.slow
@pytest.mark.parametrize("number", range(6))
def test_a_run_that_is_ended_at_a_random_place_twice_is_resumed_as_if_nothing_had_been(theatre, number):
    dice = random.Random(number)
    script = {**LAKE, "pace": 10, "operators": {"a": "random", "b": "random"}}
    whole = theatre.play({**script, "pace": 0})
    run = theatre.start(script)
    for count in sorted(dice.sample(range(1, theatre.steps(whole, "a") - 2), 2)):
        assert theatre.wait_for_steps(run, count)
        run = interrupt(theatre, run, dice.choice(["cancel", "conductor", "holder"]))
        theatre.type_in("resume", run.run_id, "--detach")
        run = theatre.lab.client.get_run("last")
    run = theatre.lab.wait_until_over(run)

    assert exported(theatre, run) == exported(theatre, whole)


@needs("eval", "llm", "llm-server")
@pytest.mark.parametrize(
    ("how", "seeds"),
    [
        ("conductor", {"fixed": 7, "count": 3}),
        pytest.param("cancel", "0-2", marks=pytest.mark.slow),
        pytest.param("holder", {"fixed": 7, "count": 3}, marks=pytest.mark.slow),
    ],
)
def test_no_call_that_a_language_model_has_answered_is_made_again(theatre, model, how, seeds):
    operators = {"a": "random", "llm": model}
    script = {"env": "FrozenLake-v1", "operators": operators, "seeds": seeds, "max_steps": 6, "pace": 5}
    run = theatre.start(script)
    assert theatre.wait_for_steps(run, 8, "llm")
    killed = interrupt(theatre, run, how)
    answered = ledger(killed)
    before = [row for row in exported(theatre, killed) if row["type"] == "step"]

    resumed = theatre.resume(killed)

    assert resumed.state is RunState.TERMINATED, resumed.reason
    rows = ledger(resumed)
    after = [row for row in exported(theatre, resumed) if row["type"] == "step"]
    assert after[: len(before)] == before  # the model answers at random: only a recorded answer can be the same
    assert max(Counter(row["call_id"] for row in rows).values()) == 1
    assert {row["call_id"] for row in answered} <= {row["call_id"] for row in rows}
    assert [row["call_id"] for row in rows if row["replayed"]] == [row["call_id"] for row in answered]
    decisions = [(row["episode_index"], row["step_index"], row["action"]) for row in after if row["agent_id"] == "llm"]
    assert [(row["episode_index"], row["step_index"], row["action"]) for row in rows] == decisions
    summary = json.loads((Path(resumed.run_dir) / "eval_summary.json").read_text())
    assert summary["ledger"]["llm"]["decisions"] == len(decisions)
