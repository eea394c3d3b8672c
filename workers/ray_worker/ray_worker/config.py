"""The settings of a run, declared once. Training parameters (`extras.algo_params`) are those of RLlib's algorithm."""

from typing import Any

from mosaic_sdk.library.settings import LibrarySettings, extra
from mosaic_sdk.settings import setting

from ray_worker import algorithms

SHARED, PER_AGENT = "shared", "per_agent"
AUTO, ALWAYS = "auto", "always"
PARALLEL, AEC = "parallel", "aec"


class RayWorkerConfig(LibrarySettings):
    """One run."""

    algo: str = setting("ppo", "Algorithm of RLlib.")
    env_id: str = setting(
        "CartPole-v1", "Environment: an ID of Gymnasium, mpe2/simple_spread_v3 or pettingzoo/tictactoe_v3."
    )
    trust_checkpoint: bool = extra(
        False, "Load a checkpoint from outside MOSAIC's run folders. It contains pickles, which can run any code."
    )
    env_kwargs: dict[str, Any] = extra({}, "Arguments of the environment.")
    env_api: str = extra(
        AUTO,
        "PettingZoo: agents act at the same time (parallel) or one after the other (aec). auto: parallel if possible.",
        choices=(AUTO, PARALLEL, AEC),
    )
    policies: str = extra(
        SHARED, "Multi-agent: one policy for all agents, or one for each.", choices=(SHARED, PER_AGENT)
    )
    model_config: dict[str, Any] = extra({}, "Settings of the network (RLlib's DefaultModelConfig).")
    num_env_runners: int = extra(0, "Processes that step environments; 0: the training's own process.", minimum=0)
    num_envs_per_env_runner: int = extra(1, "Environments that each of them steps together.", minimum=1)
    num_learners: int = extra(0, "Processes that learn; 0: the training's own process.", minimum=0)
    num_gpus_per_learner: int = extra(
        0, "GPUs of each learner. MOSAIC must assign them to the run (--gpus 1).", minimum=0
    )
    ray_instance: str = extra(
        AUTO, "Start a Ray instance only if there are such processes, or always.", choices=(AUTO, ALWAYS)
    )
    ray_start_attempts: int = extra(5, "How often the start of the Ray instance is tried.", minimum=1)
    num_threads: int = extra(1, "CPU threads of torch.", minimum=1)
    report_every: int = extra(1000, "Least number of steps between two reports of metrics.", minimum=1)
    stop_on_nan: bool = extra(True, "Fail the run when a loss becomes NaN or infinite.")
    eval_deterministic: bool = extra(True, "Take the most likely action instead of a sampled one.")
    eval_max_episode_steps: int = extra(
        0, "Steps after which an evaluation's episode is cut; 0: the environment's own limit.", minimum=0
    )

    @property
    def needs_instance(self) -> bool:
        """Whether the training starts a Ray instance."""
        return self.ray_instance == ALWAYS or bool(self.num_env_runners or self.num_learners)

    def check_algorithm(self) -> None:
        algorithms.check(self.algo, self.algo_params, self.model_config)
