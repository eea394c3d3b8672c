"""Chooses the area of a run's folder: runs, evals or custom_scripts."""

from collections.abc import Mapping

from mosaic.model.run import WorkerSpec
from mosaic.model.rundir import EVALS

EVAL_PACKAGE = "eval_worker"


def area_of(worker: WorkerSpec, has_operators: bool = False) -> str:
    """`evals` for evaluations, `custom_scripts` for scripts, `runs` for everything else."""
    if plays_operators(worker.module, has_operators) or _is_evaluation(worker):
        return EVALS
    return "custom_scripts" if worker.script else "runs"


def plays_operators(module: str, has_operators: bool) -> bool:
    """Whether a run evaluates operators, as opposed to a worker that evaluates its own checkpoint."""
    return has_operators or module.partition(".")[0] == EVAL_PACKAGE


def _is_evaluation(worker: WorkerSpec) -> bool:
    extras = worker.config.get("extras")
    extras = extras if isinstance(extras, Mapping) else {}
    # XuanCe has test_mode at the top level; other configs have it in extras.
    is_test = worker.config.get("test_mode") is True or extras.get("test_mode") is True
    return is_test or extras.get("mode") == "policy_eval"
