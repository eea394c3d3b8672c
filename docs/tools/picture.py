"""Records a real `mosaic watch` session as an animated SVG: .venv-docs/bin/python docs/tools/picture.py MOSAIC OUT.svg

MOSAIC is the command to record (.venv/bin/mosaic). It starts CleanRL and toy runs in a scratch MOSAIC_HOME, with the
environment of `make .venv-cleanrl/.ready`, watches them, opens one, and cancels all at the end.
"""

import fcntl
import json
import os
import pty
import select
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape
from itertools import groupby
from pathlib import Path

import pyte

REPO = Path(__file__).parents[2]
COLUMNS, ROWS = 112, 21
FRAME_S = 0.5
FIRST_STEPS = 9000  # of the run `ppo`, before the recording begins
DOWN, ENTER = "\x1b[B", "\r"
KEYS = {10.0: DOWN, 11.0: DOWN, 12.0: DOWN, 13.5: ENTER}  # seconds after the beginning: choose `ppo` and open it
LENGTH_S = 26.0
RUNS = (
    "run toy steps=400 episode_length=40 --name smoke-test --cpus 0.1",
    "run toy steps=300 crash_at=120 --name crasher --cpus 0.1",
    "run toy steps=3000 episode_length=50 rate=40 --name toy-slow --cpus 0.1",
    "run toy steps=6000 episode_length=80 rate=60 --name toy-slower --cpus 0.1",
    "run cleanrl algo=ppo env_id=CartPole-v1 total_timesteps=60000 --name ppo --cpus 0.9",
    "run cleanrl algo=dqn env_id=CartPole-v1 total_timesteps=60000 --name dqn --cpus 0.9",
    "run cleanrl algo=c51 env_id=Acrobot-v1 total_timesteps=500000 --name c51-acrobot",
    "run cleanrl algo=ppo env_id=Acrobot-v1 total_timesteps=500000 --name ppo-acrobot",
)
CELL_W, CELL_H, MARGIN, FONT_PX = 7.8, 17, 14, 13
BACKGROUND, FOREGROUND = "#11151c", "#d5dae3"
PALETTE = {
    **{"red": "#ff6b6b", "green": "#6bd490", "brown": "#e5c07b", "blue": "#6cb2ff", "magenta": "#d69bff"},
    **{"cyan": "#5fd7d7", "white": "#eef1f6", "black": "#5c6675", "brightblack": "#7c8696"},
}

Style = tuple[str, bool, bool]  # colour, bold, inverted
Line = tuple[tuple[int, str, Style], ...]  # pieces of one style: column, text, style


@dataclass
class Recording:
    """What each row of the screen showed, frame by frame."""

    frames: list[list[Line]] = field(default_factory=list)

    def spans(self, row: int) -> Iterator[tuple[Line, int, int]]:
        """Each content of a row with its first frame and the one after its last."""
        at = 0
        for line, same in groupby(frame[row] for frame in self.frames):
            begun, at = at, at + len(list(same))
            if line:
                yield line, begun, at


class Session:
    """A command on a pseudo-terminal, and the screen that it draws."""

    def __init__(self, command: list[str], env: dict[str, str]) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        terminal = {"TERM": "xterm-256color", "COLUMNS": str(COLUMNS), "LINES": str(ROWS)}
        self._process = subprocess.Popen(
            command, env={**env, **terminal}, stdin=slave, stdout=slave, stderr=slave, start_new_session=True
        )
        os.close(slave)
        self._screen = pyte.Screen(COLUMNS, ROWS)
        self._stream = pyte.ByteStream(self._screen)

    def record(self) -> Recording:
        recording, begun, keys = Recording(), time.monotonic(), sorted(KEYS.items())
        for number in range(int(LENGTH_S / FRAME_S)):
            self._read_until(begun + (number + 1) * FRAME_S)
            while keys and keys[0][0] <= time.monotonic() - begun:
                os.write(self._master, keys.pop(0)[1].encode())
            frame = [line_of(self._screen.buffer[row]) for row in range(ROWS)]
            if recording.frames or any(frame):  # the picture begins with the first screen, not with an empty box
                recording.frames.append(frame)
        self._process.terminate()
        self._process.wait(20)
        return recording

    def _read_until(self, when: float) -> None:
        while (left := when - time.monotonic()) > 0:
            if select.select([self._master], [], [], left)[0]:
                self._stream.feed(os.read(self._master, 65536))


def line_of(cells: "dict[int, pyte.screens.Char]") -> Line:
    pieces = []
    for style, columns in groupby(range(COLUMNS), key=lambda column: style_of(cells[column])):
        taken = list(columns)
        text = "".join(cells[column].data for column in taken)
        if text.strip() or style[2]:
            pieces.append((taken[0], text, style))
    return tuple(pieces)


def style_of(cell: "pyte.screens.Char") -> Style:
    colour = PALETTE.get(cell.fg) or (FOREGROUND if cell.fg == "default" else f"#{cell.fg}")
    return colour, cell.bold, cell.reverse


def draw(recording: Recording) -> str:
    width, height = COLUMNS * CELL_W + 2 * MARGIN, ROWS * CELL_H + 2 * MARGIN
    rows = (draw_row(recording, row) for row in range(ROWS))
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" role="img">'
    style = f"text{{font:{FONT_PX}px ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace;white-space:pre}}"
    frame = f'<rect width="100%" height="100%" rx="8" fill="{BACKGROUND}"/>'
    return f"{head}<title>mosaic watch</title><style>{style}</style>{frame}{''.join(rows)}</svg>\n"


def draw_row(recording: Recording, row: int) -> str:
    return "".join(draw_span(recording, row, *span) for span in recording.spans(row))


def draw_span(recording: Recording, row: int, line: Line, begun: int, ended: int) -> str:
    """Shown from one frame to another. Where nothing is animated, the last frame is seen."""
    total = len(recording.frames)
    pieces = "".join(draw_piece(row, *piece) for piece in line)
    if (begun, ended) == (0, total):
        return f"<g>{pieces}</g>"
    times = [(0.0, "hidden"), (begun / total, "visible"), (ended / total, "hidden")]
    known = [(at, value) for at, value in times if at < 1.0][1 if begun == 0 else 0 :]
    values, at = ";".join(value for _, value in known), ";".join(f"{at:.4g}" for at, _ in known)
    animate = (
        f'<animate attributeName="visibility" calcMode="discrete" dur="{total * FRAME_S:g}s" '
        f'repeatCount="indefinite" keyTimes="{at}" values="{values}"/>'
    )
    first = "visible" if ended == total else "hidden"
    return f'<g visibility="{first}">{animate}{pieces}</g>'


def draw_piece(row: int, column: int, text: str, style: Style) -> str:
    colour, is_bold, is_inverted = style
    x, y = MARGIN + column * CELL_W, MARGIN + row * CELL_H
    behind = f'<rect x="{x:.4g}" y="{y}" width="{len(text) * CELL_W:.4g}" height="{CELL_H}" fill="{colour}"/>'
    fill = BACKGROUND if is_inverted else colour
    weight = ' font-weight="bold"' if is_bold else ""
    shown = text.rstrip() or text
    words = (
        f'<text x="{x:.4g}" y="{y + FONT_PX}" fill="{fill}"{weight} textLength="{len(shown) * CELL_W:.4g}" '
        f'lengthAdjust="spacingAndGlyphs" xml:space="preserve">{escape(shown)}</text>'
    )
    return (behind if is_inverted else "") + words


def steps_of(run: str, mosaic: str, env: dict[str, str]) -> int:
    shown = subprocess.run([mosaic, "show", run, "--json"], env=env, check=True, stdout=subprocess.PIPE).stdout
    return int(json.loads(shown)["summary"]["env_steps"])


def main(mosaic: str, out: Path) -> None:
    home = Path(tempfile.mkdtemp(prefix="mosaic-"))
    env = {**os.environ, "MOSAIC_HOME": str(home)}
    (home / "envs").mkdir()
    (home / "envs" / "cleanrl").symlink_to(REPO / ".venv-cleanrl")
    try:
        for run in RUNS:
            subprocess.run([mosaic, *run.split(), "--detach"], env=env, check=True)
        while steps_of("ppo", mosaic, env) < FIRST_STEPS:
            time.sleep(1)
        out.write_text(draw(Session([mosaic, "watch"], env).record()))
    finally:
        subprocess.run([mosaic, "daemon", "stop", "--kill-runs"], env=env, check=False)
        shutil.rmtree(home, ignore_errors=True)
    print(f"{out}: {out.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
