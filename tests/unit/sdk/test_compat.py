"""What workers of the public MOSAIC import from gym_gui."""

import json
import logging
import os
import subprocess
import sys

import numpy as np
import pytest
from mosaic_sdk.compat import artifacts, frames, log_constants
from mosaic_sdk.compat.telemetry import TelemetryEmitter

IMPORTS = """
from gym_gui.core.worker import (TelemetryEmitter, WorkerAnalyticsManifest, ArtifactsMetadata, CheckpointMetadata,
    TensorBoardMetadata, WandBMetadata)
from gym_gui.logging_config.helpers import log_constant
from gym_gui.logging_config.log_constants import LOG_WORKER_ANYTHING_STARTED, LOG_X_FAILED
from gym_gui.config.paths import (VAR_TRAINER_DIR, VAR_ROOT, VAR_TENSORBOARD_DIR, VAR_WANDB_DIR,
    VAR_OPERATORS_TELEMETRY_DIR, ensure_var_directories)
from gym_gui.fastlane.worker_helpers import apply_fastlane_environment
from gym_gui.fastlane.tiling import tile_frames
from gym_gui.constants.constants_tensorboard import build_tensorboard_log_dir, build_tensorboard_relative_path
from gym_gui.core.enums import SteppingParadigm
"""
WORK = """
import logging, os
run_id = os.environ["MOSAIC_RUN_ID"]
folder = VAR_TRAINER_DIR / "runs" / run_id
(folder / "checkpoints").mkdir(parents=True, exist_ok=True)
(build_tensorboard_log_dir(run_id)).mkdir(parents=True, exist_ok=True)
ensure_var_directories()
emitter = TelemetryEmitter(run_id=run_id, logger=logging.getLogger("acme"))
emitter.run_started({"algo": "ppo"}, constant=LOG_WORKER_ANYTHING_STARTED)
WorkerAnalyticsManifest(run_id, "acme", ArtifactsMetadata(tensorboard=TensorBoardMetadata("tensorboard", True))).save(
    folder / "analytics.json")
emitter.run_failed({"error": "no"}, constant=LOG_X_FAILED, exc_info=ValueError("no"))
"""


def test_the_imports_need_no_package_but_the_sdk(bench):
    paths = os.pathsep.join([str(bench.sdk), str(bench.gym_gui)])
    without_numpy = "import sys; sys.modules['numpy'] = None\n"
    names = "import gym_gui.fastlane\nfrom gym_gui.fastlane.buffer import create_fastlane_name\n"

    ended = subprocess.run(
        [sys.executable, "-S", "-c", without_numpy + IMPORTS + names],
        env={"PYTHONPATH": paths},
        capture_output=True,
        text=True,
    )

    assert ended.returncode == 0, ended.stderr


def test_a_public_worker_finds_every_name_and_writes_into_its_run_folder(bench, tmp_path):
    run_dir = tmp_path / "run"
    run_dir.mkdir()
    paths = os.pathsep.join([str(bench.sdk), str(bench.gym_gui)])
    variables = {"MOSAIC_RUN_ID": "R1", "MOSAIC_RUN_DIR": str(run_dir), "PYTHONPATH": paths}

    done = subprocess.run(
        [sys.executable, "-c", IMPORTS + WORK], env=os.environ | variables, cwd=run_dir, capture_output=True, text=True
    )

    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(line["event"], line["run_id"]) for line in lines] == [("run_started", "R1"), ("run_failed", "R1")]
    assert "LOG_X_FAILED x failed" in done.stderr
    assert (run_dir / "tensorboard").is_dir()
    assert (run_dir / "checkpoints").is_dir()
    manifest = json.loads((run_dir / "analytics.json").read_text())
    assert manifest["artifacts"]["tensorboard"]["log_dir"] == "tensorboard"


def test_a_manifest_is_read_back_with_members_of_other_versions(tmp_path):
    path = tmp_path / "analytics.json"
    checkpoints = artifacts.CheckpointMetadata("checkpoints", "pytorch", ["a.pt"], final_checkpoint="a.pt")
    artifacts.WorkerAnalyticsManifest("R", "acme", artifacts.ArtifactsMetadata(checkpoints=checkpoints)).save(path)
    data = json.loads(path.read_text())
    data["artifacts"]["checkpoints"]["sha256"] = "…"

    assert artifacts.WorkerAnalyticsManifest.load(path).artifacts.checkpoints == checkpoints
    assert artifacts.WorkerAnalyticsManifest.from_dict(data).artifacts.checkpoints == checkpoints


def test_an_emitter_writes_to_a_sink(tmp_path):
    with (tmp_path / "lines").open("w+") as sink:
        emitter = TelemetryEmitter("R", sink=sink)
        emitter.heartbeat()
        emitter.checkpoint_saved({"checkpoint_path": tmp_path})

        sink.seek(0)
        assert [json.loads(line)["event"] for line in sink] == ["heartbeat", "checkpoint_saved"]


def test_frames_are_tiled_in_a_square_and_unequal_ones_refused():
    tiles = [np.full((2, 3, 3), value, np.uint8) for value in (1, 2, 3)]

    picture = frames.tile_frames(tiles)

    assert picture.shape == (4, 6, 3)
    assert (picture[0, 0, 0], picture[0, 3, 0], picture[2, 0, 0], picture[2, 3, 0]) == (1, 2, 3, 0)
    with pytest.raises(ValueError, match="frames of one shape"):
        frames.tile_frames([tiles[0], tiles[1][:1]])


def test_only_log_names_exist_and_reserved_members_are_dropped(caplog):
    with pytest.raises(AttributeError):
        _ = log_constants.SOMETHING

    with caplog.at_level(logging.INFO):
        log_constants.log_constant(logging.getLogger(), log_constants.LOG_RUN_WARNING, extra={"name": "x", "run": 1})

    assert (caplog.records[0].levelname, caplog.records[0].run) == ("WARNING", 1)
