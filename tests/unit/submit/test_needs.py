import pytest

from mosaic.model.run import Limits
from mosaic.submit.config import read_config
from mosaic.submit.needs import with_worker_needs


def read(**limits):
    return read_config({"metadata": {"worker": {"module": "toy_worker.cli"}}, "payload": {"limits": limits}})


def test_a_worker_sets_the_limit_of_its_runs_unless_the_config_does():
    assert with_worker_needs(read(), {"spin_s": 7200}).limits.spin_s == 7200
    assert with_worker_needs(read(), {"spin_s": 0}).limits.spin_s == 0
    assert with_worker_needs(read(spin_s=60), {"spin_s": 7200}).limits.spin_s == 60
    assert with_worker_needs(read(spin_s=0), {"spin_s": 7200}).limits.spin_s == 0


@pytest.mark.parametrize("nonsense", [None, -1, True, "long", float("nan"), 1e300])
def test_a_capability_that_makes_no_sense_counts_as_not_given(nonsense):
    assert with_worker_needs(read(), {"spin_s": nonsense}).limits == Limits()
