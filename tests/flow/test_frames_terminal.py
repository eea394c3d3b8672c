"""`mosaic frames` on real terminals: it is left in time and leaves them as they were; clips last what was asked."""

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
WHOLE_PARTS = re.compile(r"320×240(  [\d.]+ fps(  reward \S+(  return \S+(  \S+ steps/s(  .*(core|known))?)?)?)?)?")


@pytest.fixture(scope="module")
def lab(shared_lab):
    return shared_lab


@pytest.fixture(scope="module")
def painting(lab):
    run = lab.submit("painting", steps=1_000_000, rate=200, paint=True)
    lab.wait_for(run, RunState.EXECUTING)
    return run


@pytest.fixture
def person(lab):
    people = []

    def sits_down(*words, columns=80, rows=24):
        people.append(Terminal([MOSAIC, *words], {"MOSAIC_HOME": str(lab.root.path)}, columns, rows))
        return people[-1]

    yield sits_down
    for somebody in people:
        somebody.close()


@pytest.mark.parametrize(("way", "code"), [("q", 0), ("\x03", 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_the_terminal_is_as_before_however_the_frames_are_left(painting, person, way, code):
    somebody = person("frames", painting.run_id)
    somebody.waits_for("fps")

    somebody.types(way) if isinstance(way, str) else somebody.process.send_signal(way)
    ended, said = somebody.ends()

    assert ended == code
    assert "Traceback" not in said


def test_q_leaves_while_the_first_frame_is_waited_for(lab, person):
    run = lab.submit("slow", steps=1_000_000, rate=0.05, paint=True)
    somebody = person("frames", run.run_id, "--wait", "600")
    somebody.waits_for("Waiting for the first frame; q leaves.")
    somebody.types("q")

    assert somebody.ends()[0] == 0
    lab.client.cancel_run(run.run_id)


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_the_line_is_clean_at_any_width(painting, person, columns):
    somebody = person("frames", painting.run_id, "--line", "--seconds", "0.5", columns=columns)

    code, said = somebody.ends()

    assert code == 0
    for line in re.split(r"[\r\n]+", re.sub("\x1b[^A-Za-z]*[A-Za-z]", "", said)):
        assert len(line) < columns
        assert not line or line.startswith("Waiting") or WHOLE_PARTS.fullmatch(line)


def test_a_run_that_ends_is_said(lab, person):
    run = lab.submit("ends", steps=1_000_000, rate=200, paint=True)
    lab.wait_for(run, RunState.EXECUTING)
    somebody = person("frames", run.run_id)
    somebody.waits_for("fps")
    lab.client.cancel_run(run.run_id)
    somebody.waits_for("No more frames.")

    assert somebody.ends()[0] == 0


@pytest.mark.parametrize("hz", ["15", "0.7"])
def test_a_clip_lasts_what_was_asked(lab, painting, tmp_path, hz):
    words = [MOSAIC, "frames", painting.run_id, "--clip", tmp_path / "a.gif", "--seconds", "2", "--hz", hz]
    subprocess.run(
        words, env={**os.environ, "MOSAIC_HOME": str(lab.root.path)}, timeout=90, check=True, capture_output=True
    )

    clip, length_ms = Image.open(tmp_path / "a.gif"), 0
    for number in range(clip.n_frames):
        clip.seek(number)
        length_ms += clip.info["duration"]
    assert length_ms == 2000
