"""The ledgers of the language models that took part in a run."""

import os
from typing import Any, Dict

from mosaic_sdk.ledger import SUFFIX, totals

FOLDER = "operators"


def ledger_paths(run_dir: "str | os.PathLike[str]") -> Dict[str, str]:
    """{operator: path of its ledger}; empty without a language model."""
    folder = os.path.join(os.fspath(run_dir), FOLDER)
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    return {name[: -len(SUFFIX)]: os.path.join(folder, name) for name in names if name.endswith(SUFFIX)}


def ledger_totals(run_dir: "str | os.PathLike[str]") -> Dict[str, Dict[str, Any]]:
    """What each language model has used, as in mosaic_sdk.ledger.totals."""
    return {name: totals(path) for name, path in ledger_paths(run_dir).items()}
