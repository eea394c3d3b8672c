"""The logger process: turns what the other processes send into curves, episodes and clips.

steps      from the actor: rewards and flags of each step, assembled into episodes
metrics    from every process, under its prefix, averaged between two writes
clip       a short video of what the model predicts, into videos/
snapshot, write, saved: its part of a checkpoint
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from mosaic_sdk.files import atomic_file, read_json, write_json

from dreamer_worker.checkpoint import Counters, Epochs
from dreamer_worker.config import DreamerConfig
from dreamer_worker.life import LINGER_S, Life
from dreamer_worker.outputs import Output
from dreamer_worker.rpc import LEAVING_S, Server
from dreamer_worker.telemetry import Telemetry
from dreamer_worker.timers import Rate, Timers, usage

log = logging.getLogger(__name__)

PART = "logger.json"
MOST_CLIPS = 100  # of one kind; at 64 x 64 pixels one takes about a megabyte


@dataclass
class Episode:
    """An episode in progress."""

    score: float = 0.0
    length: int = 0
    extras: dict[str, float] = field(default_factory=dict)
    updated: float = field(default_factory=time.monotonic)


class Episodes:
    """Assembles episodes from steps. Its promises:

    1. Only whole episodes are reported: one whose beginning was missed is not.
    2. The episode of an env that is silent for `timeout_s` while others are not is dropped. When all are silent (the
       agent compiles, the limiter holds them), none is dropped.
    """

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._playing: dict[int, Episode] = {}

    def step(self, env: int, reward: float, first: bool, last: bool, extras: dict[str, float]) -> Episode | None:
        """Add a step; returns the episode if this was its last one."""
        if first:
            self._playing[env] = Episode()
        episode = self._playing.get(env)
        if episode is None:
            return None
        episode.score += reward
        # The first observation is not a step.
        episode.length += not first
        episode.updated = time.monotonic()
        for name, value in extras.items():
            episode.extras[name] = episode.extras.get(name, 0.0) + value
        return self._playing.pop(env) if last else None

    def forget_silent(self) -> int:
        """Drop the episodes of envs that are gone; returns how many."""
        late = max((episode.updated for episode in self._playing.values()), default=0.0) - self._timeout_s
        silent = [env for env, episode in self._playing.items() if episode.updated < late]
        for env in silent:
            del self._playing[env]
        return len(silent)

    def __len__(self) -> int:
        return len(self._playing)


class Averages:
    """The mean of each number since the last call of `take`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sums: dict[str, list[float]] = {}

    def add(self, values: dict[str, float]) -> None:
        with self._lock:
            for name, value in values.items():
                entry = self._sums.setdefault(name, [0.0, 0.0])
                entry[0] += 1
                entry[1] += value

    def take(self) -> dict[str, float]:
        with self._lock:
            sums, self._sums = self._sums, {}
        return {name: total / count for name, (count, total) in sums.items()}


class Logger:
    """Its promises:

    1. The step never decreases, even if the logger or the actor is restarted.
    2. Steps that are sent twice count once.
    3. The numbers of each process are logged under its own prefix.
    4. An output that cannot be written stops neither the others nor the run.
    """

    def __init__(
        self, outputs: list[Output], counters: Counters, logdir: str, episode_timeout_s: float = 180.0
    ) -> None:
        self.outputs = outputs
        self.counters = counters
        self.step = counters["env_steps"]
        self._logdir = Path(logdir)
        self._lock = threading.Lock()
        self._averages = Averages()
        self._episodes = Episodes(episode_timeout_s)
        self._received: dict[str, int] = {}  # actor process → number of its last message
        self._failing: set[Output] = set()
        self._steps_rate = Rate()
        self.timers = Timers()

    def steps(self, actor: str, number: int, env_steps: int, rows: dict[str, Any]) -> None:
        """One policy call's steps."""
        with self._lock:
            if int(number) <= self._received.get(actor, 0):
                return
            # Only the newest actor process matters: an older one sends nothing any more.
            self._received = {actor: int(number)}
            self.step = max(self.step, int(env_steps))
            at, ended = self.step, list(self._ended(rows))
        for episode in ended:
            self._report_episode(at, episode)

    def evaluated(self, env_steps: int, episodes: list[dict[str, Any]]) -> None:
        """The episodes of an evaluation at that step, each with seed, score, length and terminated."""
        for episode in episodes:
            number = self.counters["eval_episodes"]
            self.counters.raise_to("eval_episodes", number + 1)
            self._write_all(partial(_write_evaluated, int(env_steps), number, episode))
        means = {name: float(np.mean([episode[name] for episode in episodes])) for name in ("score", "length")}
        values = {f"evaluation/{name}": mean for name, mean in means.items()}
        self._write_all(lambda output: output.scalars(int(env_steps), values))

    def metrics(self, prefix: str, values: dict[str, Any]) -> None:
        self._averages.add({f"{prefix}/{name}": float(value) for name, value in values.items()})

    def clip(self, name: str, frames: np.ndarray) -> None:
        folder = self._logdir / "videos"
        folder.mkdir(parents=True, exist_ok=True)
        write_clip(folder / f"{name}-{self.step:010d}.gif", frames)
        thin_out(sorted(folder.glob(f"{name}-*.gif")))

    def write(self) -> None:
        """Write everything since the last write to every output."""
        with self._lock:  # steps of the actor arrive meanwhile
            self._averages.add({"episode/forgotten": self._episodes.forget_silent()})
        values = self._averages.take()
        values |= {"logger/fps": self._steps_rate.per_second(), "logger/playing": len(self._episodes)}
        values |= {f"logger/{name}": value for name, value in {**self.timers.stats(), **usage()}.items()}
        values |= {f"counters/{name}": value for name, value in self.counters.to_dict().items()}
        self._write_all(lambda output: output.scalars(self.step, values))

    def save(self) -> dict[str, Any]:
        with self._lock:
            return {"step": self.step, **self.counters.to_dict()}

    def load(self, saved: dict[str, Any]) -> None:
        with self._lock:
            self.step = max(self.step, saved["step"])

    def close(self) -> None:
        self.write()
        self._write_all(lambda output: output.close())

    def _write_all(self, write: Callable[[Output], None]) -> None:
        """Write to every output. One that fails (disk full) is skipped until it works again."""
        with self._lock:
            for output in self.outputs:
                try:
                    write(output)
                    self._failing.discard(output)
                except OSError as error:
                    if output not in self._failing:
                        log.warning("%s cannot be written; the run continues: %s", type(output).__name__, error)
                    self._failing.add(output)

    def _ended(self, rows: dict[str, Any]) -> Any:
        is_eval = bool(rows["is_eval"])
        extras = {name: value for name, value in rows.items() if name.startswith("log/")}
        self._steps_rate.add(len(rows["env"]))
        for index, env in enumerate(rows["env"]):
            logged = {name: float(value[index]) for name, value in extras.items()}
            first, last = bool(rows["is_first"][index]), bool(rows["is_last"][index])
            episode = self._episodes.step(int(env), float(rows["reward"][index]), first, last, logged)
            if episode:
                yield env, is_eval, bool(rows["is_terminal"][index]), episode

    def _report_episode(self, step: int, ended: tuple[Any, bool, bool, Episode]) -> None:
        env, is_eval, terminated, episode = ended
        name = "eval_episodes" if is_eval else "episodes"
        number = self.counters[name]
        self.counters.raise_to(name, number + 1)
        prefix = "eval_episode" if is_eval else "episode"
        played = {"score": episode.score, "length": float(episode.length), **episode.extras}
        self._averages.add({f"{prefix}/{key.removeprefix('log/')}": value for key, value in played.items()})
        fields = {
            "env": int(env),
            "eval": is_eval,
            "score": episode.score,
            "length": episode.length,
            "terminated": terminated,
        }
        self._write_all(lambda output: output.episode(step, number, fields))


def _write_evaluated(step: int, number: int, episode: dict[str, Any], output: Output) -> None:
    kinds: dict[str, Callable[[Any], Any]] = {"seed": int, "score": float, "length": int, "terminated": bool}
    # They arrive as zero-dimensional arrays, which JSON cannot hold.
    output.episode(step, number, {"eval": True, **{name: kind(episode[name]) for name, kind in kinds.items()}})


class LoggerService:
    """The logger behind an address."""

    def __init__(
        self, logger: Logger, server: Server, epochs: Epochs, on_saved: Callable[[str, dict[str, Any]], object]
    ) -> None:
        self.logger = logger
        self.server = server
        self.epochs = epochs
        self._snapshots: dict[int, dict[str, Any]] = {}
        server.bind("steps", logger.timers.timed("steps", logger.steps))
        server.bind("metrics", logger.metrics)
        server.bind("clip", logger.clip)
        server.bind("snapshot", self.snapshot)
        server.bind("write", self.write)
        server.bind("saved", on_saved)
        server.bind("evaluated", logger.evaluated)

    def restore(self) -> None:
        epoch = self.epochs.newest()
        if epoch is not None:
            restore_part(self.logger, self.epochs.path(epoch))

    def snapshot(self, epoch: Any) -> None:
        self._snapshots = {int(epoch): self.logger.save()}

    def write(self, epoch: Any) -> None:
        folder = self.epochs.path(int(epoch))
        folder.mkdir(parents=True, exist_ok=True)
        write_part(folder, int(epoch), self._snapshots.pop(int(epoch)))


def write_part(folder: Path, epoch: int, saved: dict[str, Any]) -> None:
    """The logger's part of a checkpoint, from what `Logger.save` returned."""
    write_json(folder / PART, {"version": 1, "epoch": epoch, **saved})


def restore_part(logger: Logger, folder: Path) -> None:
    if (folder / PART).exists():
        logger.load(read_json(folder / PART))


def announcer(telemetry: Telemetry, config: DreamerConfig) -> Callable[[str, dict[str, Any]], None]:
    """Reports a saved checkpoint to MOSAIC, if that is one of the run's outputs."""

    def announce(path: str, details: dict[str, Any]) -> None:
        if "mosaic" in config.outputs:
            telemetry.checkpoint_saved(path, **details)

    return announce


def run_logger(life: Life, make_logger: Callable[[], Logger], config: DreamerConfig) -> None:
    """The work of a logger process."""
    logger = make_logger()
    server = Server(config.logger_addr, config.secret, "logger", LEAVING_S)
    announce = announcer(Telemetry(run_id=config.run_id), config)
    service = LoggerService(logger, server, Epochs(config.checkpoint_dir), announce)
    service.restore()
    server.start()
    life.ready()
    while not life.wait(config.log_every_s):
        logger.metrics("logger", {f"rpc/{name}": value for name, value in server.stats().items()})
        logger.write()
    life.linger(lambda: server.peers == 0)  # for the agent's last checkpoint and the last metrics of the others
    server.close()
    server.finish(LINGER_S)  # a clip may still be written
    logger.close()


def thin_out(clips: list[Path], most: int = MOST_CLIPS) -> None:
    """Remove a clip when there are too many: the one with the closest neighbours, so that the run stays covered."""
    if len(clips) <= most:
        return
    steps = [int(path.stem.rpartition("-")[2]) for path in clips]
    crowded = min(range(1, len(clips) - 1), key=lambda index: steps[index + 1] - steps[index - 1])
    clips[crowded].unlink(missing_ok=True)


def write_clip(path: Path, frames: np.ndarray, fps: int = 12) -> None:
    """Write frames as an animated GIF."""
    from PIL import Image

    if frames.shape[-1] != 3:  # gray, or channels that are not colours: show the first ones
        frames = frames[..., :3] if frames.shape[-1] > 3 else frames[..., :1].repeat(3, -1)
    first, *rest = [Image.fromarray(frame) for frame in frames]
    with atomic_file(path) as file:
        first.save(file, format="GIF", save_all=True, append_images=rest, duration=1000 // fps, loop=0)
