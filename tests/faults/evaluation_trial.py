"""A trial of an evaluation: play it, inject the faults, resume it if they ended it, and judge it."""

import contextlib
import shutil
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

from evaluation_judge import violations_after_the_end, violations_of_lanes, violations_of_rows, violations_of_summary
from evaluation_schedule import COUNTING, LANES, LENGTH, EvaluationFault, EvaluationSchedule
from lab import wait_until
from stage import Event, Stage, stage
from trial import Report
from watch import descendants

from mosaic.client import TrainerClient
from mosaic.client.run import Run
from mosaic.model.errors import MosaicError
from mosaic.model.states import RunState

EPISODES = 4
ODD = 3  # the lane that misbehaves
TICKS = EPISODES * (LENGTH + 1)  # the most commands that a manual evaluation needs


def run_evaluation(schedule: EvaluationSchedule, keep: bool = False, python_path: str = "") -> Report:
    """Execute the schedule in a folder of its own. `keep`: keep the folder of a trial with violations."""
    report = Report(schedule)  # type: ignore[arg-type]  # it is only printed
    began = time.monotonic()
    home = Path(tempfile.mkdtemp(prefix="mosaic-e-"))
    try:
        with stage(home, "eval", python_path=python_path) as opened:
            EvaluationTrial(schedule, opened, report).run()
    except Exception as error:  # noqa: BLE001 - the edge: a trial that cannot continue has found a problem
        report.violations.append(f"the trial could not continue: {type(error).__name__}: {error}")
    report.wall_s = time.monotonic() - began
    if report.violations and keep:
        report.kept = str(home)
    else:
        shutil.rmtree(home, ignore_errors=True)
    return report


class EvaluationTrial:
    def __init__(self, schedule: EvaluationSchedule, opened: Stage, report: Report) -> None:
        self.schedule = schedule
        self.stage = opened
        self.report = report
        self.kills: Counter[int] = Counter()  # of processes, by lane
        self.tree: dict[int, str] = {}
        self.acknowledged: list[int] = []
        self.is_ended = False

    def run(self) -> None:
        calm = self.stage.told(self.stage.play(self.schedule.script))
        run = self._start()
        for fault in self.schedule.faults:
            is_playing = self.stage.wait_for_steps(run, fault.at, fault.lane)
            self.tree |= descendants(self.stage.lab.rundir(run))
            took_effect = is_playing and self._do(run, fault)
            self.report.done[fault.kind if took_effect else f"{fault.kind} (too late)"] += 1
        run = self.stage.lab.wait_until_over(run)
        if self.schedule.is_manual:
            self.client.join()
        self._judge(run, calm)

    def _start(self) -> Run:
        if not self.schedule.is_manual:
            return self.stage.start(self.schedule.script)
        evaluation = self.stage.lab.client.evaluate(self.schedule.script, manual=True)
        run = self.stage.lab.client.get_run(evaluation.run_id)
        evaluation.close()
        self.client = threading.Thread(target=self._send_commands, args=(run,), daemon=True)
        self.client.start()
        return run

    def _send_commands(self, run: Run) -> None:
        """A client of its own: it survives the daemons that are killed."""
        wait_until(lambda: self.stage.noted(run, "opening", "odd") > 0, 90, "the lanes")
        with TrainerClient.connect(self.stage.lab.root) as client, contextlib.suppress(MosaicError):
            for _ in range(TICKS):
                self.acknowledged.append(client.command_run(run.run_id, {"cmd": "step"}))
                time.sleep(0.1)
            client.command_run(run.run_id, {"cmd": "finish"})

    def _do(self, run: Run, fault: EvaluationFault) -> bool:
        self.is_ended = self.is_ended or fault.is_fatal
        if fault.kind == "kill daemon":
            self.stage.kill_daemon()
            return True
        if fault.kind == "cancel":
            with contextlib.suppress(MosaicError):  # it ends at this moment
                self.stage.lab.client.cancel_run(run.run_id)
            return True
        part = fault.kind.removeprefix("kill ")
        if part not in ("operator", "host"):
            return bool(self.stage.kill(run, part))
        if self.stage.noted(run, "end", fault.lane) == EPISODES:
            return False
        killed = self.stage.kill(run, part, fault.lane)
        self.kills[LANES.index(fault.lane)] += bool(killed)
        return bool(killed)

    def _judge(self, run: Run, calm: list[Event]) -> None:
        told, broken = self.stage.told(run), self.report.violations
        broken += violations_of_rows(told)
        broken += violations_of_summary(run, told)
        broken += violations_after_the_end(run, self.tree)
        if self.schedule.is_manual:
            broken += self._check_commands(run, told)
        if run.state is not RunState.TERMINATED:
            broken += [] if self.is_ended else [f"it is {run.state}: {run.reason}"]
            if self.schedule.is_manual:
                return
            run = self.stage.resume(run)
            told = self.stage.told(run)
            broken += [] if run.state is RunState.TERMINATED else [f"resumed, it is {run.state}: {run.reason}"]
            broken += violations_of_summary(run, told)
            broken += violations_after_the_end(run, {})
            if self.schedule.habit in COUNTING:
                told, calm = _without(ODD, told), _without(ODD, calm)
        broken += violations_of_lanes(_results(told), _results(calm), self.kills)

    def _check_commands(self, run: Run, told: list[Event]) -> list[str]:
        """`start` has number 1; every acknowledged command was carried out once, and all if the run was not ended."""
        done = [row["payload"]["seq"] for row in told if row.get("event") == "command_done"]
        sent = [1, *self.acknowledged]
        broken = [] if sent == list(range(1, len(sent) + 1)) else [f"its commands are numbered {sent}"]
        if done != sorted(set(done)):
            broken.append(f"the commands {done} were carried out")
        if run.state is RunState.TERMINATED and not {*sent} <= {*done}:
            broken.append(f"acknowledged and not carried out: {sorted({*sent} - {*done})}")
        return broken


def _without(lane: int, told: list[Event]) -> list[Event]:
    return [row for row in told if row.get("env_index", row.get("payload", {}).get("lane")) != lane]


def _results(told: list[Event]) -> list[Event]:
    """What script and manual mode have in common: manual steps also show the environment, as text."""
    plain = [{key: value for key, value in row.items() if key != "view"} for row in told]
    for row in plain:
        if row.get("event") == "lane_ready":
            row["payload"] = {**row["payload"], "text": ""}
    return plain
