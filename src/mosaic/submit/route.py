"""Chooses the area of a run's folder: runs, evals or custom_scripts."""

from collections.abc import Mapping

from mosaic.model.run import WorkerSpec


def area_of(worker: WorkerSpec) -> str:
    """`evals` for evaluations, `custom_scripts` for scripts, `runs` for everything else."""
    if _is_evaluation(worker):
        return "evals"
    return "custom_scripts" if worker.script else "runs"


def _is_evaluation(worker: WorkerSpec) -> bool:
    extras = worker.config.get("extras")
    extras = extras if isinstance(extras, Mapping) else {}
    # XuanCe has test_mode at the top level; other configs have it in extras.
    is_test = worker.config.get("test_mode") is True or extras.get("test_mode") is True
    return is_test or extras.get("mode") == "policy_eval"
