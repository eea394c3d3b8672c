"""The checks of the worker guide, on the evaluation worker."""

from pathlib import Path

from eval_worker import get_worker_metadata
from eval_worker.config import EvalConfig
from mosaic_sdk.contract import WorkerCapabilities, WorkerConfig, WorkerMetadata
from mosaic_sdk.testing import assert_conforms, assert_layout


def test_its_folder_has_the_layout_of_the_guide():
    assert_layout(Path(__file__).parents[1])


def test_its_config_survives_a_round_trip():
    config = EvalConfig(run_id="test-001", seed=42, script={"env": "CartPole-v1", "operators": {"chance": "random"}})

    restored = EvalConfig.from_dict(config.to_dict())

    assert isinstance(config, WorkerConfig)
    assert (restored.run_id, restored.seed) == ("test-001", 42)
    assert restored.to_dict() == config.to_dict()


def test_it_describes_itself():
    metadata, capabilities = get_worker_metadata()

    assert isinstance(metadata, WorkerMetadata)
    assert isinstance(capabilities, WorkerCapabilities)
    assert (metadata.name, capabilities.worker_type) == ("Evaluation Worker", "eval")


def test_it_keeps_the_contract():
    assert_conforms("eval_worker", grace_s=20.0, limit_s=300.0)
