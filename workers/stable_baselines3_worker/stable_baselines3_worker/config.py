"""The settings of a run, declared once. Hyperparameters (`extras.algo_params`) are the constructor's own."""

from typing import Any

from mosaic_sdk.library.settings import LibrarySettings, check_params, extra
from mosaic_sdk.settings import setting

from stable_baselines3_worker import algorithms

AUTO, NONE, ATARI, MINIGRID = "auto", "none", "atari", "minigrid"
DUMMY, SUBPROC = "dummy", "subproc"


class StableBaselines3Config(LibrarySettings):
    """One run."""

    algo: str = setting("ppo", "Algorithm; those that begin with sbx_ are SBX's, in JAX.")
    trust_checkpoint: bool = extra(
        False, "Load a checkpoint from outside MOSAIC's run folders. It contains pickles, which can run any code."
    )
    n_envs: int = extra(1, "Environments that are stepped together.", minimum=1)
    vec_env: str = extra(
        DUMMY, "Step them one after the other in this process, or each in its own.", choices=(DUMMY, SUBPROC)
    )
    env_kwargs: dict[str, Any] = extra({}, "Arguments of the environment, as in gymnasium.make.")
    env_wrapper: str = extra(
        AUTO, "SB3's AtariWrapper, or MiniGrid's images. auto: by env_id.", choices=(AUTO, NONE, ATARI, MINIGRID)
    )
    frame_stack: int = extra(1, "Observations that the policy sees at once (VecFrameStack).", minimum=1)
    normalize: bool = extra(False, "Normalise observations and rewards (VecNormalize).")
    policy: str = extra(AUTO, "Policy class of the algorithm, such as MlpPolicy. auto: by the observation space.")
    device: str = extra(
        AUTO, "Where torch computes. auto: the GPU, if MOSAIC assigns one.", pattern="^(auto|cpu|cuda)$"
    )
    num_threads: int = extra(1, "CPU threads of torch.", minimum=1)
    verbose: int = extra(0, "1: the library also prints its tables to the log.", minimum=0, maximum=2)
    save_replay_buffer: bool = extra(
        True, "Include the replay buffer in checkpoints. Without it, a resumed run starts with an empty one."
    )
    eval_every: int = extra(
        0, "Steps between two evaluations during the training; the best policy is kept. 0: never.", minimum=0
    )
    eval_deterministic: bool = extra(True, "Take the most likely action instead of a sampled one.")
    eval_capture_video: bool = extra(False, "Record videos of an evaluation in videos/.")

    def check_algorithm(self) -> None:
        check_params(self.algo, self.algo_params, algorithms.hyperparameters(algorithms.find(self.algo).name))
