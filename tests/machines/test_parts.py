"""A run whose parts are jobs of their own: Dreamer on one node, its envs and its replay on others."""

import json
from pathlib import Path

import pytest
from lab import wait_until

from mosaic.model.states import RunState

ENVIRONMENT = Path(__file__).parents[2] / ".venv-dreamer"
LONG_S = 200  # numpy and gymnasium are imported by several processes on a busy machine
TINY = {
    **{"env": "dummy_grid", "random_agent": True, "envs": 2, "eval_envs": 0, "batch_size": 4, "batch_length": 8},
    **{"train_ratio": 8, "replay_gb": 0.01, "log_every_s": 0.5, "save_every_s": 5, "report_every_s": 100},
}
WHOLE_NODE = 4  # CPUs

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        not (ENVIRONMENT / ".ready").exists(), reason="the worker's environment is missing: make .venv-dreamer/.ready"
    ),
]


def submit(lab, on, steps, part_on, cpus, *names):
    if not (lab.root.envs / "dreamer").exists():
        (lab.root.envs / "dreamer").symlink_to(ENVIRONMENT)
    worker = {"module": "dreamer_worker.cli", "config": {**TINY, "steps": steps}}
    parts = [{"name": name, "on": part_on, "resources": {"cpus": cpus}} for name in names]
    payload = {"on": on, "resources": {"cpus": cpus}, "parts": parts}
    return lab.client.submit_run({"metadata": {"worker": worker}, "payload": payload})


def parts_of(lab, run):
    return [lab.client.get_run(child) for child in lab.client.get_run(run.run_id).children]


def wait_for_steps(lab, run, steps):
    return lab.wait_until_run(run, lambda now: now.summary.env_steps >= steps, f"{steps} steps", LONG_S)


def test_the_envs_of_a_run_on_another_node_are_replaced_when_their_job_is_cancelled(slurm_lab, cluster):
    run = submit(slurm_lab, "slurm", 10**9, "slurm", WHOLE_NODE, "env")
    wait_for_steps(slurm_lab, run, 50)
    [fleet] = parts_of(slurm_lab, run)

    cluster.ask("scancel", fleet.job)
    wait_until(lambda: len(parts_of(slurm_lab, run)) == 2, LONG_S, "the part that replaces it")
    lost, newest = parts_of(slurm_lab, run)
    slurm_lab.wait_until_run(newest, lambda now: now.summary.events > 2, "its lines", LONG_S)
    played = slurm_lab.client.get_run(run.run_id).summary.env_steps
    now = wait_for_steps(slurm_lab, run, played + 50)
    nodes = {part.node for part in parts_of(slurm_lab, run)}
    slurm_lab.client.cancel_run(run.run_id)
    slurm_lab.wait_until_over(run, LONG_S)
    wait_until(lambda: all(part.state.is_over for part in parts_of(slurm_lab, run)), LONG_S, "the end of the parts")

    assert nodes
    assert now.node not in nodes
    assert lost.reason.startswith("cancelled outside MOSAIC")
    assert parts_of(slurm_lab, run)[1].state is RunState.CANCELLED
    wait_until(lambda: not cluster.ask("squeue", "--noheader").strip(), LONG_S, "the end of the jobs")


def test_a_run_on_this_machine_has_its_envs_and_its_replay_on_ray_and_all_of_its_checkpoints(ray_lab):
    run = submit(ray_lab, "local", 300, "ray", 1, "env", "replay")

    over = ray_lab.wait_until_over(run, LONG_S)
    wait_until(lambda: all(part.state.is_over for part in parts_of(ray_lab, run)), LONG_S, "the end of the parts")

    assert over.state is RunState.TERMINATED
    assert over.summary.env_steps >= 300
    assert [part.on for part in parts_of(ray_lab, run)] == ["ray", "ray"]
    newest = max(ray_lab.rundir(run).checkpoints.glob("epoch-*/commit.json")).parent
    saved = json.loads((newest / "replay.json").read_text())["buffers"]["train"]["blocks"]
    assert saved
    assert all((newest.parent / "blocks" / block["file"]).exists() for block in saved)
