"""mode=policy_eval: plays a checkpoint's policy on given seeds, several episodes at once.

Episode n of an evaluation uses the seed `seed + n`, regardless of the batch size; a repetition continues with the seeds
after that. The policy acts as it was trained (PPO and SAC sample) unless `eval_deterministic` is set. Results:

    eval_summary.json      the latest repetition, and all of them in `history` (mosaic_sdk.evaluation)
    tensorboard/           eval/episode_return by episode; eval/mean_return and the others by repetition
    videos/eval/           if `eval_capture_video` is set
"""

import os
import signal
import statistics
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from mosaic_sdk import emit
from mosaic_sdk.config import ConfigError
from mosaic_sdk.evaluation import EVAL_MEAN_RETURN, Evaluation
from mosaic_sdk.heartbeat import Heartbeat
from mosaic_sdk.names import WorkerEnv

from cleanrl_worker import WORKER, analytics, runtime
from cleanrl_worker.config import SCRIPTS_SEED, CleanRLWorkerConfig

FOREVER = 0  # repetitions until the run is stopped
# Metric → key of a repetition. The names of the metrics are older than those of the keys.
METRICS = {
    EVAL_MEAN_RETURN: "mean_return",
    "eval/avg_length": "mean_length",
    "eval/avg_discounted_return": "avg_discounted_return",
    **{f"eval/{name}": name for name in ("min_return", "max_return", "median_return", "std_return")},
    **{f"eval/{name}": name for name in ("batch_index", "episodes", "duration_sec")},
}


@dataclass
class Episode:
    """One episode, during and after play."""

    number: int
    seed: int
    observation: Any = None
    total_return: float = 0.0
    discounted_return: float = 0.0
    steps: int = 0
    terminated: bool = False
    truncated: bool = False

    def add(self, step: Any, gamma: float, max_steps: int) -> None:
        self.observation = step.observation
        self.total_return += step.reward
        self.discounted_return += gamma**self.steps * step.reward
        self.steps += 1
        self.terminated = step.terminated
        self.truncated = step.truncated or (self.steps == max_steps and not step.terminated)

    @property
    def is_over(self) -> bool:
        return self.terminated or self.truncated

    def add_to(self, found: Evaluation) -> None:
        found.add(self.seed, self.total_return, self.steps, self.terminated, self.truncated)


class Pulse(Protocol):
    """Is notified of every step that is played."""

    def advance(self, steps: int, /) -> None: ...


@dataclass
class Player:
    """A policy and its environments."""

    policy: Any
    lanes: list[Any]
    gamma: float
    max_steps: int = 0
    heart: Pulse = field(default_factory=Heartbeat)

    def play(self, count: int, first_seed: int) -> list[Episode]:
        """Play `count` episodes, as many at once as there are lanes; returns them in the order of their seeds."""
        import torch

        torch.manual_seed(first_seed)
        waiting = [Episode(number, first_seed + number) for number in range(count)]
        done: list[Episode] = []
        playing = {place: self._begin(place, waiting.pop(0)) for place in range(min(count, len(self.lanes)))}
        while playing:
            places = list(playing)
            actions = self.policy.act([playing[place].observation for place in places], places)
            for place, action in zip(places, actions, strict=True):
                episode = playing[place]
                episode.add(self.lanes[place].step(action), self.gamma, self.max_steps)
                if episode.is_over:
                    done.append(playing.pop(place))
                    if waiting:
                        playing[place] = self._begin(place, waiting.pop(0))
            self.heart.advance(len(places))
        return sorted(done, key=lambda episode: episode.number)

    def close(self) -> None:
        for lane in self.lanes:
            lane.close()

    def _begin(self, place: int, episode: Episode) -> Episode:
        self.policy.forget(place)
        episode.observation = self.lanes[place].reset(episode.seed)
        return episode


def evaluate(config: CleanRLWorkerConfig) -> dict[str, Any]:
    """Play, report and write the results; returns the summary of the last repetition."""
    if not config.policy_path:
        raise ConfigError("extras.policy_path is missing: an evaluation needs the checkpoint to load.")
    folder = Path(os.environ.get(WorkerEnv.RUN_DIR) or ".").resolve()
    # The environment of a training's process, set before torch and the environments are imported.
    os.environ.update(runtime.environment(config, folder))
    with Heartbeat() as heart:
        trial = _prepare(config, heart)
        from torch.utils.tensorboard import SummaryWriter

        writer = SummaryWriter(str(folder / config.tensorboard_dir))
        try:
            summary = _repeat(config, trial, folder, writer)
        finally:
            writer.close()
            trial.player.close()
    analytics.write_manifest(config, folder, summary)
    return summary


@dataclass(frozen=True)
class Trial:
    """A checkpoint's policy, ready to play."""

    player: Player
    algo: str
    env_id: str
    checkpoint: str
    checkpoint_step: int

    def new_evaluation(self, config: CleanRLWorkerConfig, first_index: int) -> Evaluation:
        return Evaluation(
            run_id=config.run_id,
            worker=WORKER,
            env_id=self.env_id,
            algo=self.algo,
            checkpoint=self.checkpoint,
            deterministic=config.eval_deterministic,
            first_index=first_index,
        )


def _repeat(config: CleanRLWorkerConfig, trial: Trial, folder: Path, writer: Any) -> dict[str, Any]:
    first_seed = _first_seed(config)
    more = {"policy_path": trial.checkpoint, "checkpoint_step": trial.checkpoint_step}
    more.update(seed=first_seed, gamma=trial.player.gamma)
    history: list[dict[str, Any]] = []
    while config.eval_repeat == FOREVER or len(history) < config.eval_repeat:
        first = len(history) * config.eval_episodes
        started = time.monotonic()
        episodes = trial.player.play(config.eval_episodes, first_seed + first)
        duration = {"duration_sec": time.monotonic() - started}
        with _uninterrupted():
            found = trial.new_evaluation(config, first)
            _report(episodes, found, writer)
            latest = {"batch_index": len(history), **found.statistics(), **_further_statistics(episodes), **duration}
            _report_repetition(latest, writer)
            history.append({**latest, "seeds": found.seeds, "returns": found.returns, "updated_at": time.time()})
            found.write(folder, **more, **history[-1], history=history)
    about = {"algo": trial.algo, "env_id": trial.env_id, "run_id": config.run_id, **more}
    return {**about, **{key: value for key, value in history[-1].items() if key not in ("returns", "seeds")}}


def _further_statistics(episodes: list[Episode]) -> dict[str, float]:
    """The statistics that not every worker has."""
    return {
        "median_return": statistics.median(episode.total_return for episode in episodes),
        "avg_discounted_return": statistics.fmean(episode.discounted_return for episode in episodes),
    }


def _report(episodes: list[Episode], found: Evaluation, writer: Any) -> None:
    for episode in episodes:
        episode.add_to(found)
        writer.add_scalar("eval/episode_return", episode.total_return, found.rows[-1]["episode_index"])


def _report_repetition(latest: Mapping[str, Any], writer: Any) -> None:
    values = {name: latest[key] for name, key in METRICS.items()}
    emit.metrics(values, latest["batch_index"])
    for name, value in values.items():
        writer.add_scalar(name, value, latest["batch_index"])


def _prepare(config: CleanRLWorkerConfig, heart: Heartbeat) -> Trial:
    # Imported here: they need torch, and the checks above do not.
    from cleanrl_worker.checkpoints import load_checkpoint
    from cleanrl_worker.lanes import make_lanes
    from cleanrl_worker.policy import load_policy, load_script

    # A default says nothing about which checkpoint is expected.
    algo, env_id = (getattr(config, name) if name in config.given else "" for name in ("algo", "env_id"))
    checkpoint = load_checkpoint(config.policy_path)
    checkpoint.require(algo, "" if config.eval_on_other_env else env_id)
    algo, env_id = checkpoint.algo or algo, env_id or checkpoint.env_id
    if not algo or not env_id:
        raise ConfigError(f"{config.policy_path} does not state its algorithm and environment. Set algo and env_id.")
    capture_video = config.eval_capture_video or config.capture_video
    algorithm, script = load_script(config.replace(algo=algo, env_id=env_id, capture_video=capture_video))
    count = min(config.eval_batch_size, config.eval_episodes)
    lanes = make_lanes(algorithm, script, env_id, count, checkpoint, capture_video)
    policy = load_policy(checkpoint, script, lanes[0], config.eval_deterministic, "cuda" if config.cuda else "cpu")
    emit.checkpoint_loaded(checkpoint.path, step=checkpoint.global_step)
    gamma = config.eval_gamma if config.eval_gamma is not None else float(checkpoint.params.get("gamma", 0.99))
    player = Player(policy, lanes, gamma, config.eval_max_episode_steps, heart)
    return Trial(player, algo, env_id, checkpoint.path, checkpoint.global_step)


def _first_seed(config: CleanRLWorkerConfig) -> int:
    return config.seed if config.seed is not None else SCRIPTS_SEED


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Delay a stop until the end of the block: raised inside TensorBoard's queue, it would block close() forever."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread can have signal handlers, and only it is interrupted
        return
    came: list[int] = []
    stops = (signal.SIGTERM, signal.SIGINT)
    before = [signal.signal(stop, lambda number, frame: came.append(number)) for stop in stops]
    try:
        yield
    finally:
        for stop, handler in zip(stops, before, strict=True):
            signal.signal(stop, handler)
        for number in came[:1]:
            signal.raise_signal(number)
