"""A worker's own tests: the conformance lab, and the layout of its folder.

    def test_the_worker_keeps_the_contract():
        assert_conforms("acme_worker")

What the lab runs comes from the worker's schema (`x-mosaic-lab`), or from `lab`: `short` ends in seconds, `long` runs
until it is stopped, `fails` raises an exception, `interactive` and `agent` claim the two halves of interactive mode.
A worker that only plays as an operator has `refuses`, the config of a run that it refuses, in place of the first three.
`mosaic worker test` is the same on the command line.
"""

import os
import sys
from typing import Any, Callable, List, Mapping, Optional, Sequence

from mosaic_sdk.lab.bench import Bench
from mosaic_sdk.lab.scorecard import FAILED, OK, SKIPPED, Check, ScoreCard

__all__ = [
    "FAILED",
    "OK",
    "SKIPPED",
    "Check",
    "ScoreCard",
    "assert_conforms",
    "assert_layout",
    "check_worker",
    "missing_files",
]

# What every worker has beside its package, and the modules in the package.
FILES = ("pyproject.toml", "README.md", os.path.join("tests", "test_standardization.py"))
MODULES = ("__init__", "cli", "config", "runtime", "telemetry", "analytics", "fastlane")


def check_worker(
    module: str,
    *,
    entry_point: str = "",
    lab: Optional[Mapping[str, Mapping[str, Any]]] = None,
    python: str = sys.executable,
    env: Optional[Mapping[str, str]] = None,
    grace_s: float = 10.0,
    limit_s: float = 120.0,
    warm: Sequence[str] = (),
    report: Callable[[Check], None] = lambda check: None,
) -> ScoreCard:
    """Run a worker against the contract. `report` is called with each check as it ends; `lab` adds to the schema's.

    The worker gets an empty HOME, so that files it writes there are found; name another in `env` if it needs one.
    `warm`: libraries that take long to import, not the worker's own modules. They are imported once, and the worker's
    runs are forks of that process. Without it every run starts by itself, as under the daemon.
    """
    card = ScoreCard(module)
    for check in Bench(module, entry_point, lab or {}, python, env or {}, grace_s, limit_s, warm).checks():
        card.checks.append(check)
        report(check)
    return card


def assert_conforms(package: str, **more: Any) -> ScoreCard:
    """AssertionError with the score card, unless the worker in this package passes. `more`: as for check_worker."""
    card = check_worker(f"{package}.cli", entry_point=f"{package}:get_worker_metadata", **more)
    assert card.is_clean, str(card)
    return card


def assert_layout(folder: "str | os.PathLike[str]") -> None:
    """AssertionError that lists the files that a worker's folder lacks; the layout is in docs/howto/new-worker.md."""
    missing = missing_files(folder)
    assert not missing, f"{os.fspath(folder)} lacks {', '.join(missing)}"


def missing_files(folder: "str | os.PathLike[str]") -> List[str]:
    """What a worker's folder lacks: files beside the package, modules in it, a lock file, the entry point."""
    root = os.path.abspath(folder)
    package = os.path.basename(root)
    wanted = [*FILES, *(os.path.join(package, f"{name}.py") for name in MODULES)]
    missing = [name for name in wanted if not os.path.isfile(os.path.join(root, name))]
    if not _lock_files(root):
        missing.append(os.path.join("requirements", "*.txt"))
    if "pyproject.toml" not in missing and not _has_entry_point(root, package):
        missing.append(f"the entry point {package}:get_worker_metadata in pyproject.toml")
    return missing


def _lock_files(root: str) -> List[str]:
    folder = os.path.join(root, "requirements")
    return [name for name in os.listdir(folder) if name.endswith((".txt", ".in"))] if os.path.isdir(folder) else []


def _has_entry_point(root: str, package: str) -> bool:
    with open(os.path.join(root, "pyproject.toml"), encoding="utf-8") as file:
        return f'"{package}:get_worker_metadata"' in file.read()
