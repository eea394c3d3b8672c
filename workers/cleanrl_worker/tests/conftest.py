"""The worker's tests run in the worker's own environment; elsewhere (the platform's) none of them is collected."""

import importlib.util
import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest

# Small networks: more threads only wait for each other.
os.environ["OMP_NUM_THREADS"] = "1"
collect_ignore_glob = [] if importlib.util.find_spec("torch") else ["test_*.py"]

# A machine with much else to do takes minutes to import torch.
LIMIT_S = 600


@pytest.fixture
def launch() -> Iterator[Callable[..., Any]]:
    """Run the worker as the daemon would, to its end; every trial is swept up afterwards."""
    from mosaic_sdk.lab.trial import Trial

    trials: list[Any] = []

    def run(config: dict[str, Any], *arguments: str, wait: bool = True, **env: str) -> Any:
        trial = Trial("cleanrl_worker.cli", config, env=env, arguments=arguments)
        trial.run_dir = trial.ground.run
        trials.append(trial.__enter__())
        if wait:
            trial.run(LIMIT_S)
        else:
            trial.start()
        return trial

    yield run
    for trial in reversed(trials):
        trial.__exit__()
