"""The search worker's settings. `mosaic search` writes them; docs/howto/search.md describes its options."""

from typing import Any

from mosaic_sdk.config import ConfigError
from mosaic_sdk.search_space import Dimension, parse_dimension
from mosaic_sdk.settings import Settings, setting

SAMPLERS = ("tpe", "cmaes", "random")
PRUNERS = ("none", "median", "asha", "hyperband")
CURVES = {"return": "episode/return", "length": "episode/length", "eval": "eval/return"}  # short names
REPORTS = 20  # of one trial, if the number of its steps is known


class SearchConfig(Settings):
    """Which settings of which worker are searched, for the best value of which curve."""

    experiment: str = setting("", "The experiment that the trials belong to; its driver has it too.")
    worker: dict[str, Any] = setting({}, "The worker of the trials: module, name, variant, and its fixed config.")
    space: dict[str, Any] = setting({}, "The settings to search, such as {'learning_rate': 'log:1e-5:1e-2'}.")
    # Not `keys`: values under a name with "key" are masked where settings are shown.
    places: dict[str, Any] = setting({}, "Where the worker's config has a setting of the space, if not on top.")
    trials: int = setting(20, "Number of trials to complete; failed ones are replaced.", minimum=1)
    metric: str = setting("return", "The curve to optimise: return, length, eval, or the name of a metric.")
    direction: str = setting("maximize", "What is better.", choices=("maximize", "minimize"))
    sampler: str = setting("tpe", "How Optuna chooses settings.", choices=SAMPLERS)
    sampler_options: dict[str, Any] = setting({}, "Options of Optuna's sampler, such as {'n_startup_trials': 5}.")
    pruner: str = setting("none", "How Optuna ends hopeless trials early.", choices=PRUNERS)
    pruner_options: dict[str, Any] = setting({}, "Options of Optuna's pruner.")
    report_every: int = setting(0, "Steps between two looks at a trial; 0: a twentieth of its steps.", minimum=0)
    max_parallel: int = setting(1, "Runs of this search that may be live at the same time.", minimum=1)
    seeds: list[int] = setting([], "Each trial is run with all of these seeds and has their mean value.")
    max_failures: int = setting(5, "Give up after this number of failed trials in a row.", minimum=1)
    payload: dict[str, Any] = setting({}, "Resources and limits of each trial, as in a trainer config.")
    tags: list[str] = setting([], "Tags of each trial.")
    seed: int | None = setting(None, "Seed of the sampler.", minimum=0)
    resume_from: str = setting("", "The study of a search to continue: a file, or a run.", checkpoint=True)
    heartbeat_s: float = setting(30.0, "Seconds between heartbeats.", exclusive_minimum=0)

    @property
    def dimensions(self) -> dict[str, Dimension]:
        return {name: parse_dimension(name, spec) for name, spec in self.space.items()}

    @property
    def curve(self) -> str:
        return CURVES.get(self.metric, self.metric)

    def check(self) -> None:
        if not self.experiment:
            raise ConfigError("experiment is missing. Start a search with: mosaic search WORKER --space KEY=…")
        if not self.worker.get("module"):
            raise ConfigError("worker.module is missing: the worker of the trials.")
        if not self.space:
            raise ConfigError("space is empty: nothing to search.")
        try:
            _ = self.dimensions
        except ValueError as error:
            raise ConfigError(f"space: {error}") from None
