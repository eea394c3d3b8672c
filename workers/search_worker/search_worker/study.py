"""The study: Optuna's storage in the run's folder, its sampler and its pruner."""

import os
import warnings
from typing import Any

import optuna
from mosaic_sdk.config import ConfigError
from mosaic_sdk.files import write_bytes
from mosaic_sdk.names import CHECKPOINTS, WorkerEnv
from mosaic_sdk.search_space import Dimension
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import Trial, TrialState

from search_worker.config import SearchConfig

FILE = "study.log"  # Optuna's journal: optuna-dashboard …/checkpoints/study.log
DONE = (TrialState.COMPLETE, TrialState.PRUNED)

_SAMPLERS: dict[str, Any] = {
    "tpe": optuna.samplers.TPESampler,
    "cmaes": optuna.samplers.CmaEsSampler,
    "random": optuna.samplers.RandomSampler,
}


def study_file() -> str:
    folder = os.environ.get(WorkerEnv.CHECKPOINT_DIR) or os.path.join(
        os.environ.get(WorkerEnv.RUN_DIR, "."), CHECKPOINTS
    )
    os.makedirs(folder, exist_ok=True)
    return os.path.join(folder, FILE)


def open_study(config: SearchConfig, path: str) -> optuna.Study:
    """The study in `path`. A resumed search begins with a copy of the earlier one's."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
    if config.resume_from and not os.path.exists(path):
        _copy(config.resume_from, path)
    # A journal, not SQLite: Optuna takes seconds to create a database, and milliseconds for this file.
    storage = JournalStorage(JournalFileBackend(path))
    study = optuna.create_study(
        storage=storage, study_name=config.experiment, direction=_direction(config), load_if_exists=True
    )
    # Another seed after a resume: the same one would choose the first settings again.
    study.sampler = _sampler(config, len(study.get_trials(deepcopy=False)))
    return study


def _direction(config: SearchConfig) -> optuna.study.StudyDirection:
    return optuna.study.StudyDirection[config.direction.upper()]


def _copy(source: str, path: str) -> None:
    """Without the last line if it is incomplete: the earlier driver was killed while it wrote it."""
    try:
        with open(source, "rb") as file:
            data = file.read()
    except OSError as error:
        raise ConfigError(f"resume_from: {source} cannot be read ({error.strerror}).") from None
    write_bytes(path, data[: data.rfind(b"\n") + 1])


def _sampler(config: SearchConfig, earlier: int) -> Any:
    seed = None if config.seed is None else config.seed + earlier
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _made("sampler", _SAMPLERS[config.sampler], {"seed": seed, **config.sampler_options})


def make_pruner(config: SearchConfig, report_every: int, total: int) -> Any:
    """`total`: steps of one trial; 0: unknown."""
    every = max(report_every, 1)
    defaults: dict[str, tuple[Any, dict[str, Any]]] = {
        "none": (optuna.pruners.NopPruner, {}),
        "median": (optuna.pruners.MedianPruner, {}),
        "asha": (optuna.pruners.SuccessiveHalvingPruner, {"min_resource": every}),
        "hyperband": (
            optuna.pruners.HyperbandPruner,
            {"min_resource": every, "max_resource": max(total, every + 1) if total else "auto"},
        ),
    }
    kind, options = defaults[config.pruner]
    return _made("pruner", kind, {**options, **config.pruner_options})


def _made(what: str, kind: Any, options: dict[str, Any]) -> Any:
    try:
        return kind(**options)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{what}_options: {kind.__name__} does not accept them: {error}.") from None


def suggest(trial: Trial, dimensions: dict[str, Dimension]) -> dict[str, Any]:
    """The settings of a trial; those that its storage has already stay as they are."""
    return {name: _suggested(trial, name, dimension) for name, dimension in dimensions.items()}


def _suggested(trial: Trial, name: str, dimension: Dimension) -> Any:
    if dimension.kind == "choice":
        return trial.suggest_categorical(name, dimension.choices)
    is_log = dimension.kind.startswith("log")
    if dimension.is_integer:
        return trial.suggest_int(
            name, int(dimension.low), int(dimension.high), step=int(dimension.step or 1), log=is_log
        )
    return trial.suggest_float(name, dimension.low, dimension.high, step=dimension.step, log=is_log)


def importances(study: optuna.Study) -> dict[str, float]:
    """How much each setting matters, if that can be told from these trials."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return dict(optuna.importance.get_param_importances(study))
    except (ValueError, RuntimeError, ImportError):
        return {}
