"""Values that are unavailable in this environment, and values that need another one: both are handled at submit."""

import json

import pytest
from tiny_worker import DESCRIBES

from mosaic.model.errors import BadConfig, UnknownWorker
from mosaic.model.states import RunState

ALGO = {
    "type": "string",
    "enum": ["ppo", "ppo_jax"],
    "x-mosaic-unavailable": {"pqn": "release 2 has it, and 1 is installed"},
    "x-mosaic-open-with": "checkout",
}
SCHEMA = {
    "properties": {"algo": ALGO, "checkout": {"type": "string"}, "extras": {"properties": {"lr": {"type": "number"}}}},
    "x-mosaic-variants": {"algo": {"ppo_jax": "jax"}},
}
CHOOSES = f"{DESCRIBES}def get_worker_schema():\n    return {SCHEMA!r}\n"


@pytest.fixture
def worker(write_worker):
    folder = write_worker(init=CHOOSES)
    (folder / "requirements").mkdir()
    (folder / "requirements/jax.txt").write_text("")
    return folder


def test_an_unavailable_value_is_shown_at_install_and_refused_at_submit(mosaic, lab, worker):
    installed = mosaic("worker", "install", worker)
    described = mosaic("worker", "describe", "tiny")
    refused = mosaic("run", "tiny", "algo=pqn", code=1)
    mistyped = mosaic("run", "tiny", "algo=pop", code=1)

    assert "Unavailable: algo=pqn: release 2 has it, and 1 is installed.\n" in installed
    assert "unavailable: algo=pqn: release 2 has it" in described
    assert "mosaic: algo: pqn is unavailable here: release 2 has it, and 1 is installed." in refused
    assert 'algo: must be one of ppo, ppo_jax, not "pop".' in mistyped
    with pytest.raises(BadConfig, match="pqn is unavailable here"):
        lab.submit_worker({"module": "tiny_worker.cli", "config": {"algo": "pqn"}})
    assert lab.client.list_runs().total == 0


def test_a_key_that_opens_the_choices_lets_any_name_through(mosaic, lab, worker):
    mosaic("worker", "install", worker)

    run = lab.submit_worker({"module": "tiny_worker.cli", "config": {"algo": "pqn", "checkout": "/mine"}})

    assert lab.wait_until_over(run).state is RunState.TERMINATED


def test_a_value_that_needs_a_variant_chooses_it_for_every_client(mosaic, lab, home, worker):
    mosaic("worker", "install", worker)
    config = {"module": "tiny_worker.cli", "config": {"algo": "ppo_jax"}}

    refused = mosaic("run", "tiny", "algo=ppo_jax", code=1)
    with pytest.raises(UnknownWorker, match="algo=ppo_jax needs the variant jax"):
        lab.submit_worker(config)
    mosaic("worker", "install", worker, "--variant", "jax")
    run = lab.submit_worker(config)
    typed = json.loads(mosaic("run", "tiny", "algo=ppo_jax", "--json"))

    assert "Install it with: mosaic worker install tiny@jax" in refused
    assert lab.wait_until_over(run).state is RunState.TERMINATED
    assert json.loads(lab.rundir(run).launch.read_text())["argv"][0] == str(home / "envs/tiny@jax/bin/python")
    assert typed["state"] == "TERMINATED"
    assert "tiny@jax" in (home / "trainer/control" / typed["run_id"] / "launch.json").read_text()


def test_a_script_that_a_worker_ships_is_run_by_its_name_with_its_settings(mosaic, lab, write_worker, script):
    quick = script("quick.sh", '#!/bin/sh\n# @total_timesteps: 500\ncat "$MOSAIC_CONFIG_FILE"\n')
    entry = {"path": quick, "description": "a quick one", "phases": 1, "total_timesteps": 500}
    schema = {**SCHEMA, "x-mosaic-scripts": {"quick": entry}}
    mosaic("worker", "install", write_worker(init=f"{DESCRIBES}def get_worker_schema():\n    return {schema!r}\n"))

    run = json.loads(
        mosaic("run", "--script", "quick", "--env-of", "tiny", "--set", "lr=0.5", "--set", "x=1", "--json")
    )
    shown = mosaic("run", "tiny", "--help")

    assert (run["state"], run["total_steps"]) == ("TERMINATED", 500)
    stored = json.loads(lab.text(lab.client.get_run(run["run_id"])))
    assert (stored["x"], stored["extras"]) == (1, {"lr": 0.5})
    assert "mosaic run --script NAME --env-of tiny" in shown
    assert "quick  1       500    a quick one" in shown
    assert "The file quik does not exist, and tiny ships: quick." in mosaic(
        "run", "--script", "quik", "--env-of", "tiny", code=1
    )
    assert "--set needs --script" in mosaic("run", "toy", "--set", "a=1", code=2)
