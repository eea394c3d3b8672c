"""The ledgers of language models, when an evaluation is resumed: no call that was answered is made again.

The rows of finished episodes are copied into this run's ledgers, so that these are complete. The rows of an unfinished
episode are answered by the model's own worker, from the former ledger, when that episode is played again.
"""

import json
import os
from collections.abc import Iterable

from mosaic_sdk import ledger
from mosaic_sdk.files import write_text

REPLAY_VARIABLE = "MOSAIC_REPLAY_LEDGER"
FOLDER = "operators"

Episode = tuple[str, int]  # lane and index; a seed may be played several times


def former_ledgers(journal: str, operators: Iterable[str]) -> dict[str, str]:
    """By operator, the ledger in the folder of the run that wrote this journal."""
    run_dir = os.path.dirname(os.path.dirname(os.path.abspath(journal)))
    paths = {name: os.path.join(run_dir, FOLDER, name + ledger.SUFFIX) for name in operators}
    return {name: path for name, path in paths.items() if os.path.isfile(path)}


def copy_finished(ledgers: dict[str, str], run_dir: str, finished: set[Episode]) -> None:
    """Copy the rows of finished episodes into this run's ledgers."""
    for name, path in ledgers.items():
        rows = [row for row in ledger.read(path) if (row.get("lane"), row.get("episode_index")) in finished]
        lines = [json.dumps({**row, "replayed": True}, separators=(",", ":")) + "\n" for row in rows]
        write_text(os.path.join(run_dir, FOLDER, name + ledger.SUFFIX), "".join(lines), mode=0o600)
