"""Frames of a curriculum: after a change of stage they show the new environment in its own size."""

import json
import os
import secrets
import subprocess
import sys
from pathlib import Path

import mosaic_sdk
import pytest

AUTOWRAP = Path(mosaic_sdk.__file__).parent / "autowrap"
# A viewer and three stages in one process: the first env's frame is compared with what it renders itself.
PLAY = """
import json, os, sys
import gymnasium, minigrid
from mosaic_sdk.fastlane import FastLaneReader
from cleanrl_worker.wrappers.tasks import CurriculumTraining

STAGES = ["MiniGrid-DoorKey-5x5-v0", "MiniGrid-DoorKey-8x8-v0", "MiniGrid-DoorKey-5x5-v0"]
schedule = [{"env_id": env_id, "episodes": 2} for env_id in STAGES]
training = CurriculumTraining.from_json(json.dumps(schedule))
envs = [training.make_env("", 1, number, False, "x")() for number in range(2)]
reader = FastLaneReader.attach(os.environ["MOSAIC_RUN_ID"], lease_s=600)
seen = []
while training.stage < 2 or len(seen) < 8:
    for number, env in enumerate(envs):
        env.reset(seed=1)
        if number == 0:
            reader.latest_frame()  # switches to the new environment's frames and requests one
            env.step(0)
            frame = reader.latest_frame()
            own = env.unwrapped.render()
            seen.append([training.stage, list(frame.pixels.shape), frame.pixels.tobytes() == own.tobytes()])
        done = False
        while not done:
            *_, terminated, truncated, _ = env.step(env.action_space.sample())
            done = terminated or truncated
print("seen:" + json.dumps(seen))
"""


@pytest.fixture
def run_id():
    run_id = f"test-{os.getpid()}-{secrets.token_hex(4)}"
    yield run_id
    for path in Path("/dev/shm").glob(f"mosaic.fastlane.{run_id}*"):
        path.unlink()


def test_a_viewer_sees_the_environment_of_the_new_stage_in_its_own_size(run_id, tmp_path):
    env = {
        **os.environ,
        "PYTHONPATH": str(AUTOWRAP),
        "MOSAIC_RUN_ID": run_id,
        "GYM_GUI_FASTLANE_ONLY": "1",
        "CLEANRL_FASTLANE_INTERVAL_MS": "0",
    }

    done = subprocess.run([sys.executable, "-c", PLAY], env=env, cwd=tmp_path, capture_output=True, text=True)

    assert done.returncode == 0, done.stderr[-2000:]
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("seen:")]
    seen = json.loads(line.removeprefix("seen:"))
    assert {(stage, *shape) for stage, shape, _ in seen} == {(0, 160, 160, 3), (1, 256, 256, 3), (2, 160, 160, 3)}
    assert all(is_same for *_, is_same in seen)
