"""Clips: the first episodes of each lane as animated pictures, videos/LANE-SEED.gif; videos/LANE-SEED-2.gif
if the lane plays a seed again.

A lane's process publishes a frame within each step, and the recorder takes it after the step's answer. The pictures are
compressed and written in a thread: the evaluation does not wait for them, and goes on without a clip that fails.
"""

import io
import os
import queue
import shutil
import sys
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from mosaic_sdk.files import atomic_file

VIDEOS = "videos"
LARGEST_SIDE = 320  # pixels
MOST_FRAMES = 2000  # of one clip
_SLOW, _FAST = 100, 40  # milliseconds per frame, of short and long episodes
_LONG = 200  # frames
_END_S = 60.0  # how long the last clips may take


@dataclass
class Clip:
    """One episode that is recorded."""

    lane: str
    operator: str
    seed: int
    recorder: Any
    frames: list[bytes] = field(default_factory=list)  # PNG files; only the writing thread uses them
    count: int = 0


class Clips:
    """Records the first `wanted` episodes of each lane."""

    def __init__(self, run_id: str, run_dir: str, wanted: int) -> None:
        self._run_id = run_id
        self._run_dir = run_dir
        self._wanted = wanted
        self._open: dict[int, Clip] = {}  # by lane
        self._begun: dict[int, int] = {}
        self._made: Counter[tuple[str, int]] = Counter()  # clips of a lane and seed
        self.written: list[dict[str, Any]] = []
        self.problems: list[str] = []
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="clips", daemon=True)
        if wanted:
            self._thread.start()

    def begin(self, lane: int, name: str, operator: str, seed: int) -> None:
        """Before the lane's reset, so that its first frame is rendered."""
        self.drop(lane)
        if self._begun.get(lane, 0) >= self._wanted:
            return
        self._begun[lane] = self._begun.get(lane, 0) + 1
        try:
            from mosaic_sdk.fastlane import LaneRecorder

            self._open[lane] = Clip(name, operator, seed, LaneRecorder(self._run_id, lane))
        except (ImportError, OSError, RuntimeError, ValueError) as error:
            self.problems.append(f"There are no clips: {error}")
            self._wanted = 0

    def take(self, lane: int) -> None:
        """After the lane's reset, and after each of its steps."""
        clip = self._open.get(lane)
        if clip is None or clip.count >= MOST_FRAMES:
            return
        pixels = clip.recorder.frame()
        if pixels is not None:
            clip.count += 1
            self._jobs.put(lambda: clip.frames.append(_as_png(pixels)))

    def end(self, lane: int) -> None:
        """The episode was played to its end: write the clip."""
        clip = self._open.pop(lane, None)
        if clip is not None:
            clip.recorder.close()
            path = self._next_path(clip.lane, clip.seed)
            self._jobs.put(lambda: self._write(clip, path))

    def drop(self, lane: int) -> None:
        """The episode was not played to its end."""
        clip = self._open.pop(lane, None)
        if clip is not None:
            clip.recorder.close()

    def adopt(self, former_run_dir: str, lane: int, name: str, operator: str, seed: int) -> None:
        """Take over the clip that an earlier run made of this episode."""
        if self._begun.get(lane, 0) >= self._wanted:
            return
        self._begun[lane] = self._begun.get(lane, 0) + 1
        path = self._path(name, seed)
        source = os.path.join(former_run_dir, path)
        if os.path.isfile(source):
            self._next_path(name, seed)
            os.makedirs(os.path.join(self._run_dir, VIDEOS), exist_ok=True)
            shutil.copyfile(source, os.path.join(self._run_dir, path))
            self.written.append({"path": path, "lane": name, "operator": operator, "seed": seed})

    def close(self) -> None:
        """Wait for the last clips."""
        for lane in list(self._open):
            self.drop(lane)
        if self._thread.is_alive():
            self._jobs.put(None)
            self._thread.join(_END_S)

    def _work(self) -> None:
        for job in iter(self._jobs.get, None):
            try:
                job()
            except Exception as error:  # noqa: BLE001  # the edge of the thread: a clip is not worth the evaluation
                self.problems.append(f"A clip could not be written: {error}")
                print(f"eval: {self.problems[-1]}", file=sys.stderr)

    def _write(self, clip: Clip, path: str) -> None:
        if not clip.frames:
            self.problems.append(f"There is no clip of the lane {clip.lane}: it showed no frames.")
            return
        with atomic_file(os.path.join(self._run_dir, path)) as file:
            file.write(_as_gif(clip.frames))
        self.written.append({"path": path, "lane": clip.lane, "operator": clip.operator, "seed": clip.seed})

    def _path(self, lane: str, seed: int) -> str:
        made = self._made[lane, seed]
        return os.path.join(VIDEOS, f"{lane}-{seed}-{made + 1}.gif" if made else f"{lane}-{seed}.gif")

    def _next_path(self, lane: str, seed: int) -> str:
        path = self._path(lane, seed)
        self._made[lane, seed] += 1
        return path


def _as_png(pixels: Any) -> bytes:
    from mosaic_sdk.fastlane.scale import shrink
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(shrink(pixels, LARGEST_SIDE)).convert("RGB").quantize(128).save(file, "PNG")
    return file.getvalue()


def _as_gif(frames: list[bytes]) -> bytes:
    from PIL import Image

    images = [Image.open(io.BytesIO(frame)) for frame in frames]
    file = io.BytesIO()
    duration = _SLOW if len(frames) <= _LONG else _FAST
    images[0].save(file, "GIF", save_all=True, append_images=images[1:], duration=duration, loop=0)
    return file.getvalue()
