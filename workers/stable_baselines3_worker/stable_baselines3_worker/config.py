"""The settings of a run, declared once. Hyperparameters (`extras.algo_params`) are the constructor's own."""

from collections.abc import Mapping
from typing import Any, ClassVar

from mosaic_sdk.config import ConfigError
from mosaic_sdk.settings import ALGO_PARAMS, EXTRAS, Settings, setting

from stable_baselines3_worker import algorithms

TRAIN, POLICY_EVAL, RESUME, INTERACTIVE = "train", "policy_eval", "resume_training", "interactive"
AUTO, NONE, ATARI, MINIGRID = "auto", "none", "atari", "minigrid"
DUMMY, SUBPROC = "dummy", "subproc"
MOST_SEED = 2**31 - 1


def _extra(default: Any, description: str, **more: Any) -> Any:
    return setting(default, description, place=EXTRAS, **more)


class StableBaselines3Config(Settings):
    """One run."""

    open_places: ClassVar[tuple[str, ...]] = (ALGO_PARAMS,)

    algo: str = setting("ppo", "Algorithm; those that begin with sbx_ are SBX's, in JAX.")
    env_id: str = setting("CartPole-v1", "Environment, as in gymnasium.make.")
    total_timesteps: int = setting(
        100_000, "Steps in total, summed over all environments. A resumed run counts from its first start.", minimum=1
    )
    seed: int = setting(1, "Random seed. The same seed gives the same training.", minimum=0, maximum=MOST_SEED)
    mode: str = _extra(TRAIN, "What to do.", choices=(TRAIN, POLICY_EVAL, RESUME, INTERACTIVE))
    policy_path: str = _extra(
        "", "Checkpoint to evaluate, resume or play: a path, the ID or name of a run, or last.", checkpoint=True
    )
    trust_checkpoint: bool = _extra(
        False, "Load a checkpoint from outside MOSAIC's run folders. It contains pickles, which can run any code."
    )
    n_envs: int = _extra(1, "Environments that are stepped together.", minimum=1)
    vec_env: str = _extra(
        DUMMY, "Step them one after the other in this process, or each in its own.", choices=(DUMMY, SUBPROC)
    )
    env_kwargs: dict[str, Any] = _extra({}, "Arguments of the environment, as in gymnasium.make.")
    env_wrapper: str = _extra(
        AUTO, "SB3's AtariWrapper, or MiniGrid's images. auto: by env_id.", choices=(AUTO, NONE, ATARI, MINIGRID)
    )
    frame_stack: int = _extra(1, "Observations that the policy sees at once (VecFrameStack).", minimum=1)
    normalize: bool = _extra(False, "Normalise observations and rewards (VecNormalize).")
    policy: str = _extra(AUTO, "Policy class of the algorithm, such as MlpPolicy. auto: by the observation space.")
    device: str = _extra(
        AUTO, "Where torch computes. auto: the GPU, if MOSAIC assigns one.", pattern="^(auto|cpu|cuda)$"
    )
    num_threads: int = _extra(1, "CPU threads of torch.", minimum=1)
    verbose: int = _extra(0, "1: the library also prints its tables to the log.", minimum=0, maximum=2)
    checkpoint_every: int = _extra(
        50_000, "Steps between two checkpoints; 0: only at the end and when the run is stopped.", minimum=0
    )
    keep_checkpoints: int = _extra(5, "Number of checkpoints to keep, the newest ones.", minimum=1)
    save_replay_buffer: bool = _extra(
        True, "Include the replay buffer in checkpoints. Without it, a resumed run starts with an empty one."
    )
    eval_every: int = _extra(
        0, "Steps between two evaluations during the training; the best policy is kept. 0: never.", minimum=0
    )
    eval_episodes: int = _extra(10, "Episodes of an evaluation.", minimum=1)
    eval_deterministic: bool = _extra(True, "Take the most likely action instead of a sampled one.")
    eval_capture_video: bool = _extra(False, "Record videos of an evaluation in videos/.")

    @property
    def algo_params(self) -> dict[str, Any]:
        return self.rest.get(ALGO_PARAMS, {})

    def check(self) -> None:
        if not self.policy_path or "algo" in self.given:  # else the checkpoint determines the algorithm
            algorithms.check_params(self.algo, self.algo_params)
        if self.mode in (POLICY_EVAL, RESUME) and not self.policy_path:
            raise ConfigError(f"extras.policy_path is missing: mode {self.mode} needs the checkpoint to load.")
        if self.mode == TRAIN and self.policy_path:
            raise ConfigError(
                f"extras.policy_path: mode {TRAIN} starts from scratch and loads no checkpoint. "
                f"Set mode={RESUME} to continue it or mode={POLICY_EVAL} to evaluate it, or remove policy_path."
            )

    def filled_from(self, saved: Mapping[str, Any]) -> "StableBaselines3Config":
        """This config with what it leaves out taken from a checkpoint's settings."""
        document = {**saved, "run_id": self.run_id}
        extras = dict(document.get("extras", {}))
        extras["algo_params"] = {**extras.get("algo_params", {}), **self.algo_params}
        extras.update(mode=self.mode, policy_path=self.policy_path)
        whole = type(self).from_dict({**document, "extras": extras})
        return whole.replace(
            **{name: getattr(self, name) for name in self.given if name not in ("run_id", "worker_id")}
        )
