"""Custom scripts: a user's own file, with its folders and environment, without a worker package."""

import json

import pytest

from mosaic.model.states import RunState

S = RunState


def test_a_shell_script_gets_its_folders_and_its_output_is_stored(shared_lab, script):
    path = script(
        "phases.sh",
        "#!/bin/sh\n"
        'echo "phase one of $MOSAIC_RUN_ID"\n'
        "echo to the console > /dev/stdout\n"
        'echo \'{"event_type": "step", "step_index": 0, "reward": 1}\'\n'
        'cat "$MOSAIC_CONFIG_FILE" > copied.json\n'
        'test -d "$MOSAIC_CHECKPOINT_DIR" && test -d "$MOSAIC_CUSTOM_SCRIPTS_DIR"\n',
    )
    run = shared_lab.submit_worker(
        {"script": path, "config": {"env_id": "X-v0", "extras": {"curriculum_schedule": [1]}}}
    )

    end = shared_lab.wait_until_over(run)

    assert (end.state, end.reason, end.area) == (S.TERMINATED, "", "custom_scripts")
    assert shared_lab.text(run) == f"phase one of {run.run_id}\nto the console\n".encode()
    assert len(shared_lab.events(run, "step")) == 1
    assert json.loads((shared_lab.rundir(run).path / "copied.json").read_text())["env_id"] == "X-v0"


def test_a_python_script_runs_unmodified(shared_lab, script):
    path = script("train.py", "import os\nprint('hello from', os.environ['MOSAIC_RUN_ID'])\n")

    run = shared_lab.submit_worker({"script": path})

    assert shared_lab.wait_until_over(run).state is S.TERMINATED
    assert shared_lab.text(run) == f"hello from {run.run_id}\n".encode()


def test_a_script_that_truncates_dev_stdout_does_not_erase_earlier_output(shared_lab, script):
    lines = [
        "print('before', flush=True)",
        "try: open('/dev/stdout', 'w').close()",
        "except OSError: pass",
        "print('after')",
    ]
    path = script("wiper.py", "\n".join(lines))

    run = shared_lab.submit_worker({"script": path})
    shared_lab.wait_until_over(run)

    assert shared_lab.text(run) == b"before\nafter\n"


def test_a_missing_script_is_a_submit_error(shared_lab):
    with pytest.raises(Exception, match=r"metadata\.worker\.script"):
        shared_lab.submit_worker({"script": "/nowhere/train.sh"})
