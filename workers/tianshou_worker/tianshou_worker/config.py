"""The settings of a run, declared once."""

from typing import Any

from mosaic_sdk.config import ConfigError
from mosaic_sdk.library.settings import LibrarySettings, check_params, extra, nearest
from mosaic_sdk.values import checked

from tianshou_worker.algorithms import DEFAULTS, properties


class TianshouConfig(LibrarySettings):
    """One run."""

    n_envs: int = extra(1, "Environments that are stepped together.", minimum=1)
    env_kwargs: dict[str, Any] = extra({}, "Arguments of the environment, as in gymnasium.make.")
    report_every: int = extra(1000, "Least number of steps between two reports of metrics.", minimum=1)
    num_threads: int = extra(1, "CPU threads of torch.", minimum=1)
    eval_deterministic: bool = extra(True, "Take the most likely action instead of a sampled one.")

    def check_algorithm(self) -> None:
        if self.algo not in DEFAULTS:
            raise ConfigError(f"algo: there is no algorithm {self.algo!r}. {nearest(self.algo, DEFAULTS)}")
        known = properties(self.algo)
        check_params(self.algo, self.algo_params, known)
        for name, value in self.algo_params.items():
            checked(value, [known[name]["type"]], {}, f"extras.algo_params.{name}")

    @property
    def params(self) -> dict[str, Any]:
        """All hyperparameters."""
        return {**DEFAULTS[self.algo], **self.algo_params}
