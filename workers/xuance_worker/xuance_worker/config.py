"""The worker's settings. Hyperparameters are in extras.algo_params; their names are those of XuanCe's files."""

import os
from typing import Any

from mosaic_sdk.config import ConfigError
from mosaic_sdk.settings import ALGO_PARAMS, Settings, setting

from xuance_worker import presets
from xuance_worker.algorithms import ALGORITHMS, UNAVAILABLE
from xuance_worker.families import FAMILIES, MPE, family_of

TRAIN, RESUME, POLICY_EVAL, INTERACTIVE = "train", "resume_training", "policy_eval", "interactive"
MODES = (TRAIN, RESUME, POLICY_EVAL, INTERACTIVE)
AUTO, CPU, CUDA = "auto", "cpu", "cuda"
DEFAULT_SEED = 1  # XuanCe's own


class XuanceConfig(Settings):
    """What to train, evaluate or play."""

    open_places = (ALGO_PARAMS,)

    algo: str = setting("ppo", "Algorithm, by XuanCe's name.")
    env_id: str = setting("CartPole-v1", "Environment: an id of Gymnasium, or simple_spread_v3 and others of MPE.")
    total_timesteps: int = setting(
        100_000, "Environment steps in total, of all parallel environments.", minimum=1, aliases=("running_steps",)
    )
    seed: int | None = setting(
        None, "Seed; the default is 1.", minimum=0, maximum=2**31 - 1, schema_default=DEFAULT_SEED
    )
    env_family: str = setting(
        "", "Family of the environment; the default follows from env_id.", choices=("", *FAMILIES)
    )
    parallels: int | None = setting(
        None, "Number of parallel environments; the default is XuanCe's.", minimum=1, record_default=False
    )
    device: str = setting(
        AUTO, "auto: the GPU that the run was given, otherwise the CPU.", choices=(AUTO, CPU, CUDA), place="extras"
    )
    mode: str = setting(TRAIN, "What to do; all but train need policy_path.", choices=MODES, place="extras")
    test_mode: bool = setting(False, "The same as mode=policy_eval.", place="extras")
    policy_path: str = setting(
        "", "Checkpoint to resume, evaluate or play: a file, or a run.", checkpoint=True, place="extras"
    )
    checkpoint_every: int = setting(
        0, "Environment steps between checkpoints; 0: only at the end.", minimum=0, place="extras"
    )
    keep_checkpoints: int = setting(3, "Checkpoints to keep, newest first.", minimum=1, place="extras")
    eval_episodes: int = setting(10, "Episodes of an evaluation.", minimum=1, place="extras")

    @classmethod
    def prepare(cls, values: dict[str, Any]) -> dict[str, Any]:
        return {**values, "mode": values.get("mode", POLICY_EVAL)} if values.get("test_mode") is True else values

    def check(self) -> None:
        if self.algo in UNAVAILABLE:
            raise ConfigError(f"algo: {self.algo} {UNAVAILABLE[self.algo]}.")
        if self.algo not in ALGORITHMS:
            raise ConfigError(f"algo: there is no {self.algo!r}. Choose from: {', '.join(ALGORITHMS)}.")
        if self.mode == TRAIN and self.policy_path:
            raise ConfigError(
                f"extras.policy_path: mode {TRAIN} starts from scratch. Set mode={RESUME} to continue it, "
                f"or mode={POLICY_EVAL} to evaluate it."
            )
        if self.mode in (RESUME, POLICY_EVAL) and not self.policy_path:
            raise ConfigError(f"extras.policy_path is missing: mode {self.mode} needs the checkpoint to load.")
        self._check_family()
        presets.checked(self.algo, self.params)

    def _check_family(self) -> None:
        takes_many = ALGORITHMS[self.algo].is_multi_agent
        if self.mode in (TRAIN, RESUME) and takes_many != (self.family == MPE):
            wanted = "of MPE, such as simple_spread_v3" if takes_many else "with one agent, such as CartPole-v1"
            raise ConfigError(f"env_id: {self.algo} needs an environment {wanted}, not {self.env_id}.")

    @property
    def params(self) -> dict[str, Any]:
        return self.rest.get(ALGO_PARAMS, {})

    @property
    def family(self) -> str:
        return self.env_family or family_of(self.env_id)

    @property
    def first_seed(self) -> int:
        return DEFAULT_SEED if self.seed is None else self.seed

    @property
    def run_dir(self) -> str:
        from mosaic_sdk.names import WorkerEnv

        return os.path.abspath(os.environ.get(WorkerEnv.RUN_DIR) or ".")
