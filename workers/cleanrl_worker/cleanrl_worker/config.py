"""What a CleanRL run is told: the file at --config, checked, with names for everything in `extras`."""

import difflib
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from mosaic_sdk.config import ConfigError, load_config

from cleanrl_worker.wrappers.schedule import read_schedule

TRAIN, POLICY_EVAL, RESUME, INTERACTIVE = "train", "policy_eval", "resume_training", "interactive"
MODES = (TRAIN, POLICY_EVAL, RESUME, INTERACTIVE)
VIDEO_MODES = ("single", "grid", "off")

_FIELDS = ("run_id", "algo", "env_id", "total_timesteps", "seed", "extras", "worker_id")
_TAKEN = (*_FIELDS, "env", "version")
_FLAGS = ("cuda", "use_cuda", "track_wandb", "capture_video", "stop_on_nan", "test_mode")
# Everything MOSAIC itself has in `extras`; what else stands there is a hyperparameter of the algorithm.
EXTRAS = frozenset(
    [
        *("mode", "test_mode", "cuda", "use_cuda", "tensorboard_dir", "track_wandb", "capture_video", "stop_on_nan"),
        *("policy_path", "checkpoint_path", "checkpoint_every", "keep_checkpoints", "checkpoint_buffer_mb"),
        *("num_threads", "upstream_path", "fastlane_video_mode", "fastlane_slot", "fastlane_grid_limit"),
        *("curriculum_schedule", "algo_params", "eval_every", "eval_episodes", "eval_batch_size", "eval_repeat"),
        *("eval_gamma", "eval_max_episode_steps", "eval_capture_video", "eval_deterministic", "eval_on_other_env"),
    ]
)
_TEXTS = ("tensorboard_dir", "policy_path", "checkpoint_path", "upstream_path")


@dataclass(frozen=True)
class CleanRLWorkerConfig:
    """One run. `extras` holds all that not every run has; the properties below name what is in it."""

    run_id: str
    algo: str
    env_id: str
    total_timesteps: int
    seed: int | None = None
    extras: dict[str, Any] = field(default_factory=dict)
    worker_id: str | None = None
    raw: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "CleanRLWorkerConfig":
        """From a flat file's keys, or from a whole trainer config with them at metadata.worker.config."""
        keys = _flat(data)
        _refuse_unknown(keys)
        extras = dict(_object(keys, "extras"))
        config = cls(
            run_id=_text(keys, "run_id", ""),
            algo=_text(keys, "algo", "ppo"),
            env_id=_text(keys, "env_id", _text(keys, "env", _goal(extras.get("curriculum_schedule")) or "CartPole-v1")),
            total_timesteps=_whole(keys, "total_timesteps", 500_000, least=1),
            seed=None if keys.get("seed") is None else _whole(keys, "seed", 0, least=0),
            extras=extras,
            worker_id=keys.get("worker_id"),
            raw=dict(data),
        )
        config.check()
        return config

    @classmethod
    def load(cls, path: str) -> "CleanRLWorkerConfig":
        return cls.from_dict(load_config(path))

    def to_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _FIELDS}

    def check(self) -> None:
        """ConfigError for what no run can be made of."""
        if not self.run_id:
            raise ConfigError('run_id is missing. Add "run_id" to the config, or set MOSAIC_RUN_ID.')
        if self.mode not in MODES:
            raise ConfigError(f"extras.mode: it must be one of {', '.join(MODES)}, not {self.mode!r}.")
        if self.video_mode not in VIDEO_MODES:
            raise ConfigError(
                f"extras.fastlane_video_mode: it must be one of {', '.join(VIDEO_MODES)}, not {self.video_mode!r}."
            )
        for name in _FLAGS:
            if not isinstance(self.extras.get(name, False), bool):
                raise ConfigError(f"extras.{name}: it must be true or false, not {self.extras[name]!r}.")
        for name in _TEXTS:
            if not isinstance(self.extras.get(name, ""), str):
                raise ConfigError(f"extras.{name}: it must be a path, not {self.extras[name]!r}.")
        if self.mode in (POLICY_EVAL, RESUME) and not self.policy_path:
            raise ConfigError(f"extras.policy_path is missing: mode {self.mode} needs the checkpoint to load.")
        for name in _object(self.extras, "algo_params", "extras."):
            if _plain_name(name) in self.direct_params:
                raise ConfigError(f"extras.{name}: it stands in extras.algo_params as well. Leave one of the two out.")
        for name in ("checkpoint_every", "eval_every", "keep_checkpoints", "checkpoint_buffer_mb", "num_threads"):
            getattr(self, name)

    def filled_from(
        self,
        params: Mapping[str, Any],
        algo: str,
        env_id: str,
        flags: Collection[str],
        curriculum: Sequence[Mapping[str, str]] = (),
    ) -> "CleanRLWorkerConfig":
        """This config with what it leaves open taken from a checkpoint: a resumed training is the same training."""
        given = _flat(self.raw)
        kept = {name: value for name, value in params.items() if name in flags}
        schedule = self.curriculum_schedule or list(curriculum) or None
        return replace(
            self,
            algo=self.algo if given.get("algo") else algo,
            env_id=self.env_id if given.get("env_id") or given.get("env") else _goal(schedule) or env_id,
            seed=params.get("seed") if self.seed is None else self.seed,
            total_timesteps=self.total_timesteps
            if given.get("total_timesteps")
            else params.get("total_timesteps", self.total_timesteps),
            extras={
                **self.extras,
                "algo_params": {**kept, **self.algo_params},
                **({"curriculum_schedule": schedule} if schedule else {}),
            },
        )

    @property
    def mode(self) -> str:
        if self.extras.get("mode") is None and self.extras.get("test_mode"):
            return POLICY_EVAL
        return str(self.extras.get("mode") or TRAIN)

    @property
    def cuda(self) -> bool:
        """`cuda` and `use_cuda` mean the same; either one is enough."""
        return bool(self.extras.get("cuda") or self.extras.get("use_cuda"))

    @property
    def tensorboard_dir(self) -> str:
        """Relative to the run's folder."""
        return str(self.extras.get("tensorboard_dir") or "tensorboard")

    @property
    def track_wandb(self) -> bool:
        return bool(self.extras.get("track_wandb"))

    @property
    def capture_video(self) -> bool:
        return bool(self.extras.get("capture_video"))

    @property
    def stop_on_nan(self) -> bool:
        return bool(self.extras.get("stop_on_nan", True))

    @property
    def algo_params(self) -> dict[str, Any]:
        """Hyperparameters, as the script's own flags name them, with `_` for `-`."""
        named = {_plain_name(name): value for name, value in (self.extras.get("algo_params") or {}).items()}
        return {**self.direct_params, **named}

    @property
    def direct_params(self) -> dict[str, Any]:
        """Those of them that stand in `extras` itself; whether they are any is known by who knows the script."""
        return {_plain_name(name): value for name, value in self.extras.items() if name not in EXTRAS}

    @property
    def curriculum_schedule(self) -> Any:
        """A list of stages, or a preset's name; None: no curriculum."""
        return self.extras.get("curriculum_schedule") or None

    @property
    def video_mode(self) -> str:
        return str(self.extras.get("fastlane_video_mode") or "single")

    @property
    def fastlane_slot(self) -> int:
        return int(self.extras.get("fastlane_slot") or 0)

    @property
    def fastlane_grid_limit(self) -> int:
        return int(self.extras.get("fastlane_grid_limit") or 4)

    @property
    def policy_path(self) -> str:
        """The checkpoint to evaluate, or to go on from."""
        return str(self.extras.get("policy_path") or self.extras.get("checkpoint_path") or "")

    @property
    def checkpoint_every(self) -> int:
        """Steps between two checkpoints; 0: only at the end and when stopped."""
        return _whole(self.extras, "checkpoint_every", 50_000, least=0, where="extras.")

    @property
    def eval_every(self) -> int:
        """Steps between two evaluations of a training; 0: it is not evaluated."""
        return _whole(self.extras, "eval_every", 0, least=0, where="extras.")

    @property
    def keep_checkpoints(self) -> int:
        """How many checkpoints of a run stay; the newest ones."""
        return _whole(self.extras, "keep_checkpoints", 5, least=1, where="extras.")

    @property
    def checkpoint_buffer_mb(self) -> int:
        """A replay buffer larger than this is not kept in a checkpoint."""
        return _whole(self.extras, "checkpoint_buffer_mb", 256, least=0, where="extras.")

    @property
    def num_threads(self) -> int:
        """Threads of torch's CPU kernels. These networks are small: with more, threads wait for each other."""
        return _whole(self.extras, "num_threads", 1, least=1, where="extras.")

    @property
    def upstream_path(self) -> str:
        """A checkout of CleanRL whose scripts are run instead of the installed ones; empty: none."""
        return str(self.extras.get("upstream_path") or "")


def _goal(schedule: Any) -> str:
    """The environment that a curriculum leads to: its last stage's; empty where there is none."""
    with suppress(ConfigError):  # told by whoever checks the schedule
        return read_schedule(schedule)[-1].env_id if schedule else ""
    return ""


def _flat(data: Mapping[str, Any]) -> dict[str, Any]:
    metadata = data.get("metadata")
    worker = metadata.get("worker") if isinstance(metadata, Mapping) else None
    if not isinstance(metadata, Mapping) or not isinstance(worker, Mapping):
        return dict(data)
    keys = dict(_object(worker, "config", "metadata.worker."))
    for name, value in (
        ("run_id", metadata.get("run_id") or data.get("run_id")),
        ("worker_id", worker.get("worker_id")),
    ):
        if value:
            keys.setdefault(name, value)
    return keys


def _refuse_unknown(keys: Mapping[str, Any]) -> None:
    """A key in the wrong place must not be passed over: `mode` beside `extras` would train where it should evaluate."""
    for name in keys:
        if name not in _TAKEN:
            raise ConfigError(
                f"{name}: there is no such key on the top level. Write it as extras.{name}, or as "
                f"extras.algo_params.{name} if it is a hyperparameter."
            )


def nearest(name: str, known: Iterable[str]) -> str:
    """`Did you mean …?`, or nothing."""
    near = difflib.get_close_matches(name, sorted(known), n=1)
    return f"Did you mean {near[0]}?" if near else ""


def _plain_name(name: object) -> str:
    return str(name).replace("-", "_")


def _text(keys: Mapping[str, Any], name: str, default: str) -> str:
    value = keys.get(name)
    if value is None or value == "":
        return default
    if not isinstance(value, str):
        raise ConfigError(f"{name}: it must be a text, not {value!r}.")
    return value


def _whole(keys: Mapping[str, Any], name: str, default: int, least: int, where: str = "") -> int:
    value = keys.get(name)
    if value is None:
        return default
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise ConfigError(f"{where}{name}: it must be a whole number of at least {least}, not {value!r}.")
    return value


def _object(keys: Mapping[str, Any], name: str, where: str = "") -> Mapping[str, Any]:
    value = keys.get(name)
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise ConfigError(f'{where}{name}: it must be an object {{"key": value}}, not {value!r}.')
    return value
