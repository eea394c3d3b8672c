"""The checks of the worker guide and the conformance lab."""

from pathlib import Path

import pytest
from mosaic_sdk.contract import WorkerCapabilities, WorkerConfig, WorkerMetadata
from mosaic_sdk.testing import assert_conforms, assert_layout
from stable_baselines3_worker import get_worker_metadata
from stable_baselines3_worker.config import StableBaselines3Config

# Importing torch takes minutes on a busy machine.
LIMIT_S = 600.0
WARM = ("torch._dynamo", "stable_baselines3", "torch.utils.tensorboard")


def test_its_folder_has_the_layout_of_the_guide():
    assert_layout(Path(__file__).parents[1])


def test_its_config_survives_a_round_trip():
    config = StableBaselines3Config.from_dict(
        {"run_id": "test-001", "seed": 42, "extras": {"algo_params": {"gamma": 0.9}}}
    )

    assert isinstance(config, WorkerConfig)
    assert StableBaselines3Config.from_dict(config.to_dict()) == config
    assert (config.seed, config.algo_params) == (42, {"gamma": 0.9})


def test_it_describes_itself():
    metadata, capabilities = get_worker_metadata()

    assert isinstance(metadata, WorkerMetadata)
    assert isinstance(capabilities, WorkerCapabilities)
    assert capabilities.worker_type == "stable_baselines3"


def test_it_keeps_the_contract():
    assert_conforms("stable_baselines3_worker", limit_s=LIMIT_S, warm=WARM, env={"OMP_NUM_THREADS": "1"})


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_it_keeps_the_contract_when_every_run_starts_by_itself():
    assert_conforms("stable_baselines3_worker", limit_s=LIMIT_S)
