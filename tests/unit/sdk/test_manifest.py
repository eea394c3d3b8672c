import json

import pytest
from mosaic_sdk.manifest import AnalyticsManifest, ManifestError


def test_a_manifest_has_its_documented_shape(tmp_path):
    manifest = AnalyticsManifest(
        "r1",
        "cleanrl",
        tensorboard_dir=str(tmp_path / "tensorboard"),
        wandb={"project": "p"},
        checkpoints_dir="checkpoints",
        checkpoint_files=(str(tmp_path / "checkpoints" / "1.pt"),),
        videos_dir="videos",
        metadata={"a": 1},
    )

    path = manifest.write(tmp_path)

    assert path == str(tmp_path / "analytics.json")
    assert json.loads((tmp_path / "analytics.json").read_text()) == {
        "version": 1,
        "run_id": "r1",
        "worker_type": "cleanrl",
        "artifacts": {
            "tensorboard": {"log_dir": "tensorboard"},
            "wandb": {"project": "p"},
            "checkpoints": {"directory": "checkpoints", "files": ["checkpoints/1.pt"]},
            "logs_dir": "logs",
            "videos_dir": "videos",
        },
        "metadata": {"a": 1},
    }


def test_a_manifest_has_null_for_missing_artifacts(tmp_path):
    AnalyticsManifest("r1", "toy").write(tmp_path)

    artifacts = json.loads((tmp_path / "analytics.json").read_text())["artifacts"]
    assert artifacts == {
        "tensorboard": None,
        "wandb": None,
        "checkpoints": None,
        "logs_dir": "logs",
        "videos_dir": None,
    }


@pytest.mark.parametrize("path", ["../elsewhere", "/etc", "checkpoints/../../x"])
def test_a_path_outside_the_run_is_refused_and_nothing_is_written(tmp_path, path):
    with pytest.raises(ManifestError, match="outside the run's folder"):
        AnalyticsManifest("r1", "toy", checkpoints_dir=path).write(tmp_path)

    assert list(tmp_path.iterdir()) == []


def test_a_link_out_of_the_run_is_outside(tmp_path):
    (tmp_path / "link").symlink_to("/etc")

    with pytest.raises(ManifestError):
        AnalyticsManifest("r1", "toy", checkpoints_dir="link").write(tmp_path)


def test_the_run_folder_comes_from_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("MOSAIC_RUN_DIR", str(tmp_path))

    AnalyticsManifest("r1", "toy").write()

    assert [path.name for path in tmp_path.iterdir()] == ["analytics.json"]


def test_without_a_folder_the_error_says_what_to_set(monkeypatch):
    monkeypatch.delenv("MOSAIC_RUN_DIR", raising=False)

    with pytest.raises(ManifestError, match="set MOSAIC_RUN_DIR"):
        AnalyticsManifest("r1", "toy").write()
