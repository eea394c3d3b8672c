"""A worker that tries to talk to the user's terminal through everything that the commands print."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ATTACK = "\x1b]0;owned\x07\x1b]52;c;eA==\x07\x1b[2J\x9b2J\u202e"
SCRIPT = f"""
import json, sys
attack = {ATTACK!r}
name = "m" + attack + chr(10) + "forged"
print("text " + attack, "\\x1b[32mgreen\\x1b[0m\\r 10%\\r 20%", chr(9), "end", flush=True)
sys.stdout.buffer.write(b"latin-1 \\xe9 \\x9b2J\\n")
for step in range(3):
    print(json.dumps({{"type": "metric", "step": step, "values": {{name: 1.0}}}}), flush=True)
print(json.dumps({{"type": "metric", "step": attack}}), flush=True)
sys.exit("stderr " + attack)
"""


@pytest.fixture
def run(lab, mosaic, tmp_path):
    path = tmp_path / "attack.py"
    path.write_text(SCRIPT)
    run = lab.submit_worker({"script": str(path)})
    lab.wait_until_over(run)
    return run


def test_no_command_passes_control_characters_of_a_worker_on(lab, mosaic, run):
    shown = {
        words: mosaic(words, *rest)
        for words, *rest in (
            ("show", run.run_id),
            ("curve", run.run_id),
            ("logs", run.run_id),
            ("logs", run.run_id, "--rejects"),
            ("runs",),
            ("watch",),
            ("watch", run.run_id),
            ("doctor",),
            ("__complete", "bash", "curve", run.run_id, ""),
        )
    }
    shown["error"] = mosaic("curve", run.run_id, "m", code=1)

    for command, output in shown.items():
        assert output.replace("\n", "").replace("\r", "").replace("\t", "").isprintable(), (command, output)
    assert "\\u001b]52;c;eA==\\u0007" in shown["curve"]
    assert shown["curve"].count("\n") == 1  # the name of the metric has a line break


def test_a_log_stays_readable_and_is_raw_on_request(lab, run):
    def logs(*options):
        command = [Path(sys.executable).parent / "mosaic", "logs", run.run_id, "--stdout", *options]
        return subprocess.run(
            command, env={**os.environ, "MOSAIC_HOME": str(lab.root.path)}, capture_output=True
        ).stdout

    safe = "text \\u001b]0;owned\\u0007\\u001b]52;c;eA==\\u0007\\u001b[2J\\u009b2J\\u202e green\r 10%\r 20% \t end\n"
    safe += "latin-1 \\xe9 \\x9b2J\n"
    assert logs().decode().startswith(safe)
    assert logs("--tail", "100").decode().startswith(safe)
    raw = f"text {ATTACK} \x1b[32mgreen\x1b[0m\r 10%\r 20% \t end\n".encode() + b"latin-1 \xe9 \x9b2J\n"
    assert logs("--raw").startswith(raw)
    assert logs("--raw", "--tail", "100").startswith(raw)


def test_json_is_lossless(lab, mosaic, run):
    names = json.loads(mosaic("curve", run.run_id, "--json"))
    events = [json.loads(line) for line in mosaic("export", run.run_id).splitlines()]

    assert f"m{ATTACK}\nforged" in names
    assert any(f"m{ATTACK}\nforged" in event.get("values", {}) for event in events)
    assert ATTACK in json.loads(mosaic("show", run.run_id, "--json"))["reason"]
