import dataclasses
from typing import Any

import pytest
from mosaic_sdk.contract import (
    LIFECYCLE_EVENTS,
    TelemetryEnv,
    VideoModes,
    WorkerCapabilities,
    WorkerConfig,
    WorkerEnv,
    WorkerMetadata,
)


@pytest.mark.parametrize("descriptor", [WorkerMetadata, WorkerCapabilities])
def test_every_field_of_a_descriptor_has_a_default_and_none_can_be_changed(descriptor):
    value = descriptor()

    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(value, dataclasses.fields(value)[0].name, "x")


def test_a_descriptor_of_the_public_mosaic_can_be_written_unchanged():
    capabilities = WorkerCapabilities(
        worker_type="myworker",
        supported_paradigms=("sequential",),
        env_families=("gymnasium",),
        action_spaces=("discrete", "continuous"),
        observation_spaces=("vector", "image"),
        max_agents=1,
        supports_checkpointing=True,
        requires_gpu=False,
    )

    assert capabilities.supports_paradigm("sequential")
    assert capabilities.supports_env_family("gymnasium")
    assert not capabilities.supports_env_family("atari")
    assert not capabilities.is_multi_agent()
    assert WorkerCapabilities(max_agents=2).is_multi_agent()


def test_a_config_is_recognised_by_its_interface():
    class Config:
        run_id, seed = "r1", None

        def to_dict(self) -> dict[str, Any]:
            return {}

        @classmethod
        def from_dict(cls, data: dict[str, Any]) -> "Config":
            return cls()

    assert isinstance(Config(), WorkerConfig)
    assert not isinstance(object(), WorkerConfig)


def test_the_names_of_the_contract_do_not_change():
    assert LIFECYCLE_EVENTS == (
        "run_started",
        "run_completed",
        "run_failed",
        "run_cancelled",
        "heartbeat",
        "checkpoint_saved",
        "checkpoint_loaded",
    )
    assert WorkerEnv.RUN_DIR == "MOSAIC_RUN_DIR"
    assert TelemetryEnv.FASTLANE_ONLY == "GYM_GUI_FASTLANE_ONLY"
    assert (VideoModes.SINGLE, VideoModes.GRID, VideoModes.OFF) == ("single", "grid", "off")


def test_the_import_paths_of_the_public_mosaic_give_the_same_objects(bench):
    script = (
        "import mosaic_sdk.contract as c\n"
        "from gym_gui.core.worker import WorkerMetadata, WorkerCapabilities, WorkerConfig\n"
        "from gym_gui.telemetry.semconv import TelemetryEnv, VideoModes\n"
        "assert WorkerMetadata is c.WorkerMetadata and WorkerCapabilities is c.WorkerCapabilities\n"
        "assert WorkerConfig is c.WorkerConfig and TelemetryEnv is c.TelemetryEnv and VideoModes is c.VideoModes\n"
    )

    ended = bench.script(script, path=[bench.sdk, bench.gym_gui])

    assert (ended.code, ended.err) == (0, "")
