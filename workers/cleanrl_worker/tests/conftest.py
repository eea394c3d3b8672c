"""The tests run in the worker's own environment. In any other one (the platform's) none of them is collected."""

import importlib.util
import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest

# The networks are small: more threads only wait for each other.
os.environ["OMP_NUM_THREADS"] = "1"
collect_ignore_glob = [] if importlib.util.find_spec("torch") else ["test_*.py"]

# On a busy machine importing torch takes minutes.
LIMIT_S = 600


@pytest.fixture(autouse=True)
def same_make(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker may replace gymnasium.make, because it has a process of its own; these tests share theirs."""
    import gymnasium

    monkeypatch.setattr(gymnasium, "make", gymnasium.make)


@pytest.fixture
def launch() -> Iterator[Callable[..., Any]]:
    """Run the worker to its end as the daemon would; every trial is cleaned up afterwards."""
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
