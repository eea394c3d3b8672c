"""What is done between updates, each at its interval."""

from __future__ import annotations

from collections.abc import Callable

from dreamer_worker.config import DreamerConfig
from dreamer_worker.timers import Clock

Work = Callable[[], object]


class Schedule:
    """Logs, reports, evaluates and saves when due. `evaluate` decides for itself: it is due after a number of steps."""

    def __init__(self, config: DreamerConfig, log: Work, report: Work, evaluate: Work, save: Work) -> None:
        self._log, self._report, self._evaluate, self._save = log, report, evaluate, save
        self._log_clock = Clock(config.log_every_s)
        self._report_clock = Clock(config.report_every_s)
        self._save_clock = Clock(config.save_every_s)

    def run_due(self) -> None:
        if self._log_clock.is_due():
            self._log()
        if self._report_clock.is_due():
            self._report()
        self._evaluate()
        if self._save_clock.is_due():
            self._save()
