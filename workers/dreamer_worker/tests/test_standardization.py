"""The checks of the worker guide (docs/howto/new-worker.md), on the Dreamer worker."""

import json
from pathlib import Path

from dreamer_worker import get_worker_metadata
from dreamer_worker.cli import main
from dreamer_worker.config import TINY, DreamerConfig
from mosaic_sdk.contract import WorkerCapabilities, WorkerConfig, WorkerMetadata
from mosaic_sdk.testing import assert_conforms, assert_layout


def test_its_config_offers_what_every_worker_config_does():
    config = DreamerConfig(run_id="test-001", seed=42)

    restored = DreamerConfig.from_dict(config.to_dict())

    assert isinstance(config, WorkerConfig)
    assert (restored.run_id, restored.seed) == ("test-001", 42)
    assert restored.to_dict() == config.to_dict()


def test_it_describes_itself():
    metadata, capabilities = get_worker_metadata()

    assert isinstance(metadata, WorkerMetadata)
    assert isinstance(capabilities, WorkerCapabilities)
    assert (metadata.name, capabilities.worker_type) == ("Dreamer Worker", "dreamer")


def test_it_reports_its_start_and_its_end(capfd, tmp_path, monkeypatch):
    for name in ("MOSAIC_RUN_DIR", "MOSAIC_CHECKPOINT_DIR"):
        monkeypatch.delenv(name, raising=False)
    short = {**TINY, "run_id": "test-001", "script": "train", "random_agent": True, "steps": 10, "emit_steps": True}
    (tmp_path / "config.json").write_text(json.dumps({**short, "logdir": str(tmp_path / "run")}))

    assert main(["--config", str(tmp_path / "config.json")]) == 0

    lines = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    events = [line["event"] for line in lines if "event" in line]
    assert (events[0], events[-1]) == ("run_started", "run_completed")
    assert sum(line.get("event_type") == "step" for line in lines) == 10


def test_its_folder_has_the_layout_of_the_guide():
    assert_layout(Path(__file__).parents[1])


def test_the_worker_keeps_the_contract():
    assert_conforms("dreamer_worker")
