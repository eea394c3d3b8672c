"""Any worker against the contract, with a score card.

    def test_my_worker_keeps_the_contract():
        card = check_worker("my_worker.cli", entry_point="my_worker:get_worker_metadata")

        assert card.is_clean, card

What it runs comes from the worker's schema (`x-mosaic-lab`), or is given: `short` ends by itself in seconds, `long`
runs until it is stopped, `fails` raises, `interactive` and `agent` claim the two halves of the protocol over pipes.
`mosaic worker test` is the same on the command line.
"""

import sys
from typing import Any, Callable, Mapping, Optional

from mosaic_sdk.lab.bench import Bench
from mosaic_sdk.lab.scorecard import FAILED, OK, SKIPPED, Check, ScoreCard

__all__ = ["FAILED", "OK", "SKIPPED", "Check", "ScoreCard", "check_worker"]


def check_worker(
    module: str,
    *,
    entry_point: str = "",
    lab: Optional[Mapping[str, Mapping[str, Any]]] = None,
    python: str = sys.executable,
    env: Optional[Mapping[str, str]] = None,
    grace_s: float = 10.0,
    limit_s: float = 120.0,
    tell: Callable[[Check], None] = lambda check: None,
) -> ScoreCard:
    """Run a worker against the contract. `tell` hears each line as it is known; `lab` adds to the schema's own.

    The worker gets an empty HOME, so that what it writes there is seen; name another in `env` if it needs one.
    """
    card = ScoreCard(module)
    for check in Bench(module, entry_point, lab or {}, python, env or {}, grace_s, limit_s).checks():
        card.checks.append(check)
        tell(check)
    return card
