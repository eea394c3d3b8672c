"""Which of the three areas a run's folder goes to."""

from collections.abc import Mapping

from mosaic.model.run import WorkerSpec


def area_of(worker: WorkerSpec) -> str:
    """Evaluations to `evals`, scripts to `custom_scripts`, everything else to `runs`."""
    if _is_evaluation(worker):
        return "evals"
    return "custom_scripts" if worker.script else "runs"


def _is_evaluation(worker: WorkerSpec) -> bool:
    extras = worker.config.get("extras")
    extras = extras if isinstance(extras, Mapping) else {}
    # XuanCe's test_mode stands on top, in strangers' configs among the extras.
    is_test = worker.config.get("test_mode") is True or extras.get("test_mode") is True
    return is_test or extras.get("mode") == "policy_eval"
