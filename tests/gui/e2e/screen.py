"""A screen without a monitor (Xvfb), with a window manager, real keys and clicks (xdotool), and eyes."""

import contextlib
import os
import struct
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from eyes import Spot, find
from PIL import Image

SIZE = (1280, 800)
PATIENCE_S = 60.0


class Screen:
    """1. Whatever is waited for is waited for with a deadline, never slept for. 2. A miss leaves a screenshot."""

    def __init__(self, folder: Path, pictures: Path) -> None:
        self._folder = folder
        self._pictures = pictures
        pictures.mkdir(parents=True, exist_ok=True)
        reading, writing = os.pipe()
        geometry = f"{SIZE[0]}x{SIZE[1]}x24"
        words = ("-displayfd", str(writing), "-screen", "0", geometry, "-fbdir", str(folder), "-nolisten", "tcp")
        self._server = subprocess.Popen(["Xvfb", *words], pass_fds=[writing], stderr=subprocess.DEVNULL)
        os.close(writing)
        with os.fdopen(reading) as answer:
            self.display = f":{answer.readline().strip()}"
        self._manager = self.start(["openbox"], {})

    def start(self, command: list[str], environment: dict[str, str], **options: Any) -> "subprocess.Popen[bytes]":
        """Start a program on this screen."""
        kept = {name: value for name, value in os.environ.items() if name not in ("QT_QPA_PLATFORM", "WAYLAND_DISPLAY")}
        return subprocess.Popen(command, env={**kept, "DISPLAY": self.display, **environment}, **options)

    def close(self) -> None:
        for process in (self._manager, self._server):
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
            process.wait(10)

    # ---- hands

    def key(self, *names: str) -> None:
        """Press keys, such as ctrl+n, Tab, Return."""
        self._do("key", "--clearmodifiers", "--delay", "40", *names)

    def type(self, text: str) -> None:
        self._do("type", "--delay", "25", text)

    def click(self, x: int, y: int, times: int = 1) -> None:
        self._do("mousemove", "--sync", str(x), str(y))
        self._do("click", "--repeat", str(times), "--delay", "60", "1")

    def click_word(self, word: str, right_px: int = 0, **look: Any) -> None:
        """Click a word, or `right_px` to the right of it: the field beside a label."""
        x, y = self.wait_for(word, **look).centre
        self.click(x + right_px, y)

    def fill(self, label: str, text: str, right_px: int = 160, **look: Any) -> None:
        """Replace the text of the field beside a label."""
        spot = self.wait_for(label, **look)
        self.click(spot.left + right_px, spot.centre[1])
        self.key("ctrl+a")
        self.type(text)

    def _do(self, *words: str) -> None:
        subprocess.run(["xdotool", *words], env={**os.environ, "DISPLAY": self.display}, check=True, timeout=30)

    # ---- eyes

    def pixels(self) -> np.ndarray:
        """The screen as height × width × RGB: Xvfb keeps it in a file, an X window dump."""
        data = (self._folder / "Xvfb_screen0").read_bytes()
        header, *fields = struct.unpack(">25I", data[:100])
        width, height, line, colours = fields[3], fields[4], fields[11], fields[18]
        start = header + colours * 12
        rows = np.frombuffer(data, np.uint8, height * line, start).reshape(height, line)
        return rows[:, : width * 4].reshape(height, width, 4)[:, :, 2::-1]

    def see(self, word: str, **look: Any) -> Spot | None:
        grey = self.pixels().astype(float).mean(2)
        return find(grey, word, **look)

    def wait_for(self, word: str, timeout_s: float = PATIENCE_S, **look: Any) -> Spot:
        spot: list[Spot | None] = [None]

        def is_seen() -> bool:
            spot[0] = self.see(word, **look)
            return spot[0] is not None

        self.wait_until(is_seen, f"'{word}' is not on the screen", timeout_s)
        assert spot[0] is not None
        return spot[0]

    def wait_until_it_moves(self, area: tuple[int, int, int, int], complaint: str, timeout_s: float) -> None:
        """Wait until something else is painted in (left, top, right, bottom)."""
        left, top, right, bottom = area
        first = self.pixels()[top:bottom, left:right].copy()
        self.wait_until(lambda: bool((self.pixels()[top:bottom, left:right] != first).any()), complaint, timeout_s)

    def wait_until(self, condition: Callable[[], bool], complaint: str, timeout_s: float = PATIENCE_S) -> None:
        deadline = time.monotonic() + timeout_s
        while not condition():
            if time.monotonic() > deadline:
                picture = self.shoot("missed")
                raise AssertionError(f"{complaint} after {timeout_s:.0f} s; see {picture}")
            time.sleep(0.1)

    def shoot(self, name: str) -> Path:
        """Keep a screenshot as an artefact."""
        path = self._pictures / f"{name}.png"
        Image.fromarray(np.ascontiguousarray(self.pixels())).save(path)
        return path
