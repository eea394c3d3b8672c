"""One evaluation, from its config to its results."""

import os
from typing import Any

from mosaic_sdk import emit
from mosaic_sdk.cli import WorkFailed
from mosaic_sdk.heartbeat import Heartbeat
from mosaic_sdk.names import CHECKPOINTS, WorkerEnv
from mosaic_sdk.operators.lane_plan import Lane as LanePlan
from mosaic_sdk.operators.script import WAIT
from mosaic_sdk.results.summary import EvalResults

from eval_worker.build import Builder, plan_lanes
from eval_worker.clips import Clips
from eval_worker.commands import read_commands
from eval_worker.conductor import Conductor
from eval_worker.config import MANUAL, EvalConfig
from eval_worker.ending import write_all, write_partial
from eval_worker.fairness import Fairness
from eval_worker.fastlane import Picture
from eval_worker.game import LaneFailed
from eval_worker.journal import FILE_NAME, Journal
from eval_worker.lane import Lane
from eval_worker.launch import Launcher, has_people
from eval_worker.ledgers import copy_finished, former_ledgers
from eval_worker.logbook import Logbook
from eval_worker.orders import Orders
from eval_worker.progress import Progress
from eval_worker.resume import agenda_of, episodes_of, read_past
from eval_worker.telemetry import Telemetry
from eval_worker.ticks import Ticks


class EvalRuntime:
    """Builds the parts of an evaluation, runs the conductor, and writes the results."""

    def __init__(self, config: EvalConfig) -> None:
        self._config = config
        self._script = config.parsed
        self._run_dir = os.environ.get(WorkerEnv.RUN_DIR) or os.getcwd()
        self._is_manual = config.mode == MANUAL
        self._past = read_past(config.resume_from, self._script)
        self._launcher = Launcher(config.run_id, self._script, self._run_dir, self._ledgers())
        self._progress = Progress(self._script.max_steps)
        self._picture: Picture | None = None
        self._conductor: Conductor | None = None
        self._orders: Orders | None = None
        self.lanes: list[Lane] = []

    def run(self) -> dict[str, Any]:
        """The payload of run_completed."""
        progress = self._progress
        with Heartbeat(self._config.heartbeat_s, lambda: progress.steps, total=lambda: progress.total):
            agents, plans = self._plan()
            progress.episodes = sum(len(plan.episodes) for plan in plans)
            return self._evaluate(agents, plans)

    def _evaluate(self, agents: list[str] | None, plans: list[LanePlan]) -> dict[str, Any]:
        config, script = self._config, self._script
        journal = Journal(os.path.join(_checkpoints(self._run_dir), FILE_NAME))
        journal.header(script.to_dict(), config.mode, agents)
        results = self._results()
        clips = Clips(config.run_id, self._run_dir, script.video)
        ticks = Ticks(self._take_command, self._publish, self._refresh)
        telemetry = Telemetry(emit.stdout(), self._is_manual or any(has_people(script, plan) for plan in plans))
        logbook = Logbook(journal, telemetry, results, Fairness(plans), clips, self._progress)
        self.lanes = self._make_lanes(plans, ticks, clips)
        self._picture = Picture(config.run_id, len(plans), self._is_manual)
        conductor = self._conductor = Conductor(self.lanes, logbook, telemetry, ticks)
        conductor.is_manual, conductor.pace = self._is_manual, script.pace
        conductor.people = {plan.index for plan in plans if has_people(script, plan)}
        self._orders = Orders(conductor)
        conductor.execute = self._orders.execute
        telemetry.started(script.env["id"], config.mode, self.lanes, script.seeds)
        emit.checkpoint_saved(journal.path)
        read_commands(ticks.command)
        try:
            conductor.run()
        except BaseException:
            self._close()
            write_partial(results, self._run_dir)
            raise
        self._close()
        clips.close()
        self._fail_if_nothing_was_played(logbook)
        return write_all(config, script, results, clips, self._run_dir)

    def _plan(self) -> tuple[list[str] | None, list[LanePlan]]:
        if self._past is not None:
            return self._past.agents, self._script.lane_plan(self._past.agents)
        try:
            agents, plans = plan_lanes(self._script, self._launcher)
        except LaneFailed as error:
            raise WorkFailed(str(error)) from None
        return None if agents is None else list(agents), plans

    def _make_lanes(self, plans: list[LanePlan], ticks: Ticks, clips: Clips) -> list[Lane]:
        builder = Builder(self._script, self._launcher, ticks.desk, self._past)
        builder.shows_text, builder.operator_seed = self._is_manual, self._config.seed or 0
        waits = self._is_manual and self._script.on_done == WAIT
        lanes = []
        for plan in plans:
            agenda = agenda_of(self._past, plan, self._is_manual)
            for episode in agenda.finished:
                clips.adopt(self._former_dir(), plan.index, plan.name, plan.operator or "", episode.seed)
            lanes.append(Lane(plan, builder.game(plan), agenda, waits))
        self._copy_ledgers(lanes)
        return lanes

    def _former_dir(self) -> str:
        return _run_of(self._past.path) if self._past is not None else ""

    def _ledgers(self) -> dict[str, str]:
        return {} if self._past is None else former_ledgers(self._past.path, self._script.operators)

    def _copy_ledgers(self, lanes: list[Lane]) -> None:
        finished = {
            (lane.name, episode.index)
            for lane in lanes
            for episode in episodes_of(self._past, lane.plan, self._is_manual)
        }
        copy_finished(self._ledgers(), self._run_dir, finished)

    def _results(self) -> EvalResults:
        kinds = {name: spec["kind"] for name, spec in self._script.operators.items()}
        return EvalResults(
            run_id=self._config.run_id,
            env_id=self._script.env["id"],
            mode=self._config.mode,
            seeds=self._script.seeds,
            operators={name: {"kind": kind, "about": self._launcher.about(name)} for name, kind in kinds.items()},
        )

    def _fail_if_nothing_was_played(self, logbook: Logbook) -> None:
        if logbook.last_failure and not any(lane.has_succeeded for lane in self.lanes):
            raise WorkFailed(f"No episode was played to its end: {logbook.last_failure}")

    def _take_command(self, command: Any) -> None:
        assert self._orders is not None
        self._orders(command)

    def _publish(self, lane: int) -> None:
        assert self._conductor is not None
        self._conductor.publish(lane)

    def _refresh(self) -> None:
        if self._picture is not None:
            self._picture.refresh()

    def _close(self) -> None:
        """End all processes of the lanes."""
        for lane in self.lanes:
            lane.close()
        if self._picture is not None:
            self._picture.close()


def _checkpoints(run_dir: str) -> str:
    return os.environ.get(WorkerEnv.CHECKPOINT_DIR) or os.path.join(run_dir, CHECKPOINTS)


def _run_of(journal: str) -> str:
    return os.path.dirname(os.path.dirname(os.path.abspath(journal)))
