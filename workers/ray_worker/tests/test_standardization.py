"""The checks of the worker guide and the conformance lab, on the Ray worker."""

from pathlib import Path

import pytest
from mosaic_sdk.contract import WorkerCapabilities, WorkerConfig, WorkerMetadata
from mosaic_sdk.testing import assert_conforms, assert_layout
from ray_worker import get_worker_metadata
from ray_worker.config import RayWorkerConfig

WARM = ("torch._dynamo", "ray.rllib.algorithms.ppo")


def test_its_config_offers_what_every_worker_config_does():
    config = RayWorkerConfig.from_dict({"run_id": "test-001", "seed": 42, "extras": {"algo_params": {"lr": 1e-3}}})

    restored = RayWorkerConfig.from_dict(config.to_dict())

    assert isinstance(config, WorkerConfig)
    assert (restored.run_id, restored.seed, restored.algo_params) == ("test-001", 42, {"lr": 1e-3})
    assert restored.to_dict() == config.to_dict()


def test_it_describes_itself():
    metadata, capabilities = get_worker_metadata()

    assert isinstance(metadata, WorkerMetadata)
    assert isinstance(capabilities, WorkerCapabilities)
    assert (metadata.name, capabilities.worker_type) == ("Ray Worker", "ray")


@pytest.mark.timeout(1200)  # importing RLlib takes minutes on a busy machine
def test_the_worker_keeps_the_contract():
    env = {"OMP_NUM_THREADS": "1"}
    assert_conforms("ray_worker", grace_s=60.0, limit_s=600.0, warm=WARM, env=env)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_it_keeps_the_contract_when_every_run_starts_by_itself():
    assert_conforms("ray_worker", grace_s=60.0, limit_s=600.0)


def test_it_has_the_layout_of_every_worker():
    assert_layout(Path(__file__).parents[1])
