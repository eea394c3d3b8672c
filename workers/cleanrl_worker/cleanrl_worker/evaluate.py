"""mode=policy_eval: a checkpoint's policy on chosen seeds, several episodes at once.

Episode n of an evaluation is played with the seed `seed + n`, whatever the batch size; a repetition goes on with the
seeds after that. The policy acts as it was trained (PPO and SAC sample), unless `eval_deterministic` is set. It leaves:

    eval_summary.json      the latest repetition, and in `history` every one of them
    tensorboard/           eval/episode_return by episode, eval/avg_return … by repetition
    videos/eval/           if `eval_capture_video` is set
"""

import json
import os
import signal
import statistics
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from mosaic_sdk import emit
from mosaic_sdk.config import ConfigError
from mosaic_sdk.heartbeat import Heartbeat
from mosaic_sdk.names import WorkerEnv

from cleanrl_worker import analytics, runtime
from cleanrl_worker.config import CleanRLWorkerConfig

SUMMARY = "eval_summary.json"
FOREVER = 0  # repetitions until it is stopped

# For the worker's parameter schema: the keys of `extras` that only an evaluation has.
EVALUATION_SCHEMA: Mapping[str, Mapping[str, Any]] = {
    "eval_episodes": {"type": "integer", "minimum": 1, "default": 10, "description": "episodes of an evaluation"},
    "eval_batch_size": {"type": "integer", "minimum": 1, "default": 8, "description": "episodes played at once"},
    "eval_repeat": {"type": "integer", "minimum": 0, "default": 1, "description": "repetitions; 0: until stopped"},
    "eval_gamma": {"type": "number", "minimum": 0, "maximum": 1, "description": "discount of the discounted return"},
    "eval_max_episode_steps": {"type": "integer", "minimum": 0, "default": 0, "description": "0: the env's own limit"},
    "eval_capture_video": {
        "type": "boolean",
        "default": False,
        "description": "record a video of the first environment",
    },
    "eval_deterministic": {"type": "boolean", "default": False, "description": "always take the most likely action"},
    "eval_on_other_env": {"type": "boolean", "default": False, "description": "env_id need not be the checkpoint's"},
}


@dataclass(frozen=True)
class Plan:
    """What is asked for."""

    policy_path: str
    algo: str  # "": the checkpoint's
    env_id: str  # "": the checkpoint's
    seed: int
    episodes: int
    batch_size: int
    repeat: int
    gamma: float | None  # None: the training's
    max_steps: int
    capture_video: bool
    deterministic: bool
    on_other_env: bool
    device: str = "cpu"

    @classmethod
    def of(cls, config: CleanRLWorkerConfig) -> "Plan":
        """From the config; ConfigError for a value that cannot be."""
        values = settings_of(config)
        if not config.policy_path:
            raise ConfigError("extras.policy_path is missing: an evaluation needs the checkpoint to load.")
        return cls(
            policy_path=config.policy_path,
            algo=config.algo if _is_given(config, "algo") else "",
            env_id=config.env_id if _is_given(config, "env_id", "env") else "",
            seed=config.seed if config.seed is not None else 1,
            episodes=values["eval_episodes"],
            batch_size=min(values["eval_batch_size"], values["eval_episodes"]),
            repeat=values["eval_repeat"],
            gamma=values["eval_gamma"],
            max_steps=values["eval_max_episode_steps"],
            capture_video=values["eval_capture_video"] or config.capture_video,
            deterministic=values["eval_deterministic"],
            on_other_env=values["eval_on_other_env"],
            device="cuda" if config.cuda else "cpu",
        )


def settings_of(config: CleanRLWorkerConfig) -> dict[str, Any]:
    """What the config says of an evaluation, with the defaults; ConfigError for a value that cannot be."""
    return {name: _checked(name, config.extras.get(name), part) for name, part in EVALUATION_SCHEMA.items()}


@dataclass
class Episode:
    """One episode, while it is played and after."""

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


class Pulse(Protocol):
    """Hears of every step that is played."""

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
        """`count` episodes, as many at once as there are lanes; in the order of their seeds."""
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
    """Play, tell and write it all down; returns the summary of the last repetition."""
    plan = Plan.of(config)
    folder = Path(os.environ.get(WorkerEnv.RUN_DIR) or ".").resolve()
    # As a training's process has it; before torch and the environments are imported.
    os.environ.update(runtime.environment(config, folder))
    with Heartbeat() as heart:
        player, about = _prepare(plan, config, heart)
        from torch.utils.tensorboard import SummaryWriter

        writer = SummaryWriter(str(folder / config.tensorboard_dir))
        try:
            summary = _repeat(plan, player, {"run_id": config.run_id, **about}, folder, writer)
        finally:
            writer.close()
            player.close()
    analytics.write_manifest(config, folder, summary)
    return summary


def _repeat(plan: Plan, player: Player, about: Mapping[str, Any], folder: Path, writer: Any) -> dict[str, Any]:
    history: list[dict[str, Any]] = []
    while plan.repeat == FOREVER or len(history) < plan.repeat:
        number = len(history)
        started = time.monotonic()
        episodes = player.play(plan.episodes, plan.seed + number * plan.episodes)
        summary = {"batch_index": number, **summarise(episodes), "duration_sec": time.monotonic() - started}
        history.append({**summary, "updated_at": time.time()})
        with _uninterrupted():
            _tell(episodes, summary, number * plan.episodes, writer)
            write_whole(folder / SUMMARY, {"version": 1, **about, **history[-1], "history": history})
    return {**about, **{key: value for key, value in history[-1].items() if key not in ("returns", "seeds")}}


def summarise(episodes: list[Episode]) -> dict[str, Any]:
    """The numbers of one repetition."""
    returns = [episode.total_return for episode in episodes]
    return {
        "episodes": len(episodes),
        "avg_return": statistics.fmean(returns),
        "min_return": min(returns),
        "max_return": max(returns),
        "median_return": statistics.median(returns),
        "std_return": statistics.pstdev(returns),
        "avg_length": statistics.fmean(episode.steps for episode in episodes),
        "avg_discounted_return": statistics.fmean(episode.discounted_return for episode in episodes),
        "returns": returns,
        "seeds": [episode.seed for episode in episodes],
    }


def _tell(episodes: list[Episode], summary: Mapping[str, Any], first: int, writer: Any) -> None:
    for episode in episodes:
        number = first + episode.number
        emit.episode(
            number,
            episode.total_return,
            episode.steps,
            terminated=episode.terminated,
            truncated=episode.truncated,
            episode_seed=episode.seed,
        )
        writer.add_scalar("eval/episode_return", episode.total_return, number)
    values = {f"eval/{name}": value for name, value in summary.items() if isinstance(value, (int, float))}
    emit.metrics(values, summary["batch_index"])
    for name, value in values.items():
        writer.add_scalar(name, value, summary["batch_index"])


def _prepare(plan: Plan, config: CleanRLWorkerConfig, heart: Heartbeat) -> tuple[Player, dict[str, Any]]:
    # Here, because the checks above must not wait for torch.
    from cleanrl_worker.checkpoints import load_checkpoint
    from cleanrl_worker.lanes import make_lanes
    from cleanrl_worker.policy import load_policy, load_script

    checkpoint = load_checkpoint(plan.policy_path)
    checkpoint.require(plan.algo, "" if plan.on_other_env else plan.env_id)
    algo, env_id = checkpoint.algo or plan.algo, plan.env_id or checkpoint.env_id
    if not algo or not env_id:
        raise ConfigError(f"{plan.policy_path} does not say its algorithm and environment. Set algo and env_id.")
    extras = {**config.extras, "capture_video": plan.capture_video}
    algorithm, script = load_script(replace(config, algo=algo, env_id=env_id, extras=extras))
    lanes = make_lanes(algorithm, script, env_id, plan.batch_size, checkpoint, plan.capture_video)
    policy = load_policy(checkpoint, script, lanes[0], plan.deterministic, plan.device)
    emit.checkpoint_loaded(checkpoint.path, step=checkpoint.global_step)
    gamma = plan.gamma if plan.gamma is not None else float(checkpoint.params.get("gamma", 0.99))
    about = {
        "algo": algo,
        "env_id": env_id,
        "policy_path": checkpoint.path,
        "checkpoint_step": checkpoint.global_step,
        "seed": plan.seed,
        "gamma": gamma,
        "deterministic": plan.deterministic,
    }
    return Player(policy, lanes, gamma, plan.max_steps, heart), about


def _is_given(config: CleanRLWorkerConfig, *names: str) -> bool:
    """Whether the user wrote it: a default says nothing about what the checkpoint should be of."""
    worker = config.raw.get("metadata", {}).get("worker", {}) if isinstance(config.raw.get("metadata"), dict) else {}
    keys = worker.get("config", {}) if worker else config.raw
    return any(keys.get(name) for name in names)


def _checked(name: str, value: Any, part: Mapping[str, Any]) -> Any:
    """The daemon checks a submit with the same schema; this is for configs that come another way."""
    if value is None:
        return part.get("default")
    kinds: dict[str, Any] = {"integer": int, "number": (int, float), "boolean": bool}
    is_of_kind = isinstance(value, kinds[part["type"]]) and isinstance(value, bool) == (part["type"] == "boolean")
    if not is_of_kind or not part.get("minimum", value) <= value <= part.get("maximum", value):
        words = {"integer": "a whole number", "number": "a number", "boolean": "true or false"}[part["type"]]
        least = f" of at least {part['minimum']}" if "minimum" in part else ""
        most = f" and at most {part['maximum']}" if "maximum" in part else ""
        raise ConfigError(f"extras.{name}: it must be {words}{least}{most}, not {value!r}.")
    return value


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """A stop waits for the end of the block: raised inside TensorBoard's queue, it would let close() wait for ever."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may have handlers, and only it is interrupted
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


def write_whole(path: Path, document: Mapping[str, Any]) -> None:
    temp = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with open(temp, "w", encoding="utf-8") as file:
        json.dump(document, file, indent=2)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temp, path)
