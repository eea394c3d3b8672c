import shutil
import subprocess
from pathlib import Path

import pytest


def python39():
    """A Python 3.9 that runs; pyenv leaves a shim on the path that does not."""
    found = [str(path) for path in sorted(Path.home().glob(".pyenv/versions/3.9.*/bin/python"))]
    for python in [*reversed(found), shutil.which("python3.9")]:
        if python and subprocess.run([python, "-c", ""], capture_output=True).returncode == 0:
            return python
    return None


@pytest.mark.skipif(python39() is None, reason="no Python 3.9 here")
def test_all_of_the_sdk_imports_on_python_39(bench):
    package = bench.sdk / "mosaic_sdk"
    names = [path.stem for path in package.glob("*.py")]
    names += [f"operators.{path.stem}" for path in (package / "operators").glob("*.py")]
    script = "import importlib\n" + "\n".join(f"importlib.import_module('mosaic_sdk.{name}')" for name in names)
    script += "\nimport gym_gui.core.worker, gym_gui.telemetry.semconv, toy_worker.cli, toy_worker.runtime"

    ended = bench.script(script, python=python39(), path=[bench.sdk, bench.toy, bench.gym_gui])

    assert (ended.code, ended.err) == (0, "")
    assert "emit" in names


@pytest.mark.skipif(python39() is None, reason="no Python 3.9 here")
def test_the_toy_worker_runs_on_python_39(bench, tmp_path):
    (tmp_path / "config.json").write_text('{"steps": 100}')

    ended = bench.run("-m", "toy_worker.cli", "--config", tmp_path / "config.json", python=python39())

    assert (ended.code, ended.err) == (0, "")
    assert sum(line.get("event_type") == "step" for line in ended.objects) == 100


RESULTS = """
import json, math
from mosaic_sdk.results.summary import EvalResults

found = EvalResults(run_id="R1", env_id="Count-v0", seeds=range(30), operators={"a": {}, "b": {}})
for seed in range(30):
    for operator, value in (("a", math.sin(seed)), ("b", math.cos(3 * seed))):
        found.add({"lane": operator, "operator": operator, "episode_index": seed, "seed": seed, "return": value})
print(json.dumps(found.summary()))
"""


@pytest.mark.skipif(python39() is None, reason="no Python 3.9 here")
def test_results_are_the_same_numbers_in_every_version_of_python(bench):
    bench.script(RESULTS, path=[bench.sdk])
    both = bench.script(RESULTS, python=python39(), path=[bench.sdk])

    assert (both.code, both.err) == (0, "")
    here, there = both.lines
    assert there == here
