"""What a search reports: a line for each trial that is over, and curves over the trials.

    {"event": "trial", "payload": {"number": 3, "state": "PRUNED", "value": 8.1, "settings": {…}, "runs": ["01…"],
                                   "reason": "pruned at step 500: below the median"}}

`mosaic search show` reads these lines. A resumed search prints those of the earlier one again.
"""

from typing import Any

from mosaic_sdk import emit
from optuna.trial import FrozenTrial

TRIAL = "trial"
RUNS, REASON = "runs", "reason"  # what the storage keeps of a trial besides Optuna's own


def trial_over(trial: FrozenTrial) -> None:
    emit.stdout().lifecycle(TRIAL, describe(trial))


def describe(trial: FrozenTrial) -> dict[str, Any]:
    return {
        "number": trial.number,
        "state": trial.state.name,
        "value": trial.value,
        "settings": trial.params,
        "runs": trial.user_attrs.get(RUNS, []),
        "reason": trial.user_attrs.get(REASON, ""),
    }


def progress(done: int, value: float | None, best: float | None) -> None:
    """Points of the search's own curves; `done`: trials that are over."""
    values = {"search/trials": float(done), "search/value": value, "search/best": best}
    emit.metrics({name: number for name, number in values.items() if number is not None}, step=done)
