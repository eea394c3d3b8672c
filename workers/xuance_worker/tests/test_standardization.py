"""The checks of the worker guide and the conformance lab, on the XuanCe worker."""

from pathlib import Path

import pytest
from mosaic_sdk.contract import WorkerCapabilities, WorkerConfig, WorkerMetadata
from mosaic_sdk.testing import assert_conforms, assert_layout
from xuance_worker import get_worker_metadata
from xuance_worker.config import XuanceConfig

WARM = ("torch._dynamo", "xuance.torch.agents", "xuance.environment", "torch.utils.tensorboard")


def test_its_config_offers_what_every_worker_config_does():
    config = XuanceConfig.from_dict({"run_id": "test-001", "seed": 42, "extras": {"algo_params": {"gamma": 0.9}}})

    restored = XuanceConfig.from_dict(config.to_dict())

    assert isinstance(config, WorkerConfig)
    assert (restored.run_id, restored.seed) == ("test-001", 42)
    assert restored.to_dict() == config.to_dict()


def test_it_describes_itself():
    metadata, capabilities = get_worker_metadata()

    assert isinstance(metadata, WorkerMetadata)
    assert isinstance(capabilities, WorkerCapabilities)
    assert (metadata.name, capabilities.worker_type) == ("XuanCe Worker", "xuance")


@pytest.mark.timeout(900)  # importing torch takes minutes on a busy machine
def test_the_worker_keeps_the_contract():
    assert_conforms("xuance_worker", env={"OMP_NUM_THREADS": "1"}, grace_s=60.0, limit_s=300.0, warm=WARM)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_it_keeps_the_contract_when_every_run_starts_by_itself():
    assert_conforms("xuance_worker", env={"OMP_NUM_THREADS": "1"}, grace_s=60.0, limit_s=300.0)


def test_it_has_the_layout_of_every_worker():
    assert_layout(Path(__file__).parents[1])
