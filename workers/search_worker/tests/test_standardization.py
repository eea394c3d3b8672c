"""The checks of the worker guide, on the search worker. Its runs need a daemon: tests/flow/test_search.py has them."""

import json
from pathlib import Path

from mosaic_sdk.contract import WorkerCapabilities, WorkerConfig, WorkerMetadata
from mosaic_sdk.testing import assert_layout
from search_worker import get_worker_metadata, get_worker_schema
from search_worker.cli import main
from search_worker.config import SearchConfig

SETTINGS = {
    "run_id": "test-001",
    "experiment": "s",
    "worker": {"module": "toy_worker.cli"},
    "space": {"lr": "log:1e-5:1e-2"},
}


def test_its_folder_has_the_layout_of_the_guide():
    assert_layout(Path(__file__).parents[1])


def test_its_config_survives_a_round_trip():
    config = SearchConfig(seed=42, **SETTINGS)

    restored = SearchConfig.from_dict(config.to_dict())

    assert isinstance(config, WorkerConfig)
    assert restored.to_dict() == config.to_dict()


def test_it_describes_itself():
    metadata, capabilities = get_worker_metadata()

    assert isinstance(metadata, WorkerMetadata)
    assert isinstance(capabilities, WorkerCapabilities)
    assert (metadata.upstream_library, capabilities.worker_type) == ("optuna", "search")
    assert get_worker_schema()["x-mosaic-resume"] == {"resume_from": "{checkpoint}"}


def test_a_range_that_is_none_is_refused_with_one_sentence(tmp_path, capsys):
    (tmp_path / "config.json").write_text(json.dumps({**SETTINGS, "space": {"lr": "log:0:1"}}))

    assert main(["--config", str(tmp_path / "config.json")]) == 2

    assert capsys.readouterr().err == "space: lr: a logarithmic range starts above 0; 'log:0:1' starts at 0.\n"


def test_outside_of_a_daemon_it_says_how_a_search_is_started(tmp_path, monkeypatch, capfd):
    monkeypatch.delenv("MOSAIC_DRIVER_TOKEN", raising=False)
    (tmp_path / "config.json").write_text(json.dumps(SETTINGS))

    assert main(["--config", str(tmp_path / "config.json")]) == 1

    assert "This run is not a driver. Start a search with: mosaic search" in capfd.readouterr().err
