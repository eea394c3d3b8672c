"""The settings of a CleanRL run, declared once: defaults, checks and the schema come from this class.

Hyperparameters are not declared here. Each script's own parser defines them (upstream.py), so `extras` and
`extras.algo_params` accept any key, and arguments.py checks those keys against the script.
"""

import difflib
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, ClassVar

from mosaic_sdk.config import ConfigError, load_config
from mosaic_sdk.names import VideoModes
from mosaic_sdk.settings import ALGO_PARAMS, EXTRAS, Settings, setting

from cleanrl_worker.wrappers.schedule import SCHEDULE_SCHEMA, read_schedule

TRAIN, POLICY_EVAL, RESUME, INTERACTIVE = "train", "policy_eval", "resume_training", "interactive"
MODES = (TRAIN, POLICY_EVAL, RESUME, INTERACTIVE)
VIDEO_MODES = (VideoModes.SINGLE, VideoModes.GRID, VideoModes.OFF)
SCRIPTS_SEED = 1  # the default of every script


def _extra(default: Any, description: str, **more: Any) -> Any:
    return setting(default, description, place=EXTRAS, **more)


class CleanRLWorkerConfig(Settings):
    """One run."""

    open_places: ClassVar[tuple[str, ...]] = (EXTRAS, ALGO_PARAMS)

    algo: str = setting("ppo", "Algorithm. ppo is MOSAIC's version of CleanRL's ppo.py; the others are CleanRL's own.")
    env_id: str = setting(
        "CartPole-v1", "Environment. The default in a curriculum is that of its last stage.", aliases=("env",)
    )
    total_timesteps: int = setting(
        500_000, "Steps in total, summed over all environments. A resumed run counts from its first start.", minimum=1
    )
    seed: int | None = setting(
        None, "Random seed. The same seed gives the same training.", minimum=0, schema_default=SCRIPTS_SEED
    )
    mode: str = _extra(TRAIN, "What to do.", choices=MODES)
    test_mode: bool = _extra(False, "The same as mode=policy_eval, if mode is not set.")
    cuda: bool = _extra(False, "Compute on the GPU that MOSAIC assigns to the run (--gpus 1).", aliases=("use_cuda",))
    tensorboard_dir: str = _extra("tensorboard", "Folder for TensorBoard's files, in the run's folder.")
    track_wandb: bool = _extra(False, "Track with Weights & Biases. Offline unless WANDB_API_KEY is set.")
    capture_video: bool = _extra(False, "Record videos of the first environment in videos/.")
    policy_path: str = _extra(
        "",
        "Checkpoint to evaluate, resume or play: a path, the ID or name of a run, or last.",
        aliases=("checkpoint_path",),
        checkpoint=True,
    )
    checkpoint_every: int = _extra(
        50_000, "Steps between two checkpoints; 0: only at the end and when the run is stopped.", minimum=0
    )
    keep_checkpoints: int = _extra(5, "Number of checkpoints to keep, the newest ones.", minimum=1)
    checkpoint_buffer_mb: int = _extra(256, "Largest replay buffer that a checkpoint includes, in MiB.", minimum=0)
    eval_every: int = _extra(
        0, "Steps between two evaluations during the training; the best policy is kept. 0: never.", minimum=0
    )
    stop_on_nan: bool = _extra(True, "Fail the run when a loss becomes NaN or infinite.")
    num_threads: int = _extra(
        1, "CPU threads of torch. More threads are slower, because these networks are small.", minimum=1
    )
    upstream_path: str = _extra("", "Checkout of CleanRL whose scripts are run instead of the installed ones.")
    fastlane_video_mode: str = _extra(
        VideoModes.SINGLE, "Which environments are shown live: one, several or none.", choices=VIDEO_MODES
    )
    fastlane_slot: int = _extra(0, "Number of the environment that mode single shows, from 0.", minimum=0)
    fastlane_grid_limit: int = _extra(4, "Most environments that mode grid shows.", minimum=1)
    eval_episodes: int = _extra(10, "Episodes of an evaluation.", minimum=1)
    eval_batch_size: int = _extra(8, "Episodes played in parallel.", minimum=1)
    eval_repeat: int = _extra(1, "Repetitions of an evaluation, on further seeds; 0: until it is stopped.", minimum=0)
    eval_gamma: float | None = _extra(
        None,
        "Discount factor of avg_discounted_return. Default: the training's.",
        minimum=0,
        maximum=1,
        record_default=False,
    )
    eval_max_episode_steps: int = _extra(
        0, "Steps after which an evaluation's episode is cut; 0: the environment's own limit.", minimum=0
    )
    eval_capture_video: bool = _extra(False, "Record videos of an evaluation in videos/eval/.")
    eval_deterministic: bool = _extra(
        False, "Take the most likely action. Otherwise PPO and SAC sample; the others are always greedy."
    )
    env_kwargs: dict[str, Any] = _extra({}, "Interactive mode: arguments of the environment, as in gymnasium.make.")
    eval_on_other_env: bool = _extra(False, "Allow an env_id other than the checkpoint's.")
    curriculum_schedule: Any = _extra(None, "", schema=SCHEDULE_SCHEMA)

    @classmethod
    def load(cls, path: str) -> "CleanRLWorkerConfig":
        return cls.from_dict(load_config(path))

    @classmethod
    def prepare(cls, values: dict[str, Any]) -> dict[str, Any]:
        """An empty string or list counts as not given."""
        found = {name: value for name, value in values.items() if value not in ("", [])}
        if found.get("test_mode") is True:
            found.setdefault("mode", POLICY_EVAL)
        goal = _goal(found.get("curriculum_schedule"))
        if goal:
            found.setdefault("env_id", goal)
        return found

    @classmethod
    def extras_names(cls) -> frozenset[str]:
        """Every key of `extras` that is a setting of the worker; any other key there is a hyperparameter."""
        settings = {name: one for name, one in cls.described().items() if one.place == EXTRAS}
        aliases = [alias for one in settings.values() for alias in one.alias_names()]
        return frozenset([*settings, *aliases, "algo_params"])

    def check(self) -> None:
        """ConfigError for settings that contradict each other."""
        if self.mode in (POLICY_EVAL, RESUME) and not self.policy_path:
            raise ConfigError(f"extras.policy_path is missing: mode {self.mode} needs the checkpoint to load.")
        if self.env_kwargs and self.mode != INTERACTIVE:
            # A checkpoint does not record them, so a training with them could not be evaluated or resumed.
            raise ConfigError(f"extras.env_kwargs: only mode interactive supports it, not mode {self.mode}.")
        for name in self.rest.get(ALGO_PARAMS, {}):
            if _plain_name(name) in self.direct_params:
                raise ConfigError(f"extras.{name}: it is in extras.algo_params as well. Remove one of the two.")

    def filled_from(
        self,
        params: Mapping[str, Any],
        algo: str,
        env_id: str,
        flags: Collection[str],
        curriculum: Sequence[Mapping[str, str]] = (),
    ) -> "CleanRLWorkerConfig":
        """This config with what it leaves out taken from a checkpoint: a resumed training is the same training."""
        schedule = self.curriculum_schedule or list(curriculum) or None
        kept = {
            "algo": algo,
            "env_id": _goal(schedule) or env_id,
            "seed": params.get("seed"),
            "total_timesteps": params.get("total_timesteps", self.total_timesteps),
        }
        missing = {name: value for name, value in kept.items() if name not in self.given}
        document = self.replace(**missing, curriculum_schedule=schedule).to_dict()
        extras = {name: value for name, value in document["extras"].items() if name in self.extras_names()}
        extras[_ALGO_PARAMS_KEY] = {
            **{name: value for name, value in params.items() if name in flags},
            **self.algo_params,
        }
        return type(self).from_dict({**document, "extras": extras})

    @property
    def algo_params(self) -> dict[str, Any]:
        """Hyperparameters by the names of the script's flags, with `_` instead of `-`."""
        named = {_plain_name(name): value for name, value in self.rest.get(ALGO_PARAMS, {}).items()}
        return {**self.direct_params, **named}

    @property
    def direct_params(self) -> dict[str, Any]:
        """The hyperparameters that are in `extras` itself. Only the script's parser knows whether they exist."""
        return {_plain_name(name): value for name, value in self.rest.get(EXTRAS, {}).items()}


_ALGO_PARAMS_KEY = ALGO_PARAMS.rpartition(".")[2]


def _goal(schedule: Any) -> str:
    """The environment of a curriculum's last stage; empty without a curriculum."""
    with suppress(ConfigError):  # reported when the schedule is checked
        return read_schedule(schedule)[-1].env_id if schedule else ""
    return ""


def nearest(name: str, known: Iterable[str]) -> str:
    """`Did you mean …?`, or an empty string."""
    near = difflib.get_close_matches(name, sorted(known), n=1)
    return f"Did you mean {near[0]}?" if near else ""


def _plain_name(name: object) -> str:
    return str(name).replace("-", "_")
