"""The settings of a run, declared once. Training parameters (`extras.algo_params`) are those of RLlib's algorithm."""

from collections.abc import Mapping
from typing import Any, ClassVar

from mosaic_sdk.config import ConfigError
from mosaic_sdk.settings import ALGO_PARAMS, EXTRAS, Settings, setting

from ray_worker import algorithms

TRAIN, POLICY_EVAL, RESUME, INTERACTIVE = "train", "policy_eval", "resume_training", "interactive"
SHARED, PER_AGENT = "shared", "per_agent"
AUTO, ALWAYS = "auto", "always"
PARALLEL, AEC = "parallel", "aec"
MOST_SEED = 2**31 - 1


def _extra(default: Any, description: str, **more: Any) -> Any:
    return setting(default, description, place=EXTRAS, **more)


class RayWorkerConfig(Settings):
    """One run."""

    open_places: ClassVar[tuple[str, ...]] = (ALGO_PARAMS,)

    algo: str = setting("ppo", "Algorithm of RLlib.")
    env_id: str = setting(
        "CartPole-v1", "Environment: an ID of Gymnasium, mpe2/simple_spread_v3 or pettingzoo/tictactoe_v3."
    )
    total_timesteps: int = setting(
        100_000, "Environment steps in total. A resumed run counts from its first start.", minimum=1
    )
    seed: int = setting(1, "Random seed. The same seed gives the same training.", minimum=0, maximum=MOST_SEED)
    mode: str = _extra(TRAIN, "What to do.", choices=(TRAIN, POLICY_EVAL, RESUME, INTERACTIVE))
    test_mode: bool = _extra(False, "The same as mode=policy_eval, if mode is not set.")
    policy_path: str = _extra(
        "",
        "Checkpoint to evaluate, resume or play: a path, the ID or name of a run, or last.",
        aliases=("checkpoint_path",),
        checkpoint=True,
    )
    trust_checkpoint: bool = _extra(
        False, "Load a checkpoint from outside MOSAIC's run folders. It contains pickles, which can run any code."
    )
    env_kwargs: dict[str, Any] = _extra({}, "Arguments of the environment.")
    env_api: str = _extra(
        AUTO,
        "PettingZoo: agents act at the same time (parallel) or one after the other (aec). auto: parallel if possible.",
        choices=(AUTO, PARALLEL, AEC),
    )
    policies: str = _extra(
        SHARED, "Multi-agent: one policy for all agents, or one for each.", choices=(SHARED, PER_AGENT)
    )
    model_config: dict[str, Any] = _extra({}, "Settings of the network (RLlib's DefaultModelConfig).")
    num_env_runners: int = _extra(0, "Processes that step environments; 0: the training's own process.", minimum=0)
    num_envs_per_env_runner: int = _extra(1, "Environments that each of them steps together.", minimum=1)
    num_learners: int = _extra(0, "Processes that learn; 0: the training's own process.", minimum=0)
    num_gpus_per_learner: int = _extra(
        0, "GPUs of each learner. MOSAIC must assign them to the run (--gpus 1).", minimum=0
    )
    ray_instance: str = _extra(
        AUTO, "Start a Ray instance only if there are such processes, or always.", choices=(AUTO, ALWAYS)
    )
    ray_start_attempts: int = _extra(5, "How often the start of the Ray instance is tried.", minimum=1)
    num_threads: int = _extra(1, "CPU threads of torch.", minimum=1)
    report_every: int = _extra(1000, "Least number of steps between two reports of metrics.", minimum=1)
    checkpoint_every: int = _extra(
        50_000, "Steps between two checkpoints; 0: only at the end and when the run is stopped.", minimum=0
    )
    keep_checkpoints: int = _extra(5, "Number of checkpoints to keep, the newest ones.", minimum=1)
    stop_on_nan: bool = _extra(True, "Fail the run when a loss becomes NaN or infinite.")
    eval_episodes: int = _extra(10, "Episodes of an evaluation.", minimum=1)
    eval_deterministic: bool = _extra(True, "Take the most likely action instead of a sampled one.")
    eval_max_episode_steps: int = _extra(
        0, "Steps after which an evaluation's episode is cut; 0: the environment's own limit.", minimum=0
    )

    @classmethod
    def prepare(cls, values: dict[str, Any]) -> dict[str, Any]:
        if values.get("test_mode") is True:
            values.setdefault("mode", POLICY_EVAL)
        return values

    @property
    def algo_params(self) -> dict[str, Any]:
        return self.rest.get(ALGO_PARAMS, {})

    @property
    def needs_instance(self) -> bool:
        """Whether the training starts a Ray instance."""
        return self.ray_instance == ALWAYS or bool(self.num_env_runners or self.num_learners)

    def check(self) -> None:
        if "algo" in self.given or not self.policy_path:  # otherwise the checkpoint determines it: see filled_from
            algorithms.check(self.algo, self.algo_params, self.model_config)
        if self.mode in (POLICY_EVAL, RESUME) and not self.policy_path:
            raise ConfigError(f"extras.policy_path is missing: mode {self.mode} needs the checkpoint to load.")
        if self.mode == TRAIN and self.policy_path:
            raise ConfigError(
                f"extras.policy_path: mode {TRAIN} starts from scratch and loads no checkpoint. "
                f"Set mode={RESUME} to continue it or mode={POLICY_EVAL} to evaluate it, or remove policy_path."
            )

    def filled_from(self, saved: Mapping[str, Any]) -> "RayWorkerConfig":
        """This config with what it leaves out taken from a checkpoint's settings."""
        extras = dict(saved.get("extras", {}))
        extras["algo_params"] = {**extras.get("algo_params", {}), **self.algo_params}
        extras.update(mode=self.mode, policy_path=self.policy_path, test_mode=False)
        whole = type(self).from_dict({**saved, "run_id": self.run_id, "extras": extras})
        own = {name: getattr(self, name) for name in self.given if name not in ("run_id", "worker_id", "test_mode")}
        return whole.replace(algo=own.pop("algo", whole.algo), **own)
