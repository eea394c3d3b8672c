"""Tests of the lab itself: it must find each bug that is planted in a copy of MOSAIC, and nothing in the original."""

import re
import shutil
from dataclasses import dataclass
from pathlib import Path

import page_cache
import pytest
from schedule import HABITS, Fault, Schedule, ToyRun
from trial import run_trial

import mosaic

HABIT = {habit.name: habit for habit in HABITS}


@dataclass(frozen=True)
class Plant:
    """A bug: in this file, this text is replaced by that one."""

    name: str
    file: str
    good: str
    bad: str
    found_as: str  # what the lab reports
    habits: tuple[str, ...] = ("calm",)
    faults: tuple[Fault, ...] = ()
    failpoints: str = ""


CLAIM = """        attempt = await self._registry.do(lambda r: r.claim(start.run_id, start.gpus))
        failpoint("claim.done")
        record = await self._registry.do(lambda r: r.get(start.run_id))
        await self._launch(record, attempt)
"""
CLAIM_AFTER_SPAWN = """        record = await self._registry.do(lambda r: r.get(start.run_id))
        await self._launch(record, record.attempt + 1)
        failpoint("claim.done")
        await self._registry.do(lambda r: r.claim(start.run_id, start.gpus))
"""
PLANTS = (
    Plant(
        "the claim comes after the spawn",
        "dispatch/starter.py",
        CLAIM,
        CLAIM_AFTER_SPAWN,
        "not over after",
        # The first daemon is killed between the two; the second is stopped until the first one's tailer works.
        failpoints="claim.done:kill,spawn.planned:stop:1:1",
    ),
    Plant(
        "a publish may start anywhere",
        "ingest/check.py",
        "if request.start != next_offset:",
        "if False:",
        "events and|lines of its spool",
        failpoints="ack.ready:eio",
    ),
    Plant(
        "moves are not synced",
        "registry/file.py",
        'synchronous="FULL"',
        'synchronous="OFF"',
        "only in memory",
    ),
    Plant(
        "files are not synced",
        "model/durable.py",
        "                    os.fsync(self._file.fileno())\n",
        "",
        "only in memory",
    ),
    Plant(
        "the end is written without proof of death",
        "hold/holder.py",
        "            self._ending.worker_ended(now)\n",
        "            self._ending.worker_ended(now)\n            self._is_over = True\n",
        "exit.json is there and its processes|not over after",  # the daemon does not believe it
        habits=("endless, ignores SIGTERM",),
        faults=(Fault("kill worker", 0, 1.5), Fault("cancel", 0, 1.0)),
    ),
    Plant(
        "the holder takes no lock",
        "hold/owner.py",
        "        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)\n",
        "        pass\n",
        "it ended as FAULTED",
        habits=("endless",),
        faults=(Fault("kill daemon", 0, 1.5), Fault("cancel", 0, 1.0)),
    ),
    Plant(
        "a command that is sent again is added again",
        "daemon/command_log.py",
        "known = self._known.get(command.id)",
        "known = None",
        "the numbers of its commands are not|not over after",  # its worker may wait for the right ones
        habits=("obeys commands",),
        failpoints="command.appended:kill:1:5",
    ),
    Plant(
        "the holder passes on what is not complete",
        "hold/commands.py",
        '        lines = data[: data.rfind(b"\\n") + 1]\n',
        "        lines = data\n",
        "its worker carried out the commands|it ended as FAULTED|not over after",
        habits=("obeys commands",),
        faults=(Fault("kill daemon between commands", 0, 0.3),),
    ),
    Plant(
        "every token grants everything",
        "daemon/admission.py",
        "if not self._for_nodes and self._tokens.is_owner(token):",
        "if True:",
        "a cancel with a wrong token was accepted",
        faults=(Fault("intruder", 0, 0.2),),
    ),
    Plant(
        "every session grants every run",
        "daemon/sessions.py",
        "if not token or not session.token_hash or not hmac.compare_digest(token_hash(token), session.token_hash):",
        "if False:",
        "a publish with a wrong token was accepted",
        faults=(Fault("intruder", 0, 0.2),),
    ),
)


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.name)
def test_the_lab_finds_a_planted_bug(plant, tmp_path):
    if plant.found_as == "only in memory" and not page_cache.is_supported():
        pytest.skip("this kernel or file system does not report what is only in memory")

    report = run_trial(schedule_for(plant), python_path=str(plant_in_copy(plant, tmp_path)))

    assert any(re.search(plant.found_as, violation) for violation in report.violations), report


@pytest.mark.slow
@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.name)
def test_the_lab_reports_nothing_without_a_planted_bug(plant):
    assert run_trial(schedule_for(plant)).violations == []


def schedule_for(plant):
    runs = tuple(ToyRun(HABIT[name], 300, 300.0) for name in plant.habits)
    return Schedule(0, 0, 0, runs, plant.faults, plant.failpoints, stopped_for_s=2.0, over_within_s=20.0)


def plant_in_copy(plant, tmp_path):
    source = Path(mosaic.__file__).parent
    shutil.copytree(source, tmp_path / "mosaic", ignore=shutil.ignore_patterns("__pycache__"))
    victim = tmp_path / "mosaic" / plant.file
    text = victim.read_text()
    assert text.count(plant.good) == 1, f"{plant.file} has changed: adapt the planted bug"
    victim.write_text(text.replace(plant.good, plant.bad))
    return tmp_path
