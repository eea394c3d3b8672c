"""The checks of the worker guide and the conformance lab."""

from pathlib import Path

import pytest
from mosaic_sdk.contract import WorkerCapabilities, WorkerMetadata
from mosaic_sdk.testing import assert_conforms, assert_layout
from tianshou_worker import get_worker_metadata

WARM = ("torch._dynamo", "tianshou.trainer", "torch.utils.tensorboard", "compiled_tianshou")


def test_its_folder_has_the_layout_of_the_guide():
    assert_layout(Path(__file__).parents[1])


def test_it_describes_itself():
    metadata, capabilities = get_worker_metadata()

    assert isinstance(metadata, WorkerMetadata)
    assert isinstance(capabilities, WorkerCapabilities)
    assert capabilities.worker_type == "tianshou"


@pytest.mark.timeout(900)  # importing torch takes minutes on a busy machine
def test_it_keeps_the_contract():
    env = {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path(__file__).parent)}
    assert_conforms("tianshou_worker", limit_s=600.0, warm=WARM, env=env)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_it_keeps_the_contract_when_every_run_starts_by_itself():
    assert_conforms("tianshou_worker", limit_s=600.0)
