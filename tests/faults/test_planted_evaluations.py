"""The judge of evaluations finds planted bugs: one bug in a copy of the eval worker, and a schedule that meets it."""

import shutil

import pytest
from evaluation_schedule import EvaluationFault, EvaluationSchedule
from evaluation_trial import run_evaluation
from stage import REPO, needs

pytestmark = [needs("eval"), pytest.mark.slow]
KILL = EvaluationFault("kill operator", "b", 15)
BUGS = {
    "a dead operator is not started again": (
        *("children.py", "child, self._child, self._has_answered = self._child, None, False"),
        *("child = self._child", KILL, "processes of lane 1 were killed, and the episodes"),
    ),
    "a failed episode has no reason": (
        *("logbook.py", "self._report(lane, episode, reason, failed=True)", "self._report(lane, episode, failed=True)"),
        *(KILL, "was disturbed and has no reason"),
    ),
    "a command is carried out twice": (
        *("commands.py", "take(_parse(line))", "take(_parse(line)), take(_parse(line))"),
        *(EvaluationFault("kill daemon", "a", 5), "were carried out"),
    ),
    "the summary counts no steps": (
        *("logbook.py", '"lane": lane.name, "env_index"', '"lane": lane.name, "length": 0, "env_index"'),
        *(EvaluationFault("kill tailer", "a", 5), "eval_summary.json says"),
    ),
}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", BUGS)
def test_a_planted_bug_is_found(tmp_path, name):
    file, old, new, fault, complaint = BUGS[name]
    copy = tmp_path / "eval_worker"
    shutil.copytree(REPO / "workers/eval_worker/eval_worker", copy)
    source = (copy / file).read_text()
    assert source.count(old) == 1
    (copy / file).write_text(source.replace(old, new))
    schedule = EvaluationSchedule(0, 0, False, fault.kind == "kill daemon", "calm", (fault,))

    report = run_evaluation(schedule, python_path=str(tmp_path))

    assert any(complaint in violation for violation in report.violations), report.violations
