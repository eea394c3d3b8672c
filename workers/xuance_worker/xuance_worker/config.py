"""The worker's settings. Hyperparameters are in extras.algo_params; their names are those of XuanCe's files."""

from mosaic_sdk.config import ConfigError
from mosaic_sdk.library.settings import RESUME, TRAIN, LibrarySettings, extra
from mosaic_sdk.settings import setting

from xuance_worker import presets
from xuance_worker.algorithms import ALGORITHMS, UNAVAILABLE
from xuance_worker.families import FAMILIES, MPE, family_of

AUTO, CPU, CUDA = "auto", "cpu", "cuda"


class XuanceConfig(LibrarySettings):
    """What to train, evaluate or play."""

    algo: str = setting("ppo", "Algorithm, by XuanCe's name.")
    env_id: str = setting("CartPole-v1", "Environment: an id of Gymnasium, or simple_spread_v3 and others of MPE.")
    total_timesteps: int = setting(
        100_000, "Environment steps in total, of all parallel environments.", minimum=1, aliases=("running_steps",)
    )
    env_family: str = setting(
        "", "Family of the environment; the default follows from env_id.", choices=("", *FAMILIES)
    )
    parallels: int | None = setting(
        None, "Number of parallel environments; the default is XuanCe's.", minimum=1, record_default=False
    )
    device: str = extra(AUTO, "auto: the GPU that the run was given, otherwise the CPU.", choices=(AUTO, CPU, CUDA))
    checkpoint_every: int = extra(0, "Environment steps between checkpoints; 0: only at the end.", minimum=0)
    keep_checkpoints: int = extra(3, "Checkpoints to keep, newest first.", minimum=1)

    def check_algorithm(self) -> None:
        if self.algo in UNAVAILABLE:
            raise ConfigError(f"algo: {self.algo} {UNAVAILABLE[self.algo]}.")
        if self.algo not in ALGORITHMS:
            raise ConfigError(f"algo: there is no {self.algo!r}. Choose from: {', '.join(ALGORITHMS)}.")
        self._check_family()
        presets.checked(self.algo, self.algo_params)

    def _check_family(self) -> None:
        takes_many = ALGORITHMS[self.algo].is_multi_agent
        if self.mode in (TRAIN, RESUME) and takes_many != (self.family == MPE):
            wanted = "of MPE, such as simple_spread_v3" if takes_many else "with one agent, such as CartPole-v1"
            raise ConfigError(f"env_id: {self.algo} needs an environment {wanted}, not {self.env_id}.")

    @property
    def family(self) -> str:
        return self.env_family or family_of(self.env_id)
