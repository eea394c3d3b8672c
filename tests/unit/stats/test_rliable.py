"""The statistics are those of rliable, on the same resamples. rliable.json has its results (rliable_values.py)."""

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest

from mosaic.stats.averages import AVERAGES, optimality_gap
from mosaic.stats.estimate import estimate
from mosaic.stats.improvement import probability_of_improvement
from mosaic.stats.profiles import profile

HERE = Path(__file__).parent
RLIABLE = HERE.parents[2] / ".venv-rliable/bin/python"
CASES = json.loads((HERE / "rliable.json").read_text())["cases"]
CLOSE = {"rel": 1e-6, "abs": 1e-9}


def strata(matrix):
    return list(np.array(matrix, float).T)


def draws(indexes):
    """rliable's resamples × runs × tasks, as one array per stratum."""
    return list(np.moveaxis(np.array(indexes), 2, 0))


@pytest.mark.parametrize("case", CASES, ids=("three environments", "one environment"))
@pytest.mark.parametrize("name", ["mean", "median", "iqm", "optimality_gap"])
def test_averages_and_intervals_are_those_of_rliable(case, name):
    if name == "median" and len(case["left"][0]) == 1:
        pytest.skip("rliable's median of one task is its mean; ours is the median of the runs")
    expected = case["averages"][name]

    found = estimate(
        strata(case["left"]), {**AVERAGES, "optimality_gap": optimality_gap}[name], draws(expected["draws"])
    )

    assert found.value == pytest.approx(expected["value"], **CLOSE)
    assert found.interval == pytest.approx(expected["interval"], **CLOSE)


@pytest.mark.parametrize("case", CASES, ids=("three environments", "one environment"))
def test_profiles_and_their_bands_are_those_of_rliable(case):
    expected = case["profile"]

    found = profile(strata(case["left"]), np.array(expected["thresholds"]), draws(expected["draws"]))

    assert found.share == pytest.approx(np.array(expected["share"]), **CLOSE)
    assert np.array([found.low, found.high]) == pytest.approx(np.array(expected["band"]), **CLOSE)


@pytest.mark.parametrize("case", CASES, ids=("three environments", "one environment"))
def test_the_probability_of_improvement_is_that_of_rliable(case):
    expected = case["improvement"]
    left, right = zip(*expected["draws"], strict=True)

    found = probability_of_improvement(strata(case["left"]), strata(case["right"]), draws(left), draws(right))

    assert found.value == pytest.approx(expected["value"], **CLOSE)
    assert found.interval == pytest.approx(expected["interval"], **CLOSE)


@pytest.mark.slow
@pytest.mark.skipif(not RLIABLE.exists(), reason="the environment is missing: make .venv-rliable/.ready")
def test_the_saved_results_are_those_of_the_real_rliable():
    printed = subprocess.run([RLIABLE, HERE / "rliable_values.py"], capture_output=True, text=True, check=True).stdout

    assert json.loads(printed) == json.loads((HERE / "rliable.json").read_text())
