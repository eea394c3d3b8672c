"""The search: asks Optuna for settings, has the daemon run them, and tells Optuna what came of it.

What must survive a kill is in two places: Optuna's storage (which trials exist, with which settings) and the daemon
(which run belongs to a trial's key). A trial is stored before its run is submitted, and a submit with a known key
returns the run of that key. So a driver that is killed anywhere and resumed finds every trial, and starts none twice.
"""

import math
from contextlib import closing
from typing import Any

from mosaic_sdk import emit
from mosaic_sdk.cli import WorkFailed
from mosaic_sdk.heartbeat import Heartbeat
from optuna.trial import FrozenTrial, Trial, TrialState

from search_worker import driver_pb2 as pb
from search_worker import telemetry
from search_worker.analytics import write_analytics
from search_worker.config import REPORTS, SearchConfig
from search_worker.curve import Progress, final_value
from search_worker.daemon import Daemon, Refused
from search_worker.study import DONE, importances, make_pruner, open_study, study_file, suggest
from search_worker.trial import PRUNED, LiveTrial, TrialRun, plan_runs

EVERY = "report_every"  # in the study: the same for all its trials, also after a resume
TOTAL = "total_steps"


class SearchRuntime:
    def __init__(self, config: SearchConfig) -> None:
        self.config = config
        self.daemon = Daemon()
        self.path = study_file()
        self.study = open_study(config, self.path)
        self.live: list[LiveTrial] = []
        self.failures = 0  # in a row
        self.first_number = len(self.study.get_trials(deepcopy=False))  # of the trials that this driver adds
        self.done = self._count_done()
        self._prepare_pruner()

    def run(self) -> dict[str, Any]:
        emit.stdout().checkpoint_saved(self.path, step=self.done)
        self._begin()
        with Heartbeat(self.config.heartbeat_s, progress=lambda: self.done, total=self.config.trials):
            while self._fill():
                self._watch()
        write_analytics(self.config)
        return self._summary()

    # ---- beginning

    def _begin(self) -> None:
        """Report what an earlier driver has finished, and take over what it left."""
        for trial in self.study.get_trials(deepcopy=False):
            if trial.state is TrialState.RUNNING:
                self.live.append(self._attach(trial))
            elif trial.state.is_finished():
                telemetry.trial_over(trial)
        telemetry.progress(self.done, None, self._best_value())

    def _attach(self, frozen: FrozenTrial) -> LiveTrial:
        live = self._planned(Trial(self.study, frozen._trial_id))
        live.reported = set(frozen.intermediate_values)
        for run, run_id in zip(live.runs, frozen.user_attrs.get(telemetry.RUNS, []), strict=False):
            run.run_id = run_id
            self._look(run)
        return live

    def _look(self, run: TrialRun) -> None:
        """The present state of a run; the daemon may have deleted it at somebody's request."""
        try:
            run.take(self.daemon.get(run.run_id))
        except Refused as error:
            if not error.is_unknown_run:
                raise
            run.state, run.reason = pb.FAULTED, "it was deleted"

    # ---- starting trials

    def _fill(self) -> bool:
        """Submit as many runs as may be live. False when the search is complete."""
        while self._room() and (run := self._next_run()):
            self._submit(*run)
        return bool(self.live)

    def _room(self) -> int:
        return self.config.max_parallel - sum(run.is_live for trial in self.live for run in trial.runs)

    def _next_run(self) -> tuple[LiveTrial, TrialRun] | None:
        """A run that waits for its submit, of the oldest trial; None if none is needed."""
        for live in self.live:
            if not live.problem and (waiting := next((run for run in live.runs if not run.run_id), None)):
                return live, waiting
        if self.done + len(self.live) >= self.config.trials:
            return None
        self.live.append(self._planned(self.study.ask()))
        return self.live[-1], self.live[-1].runs[0]

    def _planned(self, trial: Trial) -> LiveTrial:
        settings = suggest(trial, self.config.dimensions)
        return LiveTrial(trial, settings, plan_runs(self.config, trial.number, settings))

    def _submit(self, live: LiveTrial, run: TrialRun) -> None:
        try:
            info = self.daemon.submit(run.config, run.key)
        except Refused as error:
            if error.is_key_taken:
                raise WorkFailed(
                    f"Trial {live.number} exists with other settings: another driver has continued this search. "
                    f"Resume the newest one: mosaic search resume {self.config.experiment}"
                ) from None
            if not error.is_of_config:
                raise WorkFailed(f"Trial {live.number} cannot be submitted: {error}") from None
            self._fail(live, f"its config was refused: {error}")
            self._settle(live)
            return
        run.take(info)
        live.trial.set_user_attr(telemetry.RUNS, [each.run_id for each in live.runs if each.run_id])
        if info.HasField("total_steps"):
            self._learn_total(info.total_steps)

    def _learn_total(self, total: int) -> None:
        if TOTAL not in self.study.user_attrs:
            self.study.set_user_attr(TOTAL, total)
            self._prepare_pruner()

    def _prepare_pruner(self) -> None:
        known = self.study.user_attrs
        if EVERY not in known and (self.config.report_every or TOTAL in known):
            self.study.set_user_attr(EVERY, self.config.report_every or max(1, known[TOTAL] // REPORTS))
        self.every = int(self.study.user_attrs.get(EVERY, 0))
        self.study.pruner = make_pruner(self.config, self.every, int(known.get(TOTAL, 0)))

    # ---- watching trials

    def _watch(self) -> None:
        """Follow the live runs until one of them, or a trial, is over."""
        for live in [live for live in self.live if live.is_over]:
            self._settle(live)
        runs = {run.run_id: (live, run) for live in self.live for run in live.runs if run.is_live}
        if not runs:
            return
        try:
            self._follow(runs)
        except Refused as error:
            if not error.is_unknown_run:
                raise WorkFailed(f"The trials cannot be watched: {error}") from None
            for _, run in runs.values():
                self._look(run)
        for live, _ in runs.values():
            if live.is_over and live in self.live:
                self._settle(live)
            elif live.failure and not live.problem:
                self._fail(live, live.failure)

    def _follow(self, runs: dict[str, tuple[LiveTrial, TrialRun]]) -> None:
        with closing(self.daemon.watch(list(runs))) as replies:
            for reply in replies:
                are_over = [self._take(*runs[info.run_id], info) for info in reply.runs]
                for run_id in reply.deleted:
                    self._look(runs[run_id][1])
                if any(are_over) or reply.deleted:
                    return

    def _take(self, live: LiveTrial, run: TrialRun, info: Any) -> bool:
        """Whether the run is over."""
        run.take(info)
        if not run.is_over and self.every and not live.problem:
            self._measure(run)
            self._report(live)
        return run.is_over

    def _measure(self, run: TrialRun) -> None:
        run.progress = run.progress or Progress(self.every)
        try:
            run.progress.add(self.daemon.curve(run.run_id, self.config.curve, run.progress.reached + 1))
        except Refused as error:
            if not error.has_no_curve:
                raise WorkFailed(f"The curve of run {run.run_id} cannot be read: {error}") from None

    def _report(self, live: LiveTrial) -> None:
        for step, value in live.news():
            live.reported.add(step)
            if math.isnan(value):
                continue
            live.trial.report(value, step)
            if all(run.is_live for run in live.runs) and live.trial.should_prune():
                self._cancel(live, f"{PRUNED} {step:,}: {self._why()}")
                return

    def _why(self) -> str:
        side = "below" if self.config.direction == "maximize" else "above"
        return {
            "median": f"{side} the median",
            "asha": "not promoted by successive halving",
            "hyperband": "not promoted by Hyperband",
        }.get(self.config.pruner, "pruned")

    def _cancel(self, live: LiveTrial, reason: str) -> None:
        for run in live.runs:
            if run.is_live:
                run.take(self.daemon.cancel(run.run_id, reason))

    # ---- ending trials

    def _fail(self, live: LiveTrial, problem: str) -> None:
        live.problem = problem
        self._cancel(live, f"trial {live.number} of the search has failed")

    def _settle(self, live: LiveTrial) -> None:
        """Tell Optuna how a trial ended, unless runs of it are still live."""
        if not live.is_over:
            return
        problem, value = live.problem or live.failure, None
        if not problem and not live.was_pruned:
            value, problem = self._value(live)
        state = TrialState.FAIL if problem else TrialState.PRUNED if live.was_pruned else TrialState.COMPLETE
        reason = problem or next((run.reason for run in live.runs if run.reason), "")
        if reason:
            live.trial.set_user_attr(telemetry.REASON, reason)
        # A pruned trial has the value of its last report.
        told = self.study.tell(live.trial, value, state=state)
        self.live.remove(live)
        self.done = self._count_done()
        telemetry.trial_over(told)
        telemetry.progress(self.done, told.value, self._best_value())
        self._count(problem, live.number)

    def _count(self, problem: str, number: int) -> None:
        # Trials of an earlier driver do not count: they may have been cancelled together with it.
        if number >= self.first_number:
            self.failures = self.failures + 1 if problem else 0
        if problem:
            print(f"Trial {number} failed and is replaced: {problem}", flush=True)
        if self.failures >= self.config.max_failures:
            self._abandon()
            raise WorkFailed(f"{self.failures} trials in a row have failed. The last one: {problem}")

    def _abandon(self) -> None:
        """Cancel what is live. After a resume, these trials count as failed and are replaced."""
        for live in self.live:
            self._cancel(live, "the search has given up")

    def _value(self, live: LiveTrial) -> tuple[float | None, str]:
        """The value of a trial whose runs have all finished, or why it has none."""
        values = []
        for run in live.runs:
            if self.every:
                self._measure(run)
            value = self._final(run)
            if value is None or not math.isfinite(value):
                return None, self._no_value(run, value)
            values.append(value)
        for step, value in live.news():
            live.trial.report(value, step)  # for the comparison with later trials
        return sum(values) / len(values), ""

    def _final(self, run: TrialRun) -> float | None:
        try:
            return final_value(self.daemon.curve(run.run_id, self.config.curve))
        except Refused as error:
            if error.has_no_curve:
                return None
            raise WorkFailed(f"The curve of run {run.run_id} cannot be read: {error}") from None

    def _no_value(self, run: TrialRun, value: float | None) -> str:
        if value is not None:
            return f"the value of run {run.run_id} is {value}"
        names = ", ".join(list(self.daemon.curve(run.run_id, "").known_names)[:12])
        return f"run {run.run_id} has no curve '{self.config.curve}'. It has: {names or 'none'}"

    # ---- results

    def _count_done(self) -> int:
        return sum(trial.state in DONE for trial in self.study.get_trials(deepcopy=False))

    def _best_value(self) -> float | None:
        try:
            return self.study.best_value
        except ValueError:
            return None  # no trial is complete

    def _summary(self) -> dict[str, Any]:
        trials = self.study.get_trials(deepcopy=False)
        counts = {state.name: sum(trial.state is state for trial in trials) for state in TrialState}
        counted = {"counts": {name: number for name, number in counts.items() if number}, "trials": self.done}
        try:
            best = telemetry.describe(self.study.best_trial)
        except ValueError:
            return counted
        return {**counted, "best": best, "importances": importances(self.study)}
