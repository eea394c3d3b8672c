"""One daemon that serves this machine, a Slurm and a Ray at the same time."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from far_runs import GRACE, steps_of
from ray_cluster import PYTHON

from mosaic.model.states import RunState

pytestmark = pytest.mark.timeout(400)  # Ray's start, which may take several tries
MOSAIC = Path(sys.executable).parent / "mosaic"


@pytest.fixture
def both_lab(slurm_lab, ray_cluster, tmp_path):
    (slurm_lab.root.clusters / "ray.toml").write_text(
        f'address = "{ray_cluster.address}"\nlisten = "127.0.0.1:0"\nroot = "{tmp_path}"\npython = "{PYTHON}"\n'
    )
    return slurm_lab


def ask(lab, *words):
    env = {**os.environ, "MOSAIC_HOME": str(lab.root.path)}
    return json.loads(subprocess.run([MOSAIC, *words, "--json"], capture_output=True, text=True, env=env).stdout)


def test_runs_here_on_slurm_and_on_ray_at_the_same_time(both_lab):
    places = ("local", "slurm:main", "ray:nodeB")
    # Until they are cancelled: Ray may take a minute to start one.
    runs = [both_lab.submit(steps=100_000, rate=10, on=place, limits=GRACE) for place in places]
    for run in runs:
        both_lab.wait_until_run(run, lambda now: now.summary.steps > 0, "a step", 90)

    rows = ask(both_lab, "machines")
    problems = [finding["what"] for finding in ask(both_lab, "doctor") if "luster" in finding["what"]]
    for run in runs:
        both_lab.client.cancel_run(run.run_id)
    over = [both_lab.wait_until_over(run) for run in runs]

    assert sorted({row["place"] for row in rows}) == ["local", "ray", "slurm:main,urgent"]
    assert {row["place"] for row in rows if row["our_runs"]} == {"local", "ray", "slurm:main,urgent"}
    assert problems == []
    assert [run.on for run in over] == ["", "slurm:main", "ray:nodeB"]
    assert [run.state for run in over] == [RunState.CANCELLED] * 3
    for run in runs:
        steps = steps_of(both_lab, run)
        assert steps == list(range(len(steps))) != []
