"""The checks of the worker guide (docs/howto/new-worker.md), on the BALROG worker."""

from pathlib import Path

import pytest
from balrog_worker import get_worker_metadata, get_worker_schema
from balrog_worker.config import BalrogConfig
from mosaic_sdk.config import ConfigError
from mosaic_sdk.contract import WorkerCapabilities, WorkerConfig, WorkerMetadata
from mosaic_sdk.testing import assert_conforms, assert_layout


def test_its_folder_has_the_layout_of_the_guide():
    assert_layout(Path(__file__).parents[1])


def test_its_config_survives_a_round_trip():
    config = BalrogConfig(run_id="test-001", seed=42, agent="random", tasks="babyai,nle")

    restored = BalrogConfig.from_dict(config.to_dict())

    assert isinstance(config, WorkerConfig)
    assert (restored.run_id, restored.seed) == ("test-001", 42)
    assert restored.to_dict() == config.to_dict()


def test_it_describes_itself():
    metadata, capabilities = get_worker_metadata()

    assert isinstance(metadata, WorkerMetadata)
    assert isinstance(capabilities, WorkerCapabilities)
    assert (metadata.name, capabilities.worker_type) == ("BALROG Worker", "balrog")
    assert get_worker_schema()["x-mosaic-resume"] == {"resume_from": "{checkpoint}"}


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"agent": "random", "tasks": "babyai/fly"}, "there is no task 'babyai/fly'. Choose from: babyai, babyai/goto"),
        ({"agent": "random", "tasks": "chess"}, "there is no environment 'chess'"),
        ({"agent": "random", "tasks": "baba_is_ai"}, "is not on the package index"),
        ({"agent": "naive"}, "model is missing"),
        ({"agent": "random", "model": "m"}, "agent=random asks no model"),
        ({"model": "m", "base_url": "http://me:secret@host/v1"}, "must not contain a user name"),
        ({"model": "m", "api_key_env": "sk-abc"}, "must be the name of a variable"),
        ({"agent": "random", "histroy": 3}, "Did you mean 'history'"),
    ],
)
def test_what_cannot_be_played_is_refused_with_a_reason(settings, said):
    with pytest.raises(ConfigError) as caught:
        BalrogConfig.from_dict({"run_id": "R1", **settings})

    assert said in str(caught.value)
    assert "secret" not in str(caught.value)
    assert "sk-abc" not in str(caught.value)


def test_without_settings_the_numbers_are_the_published_ones():
    config = BalrogConfig(run_id="R1", agent="random")
    tasks = {str(task): (config.episodes_of(task), config.max_steps_of(task)) for task in config.chosen_tasks()}

    assert len(tasks) == 5 + 1 + 3 + 8 + 1
    assert tasks["babyai/goto"] == (10, 100)
    assert tasks["crafter/default"] == (10, 2000)
    assert tasks["textworld/coin_collector"] == (10, 80)
    assert tasks["minihack/Quest-Easy"] == (5, 100)
    assert tasks["nle/NetHackChallenge"] == (5, 100_000)
    assert (config.history, config.temperature, config.max_tokens) == (16, 1.0, 4096)


def test_it_keeps_the_contract():
    assert_conforms("balrog_worker")
