"""Frames of hosted environments: every library's are shown in the lane's place, without anyone's help."""

import json
import uuid

import pytest
from hosting import open_host
from mosaic_sdk.fastlane import LaneRecorder

LANE = 1
ENVS = {
    "MiniGrid-Empty-5x5-v0": (160, 160),
    "pettingzoo/tictactoe_v3": (1000, 1000),
    "mpe2/simple_spread_v3": (700, 700),
    "MosaicMultiGrid-C-1v1-IndAgObs-v1": (320, 320),
}


@pytest.mark.parametrize("env", ENVS)
def test_a_lane_is_shown(tmp_path, monkeypatch, env):
    run_id = f"test-{uuid.uuid4().hex[:12]}"
    for name, value in {
        "MOSAIC_RUN_ID": run_id,
        "GYM_GUI_FASTLANE_ONLY": "1",
        "GYM_GUI_FASTLANE_VIDEO_MODE": "grid",
        "GYM_GUI_FASTLANE_TILE": str(LANE + 1),
        "CLEANRL_FASTLANE_INTERVAL_MS": "0",
    }.items():
        monkeypatch.setenv(name, value)
    recorder = LaneRecorder(run_id, LANE)
    process = open_host(tmp_path, env)
    try:
        process.stdin.write(json.dumps({"cmd": "reset", "seed": 1}) + "\n")
        process.stdin.flush()
        turn = json.loads(process.stdout.readline())["turn"]
        first = recorder.frame()
        process.stdin.write(json.dumps({"cmd": "step", "actions": dict.fromkeys(turn, 1)}) + "\n")
        process.stdin.flush()
        json.loads(process.stdout.readline())
        second = recorder.frame()
        assert first.shape[:2] == second.shape[:2] == ENVS[env]
    finally:
        process.communicate(timeout=30)
        recorder.close()
