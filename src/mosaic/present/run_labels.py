"""Names of runs that can be told apart."""

from collections import Counter
from collections.abc import Mapping

from mosaic.present.text import printable

TAIL = 4  # characters; the beginnings of ids are alike for runs of the same minute


def distinct_labels(names: Mapping[str, str]) -> dict[str, str]:
    """A label per run id: its name, with the end of the id where several runs have that name."""
    shown = {run_id: printable(name).strip() or run_id for run_id, name in names.items()}
    counts = Counter(shown.values())
    return {run_id: f"{name} (…{run_id[-TAIL:]})" if counts[name] > 1 else name for run_id, name in shown.items()}
