"""`mosaic frames` on real terminals: they are restored afterwards, and clips have the requested duration."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image
from terminal import Terminal

from mosaic.model.states import RunState

MOSAIC = Path(sys.executable).with_name("mosaic")
WHOLE_PARTS = re.compile(r"320×240(  [\d.]+ fps(  reward \S+(  return \S+(  \S+ steps/s(  .*(core|unknown))?)?)?)?)?")


@pytest.fixture(scope="module")
def lab(shared_lab):
    return shared_lab


@pytest.fixture(scope="module")
def painting(lab):
    run = lab.submit("painting", steps=1_000_000, rate=200, paint=True)
    lab.wait_for(run, RunState.EXECUTING)
    return run


@pytest.fixture
def open_terminal(lab):
    terminals = []

    def start(*words, columns=80, rows=24):
        terminals.append(Terminal([MOSAIC, *words], {"MOSAIC_HOME": str(lab.root.path)}, columns, rows))
        return terminals[-1]

    yield start
    for terminal in terminals:
        terminal.close()


@pytest.mark.parametrize(("way", "code"), [("q", 0), ("\x03", 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_the_terminal_is_restored_however_the_command_ends(painting, open_terminal, way, code):
    terminal = open_terminal("frames", painting.run_id)
    terminal.waits_for("fps")

    terminal.types(way) if isinstance(way, str) else terminal.process.send_signal(way)
    ended, output = terminal.ends()

    assert ended == code
    assert "Traceback" not in output


def test_q_quits_while_waiting_for_the_first_frame(lab, open_terminal):
    run = lab.submit("slow", steps=1_000_000, rate=0.05, paint=True)
    terminal = open_terminal("frames", run.run_id, "--wait", "600")
    terminal.waits_for("Waiting for the first frame. Press q to quit.")
    terminal.types("q")

    assert terminal.ends()[0] == 0
    lab.client.cancel_run(run.run_id)


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_the_line_has_whole_parts_at_any_width(painting, open_terminal, columns):
    terminal = open_terminal("frames", painting.run_id, "--line", "--seconds", "0.5", columns=columns)

    code, output = terminal.ends()

    assert code == 0
    for line in re.split(r"[\r\n]+", re.sub("\x1b[^A-Za-z]*[A-Za-z]", "", output)):
        assert len(line) < columns
        assert not line or line.startswith("Waiting") or WHOLE_PARTS.fullmatch(line)


def test_the_end_of_the_run_is_reported(lab, open_terminal):
    run = lab.submit("ends", steps=1_000_000, rate=200, paint=True)
    lab.wait_for(run, RunState.EXECUTING)
    terminal = open_terminal("frames", run.run_id)
    terminal.waits_for("fps")
    lab.client.cancel_run(run.run_id)
    terminal.waits_for("The run is over.")

    assert terminal.ends()[0] == 0


@pytest.mark.parametrize("hz", ["15", "0.7"])
def test_a_clip_has_the_requested_duration(lab, painting, tmp_path, hz):
    words = [MOSAIC, "frames", painting.run_id, "--clip", tmp_path / "a.gif", "--seconds", "2", "--hz", hz]
    subprocess.run(
        words, env={**os.environ, "MOSAIC_HOME": str(lab.root.path)}, timeout=90, check=True, capture_output=True
    )

    clip, length_ms = Image.open(tmp_path / "a.gif"), 0
    for number in range(clip.n_frames):
        clip.seek(number)
        length_ms += clip.info["duration"]
    assert length_ms == 2000
