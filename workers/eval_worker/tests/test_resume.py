"""A resumed evaluation prints what an uninterrupted one prints."""

import errno
import json

import pytest
from conftest import players
from eval_worker.journal import Journal
from eval_worker.ledgers import copy_finished
from mosaic_sdk import ledger

SCRIPT = {"env": "troupe", "operators": players("a", "b"), "seeds": "0-3"}
TOLD = {"a": {}, "b": {"length": 6}}


def interrupted(evaluate, tmp_path, script=SCRIPT, told=TOLD):
    """An evaluation that was killed while lane a plays seed 2."""
    gate = {"at": [2, 1], "file": str(tmp_path / "never")}
    run = evaluate(script, name="killed", operators={**told, "a": {**told["a"], "gate": gate}})
    run.until("lane_ready", lane=0, seed=2)
    run.kill()
    return run


def test_a_resumed_run_equals_an_uninterrupted_one(evaluate, tmp_path):
    whole = evaluate(SCRIPT, operators=TOLD)
    whole.finish()
    killed = interrupted(evaluate, tmp_path)

    resumed = evaluate(SCRIPT, operators=TOLD, resume_from=killed.journal)

    assert resumed.finish() == 0
    assert resumed.results() == whole.results()
    assert resumed.summary["operators"]["a"]["mean_return"] == whole.summary["operators"]["a"]["mean_return"]


def test_finished_episodes_need_no_process(evaluate):
    whole = evaluate(SCRIPT, operators=TOLD)
    whole.finish()

    resumed = evaluate(SCRIPT, operators={name: {"refuse": "not again"} for name in "ab"}, resume_from=whole.journal)

    assert resumed.finish() == 0
    assert resumed.results() == whole.results()


def test_a_resumed_run_can_be_resumed(evaluate, tmp_path):
    whole = evaluate(SCRIPT, operators=TOLD)
    whole.finish()
    killed = interrupted(evaluate, tmp_path)
    gate = {"at": [3, 2], "file": str(tmp_path / "never")}
    again = evaluate(SCRIPT, operators={**TOLD, "a": {"gate": gate}}, resume_from=killed.journal)
    again.until("lane_ready", lane=0, seed=3)
    again.kill()

    resumed = evaluate(SCRIPT, operators=TOLD, resume_from=again.journal)

    assert resumed.finish() == 0
    assert resumed.results() == whole.results()


def test_a_line_that_was_cut_off_is_ignored(evaluate, tmp_path):
    whole = evaluate(SCRIPT, operators=TOLD)
    whole.finish()
    killed = interrupted(evaluate, tmp_path)
    with killed.journal.open("ab") as file:
        file.write(b'{"kind":"turn","lane":"a","episode":2,"tu')

    resumed = evaluate(SCRIPT, operators=TOLD, resume_from=killed.journal)

    assert resumed.finish() == 0
    assert resumed.results() == whole.results()


def test_a_failed_episode_stays_failed(evaluate):
    told = {**TOLD, "a": {"crash": [1, 2]}}
    whole = evaluate(SCRIPT, operators=told)
    whole.finish()

    resumed = evaluate(SCRIPT, operators=TOLD, resume_from=whole.journal)

    resumed.finish()
    assert resumed.results() == whole.results()


def test_a_lane_that_never_began_gets_another_chance(evaluate):
    broken = evaluate(SCRIPT, operators={**TOLD, "a": {"refuse": "No endpoint."}})
    broken.finish()

    resumed = evaluate(SCRIPT, operators=TOLD, resume_from=broken.journal)

    resumed.finish()
    assert [row["failed"] for row in resumed.episodes("a")] == [False] * 4


def test_seeds_may_be_added(evaluate):
    short = evaluate({**SCRIPT, "seeds": "0-1"}, operators=TOLD)
    short.finish()

    resumed = evaluate(SCRIPT, operators=TOLD, resume_from=short.journal)

    resumed.finish()
    assert [row["episode_seed"] for row in resumed.episodes("a")] == [0, 1, 2, 3]


def test_another_script_is_refused(evaluate):
    whole = evaluate(SCRIPT, operators=TOLD)
    whole.finish()

    resumed = evaluate({**SCRIPT, "max_steps": 3}, operators=TOLD, resume_from=whole.journal)

    assert resumed.finish() == 2
    assert "is of an evaluation with other max_steps" in resumed.stderr


def test_a_file_that_is_no_journal_is_refused(evaluate, tmp_path):
    (tmp_path / "notes.jsonl").write_text(json.dumps({"kind": "note"}) + "\n")

    resumed = evaluate(SCRIPT, operators=TOLD, resume_from=tmp_path / "notes.jsonl")

    assert resumed.finish() == 2
    assert "is not the journal of an evaluation" in resumed.stderr


def test_of_a_seed_that_is_played_again_only_the_finished_episodes_are_copied(tmp_path):
    former = tmp_path / "former.jsonl"
    rows = [{"call_id": f"c{index}", "lane": "a", "episode_index": index, "seed": 7} for index in range(3)]
    former.write_text("".join(json.dumps(row) + "\n" for row in rows))

    copy_finished({"gpt": str(former)}, str(tmp_path), {("a", 0), ("a", 1)})

    assert [row["call_id"] for row in ledger.read(tmp_path / "operators" / "gpt.ledger.jsonl")] == ["c0", "c1"]


def test_a_line_for_which_the_disk_has_no_room_is_an_error(tmp_path):
    journal = Journal(str(tmp_path / "journal.jsonl"))
    journal._file.close()
    journal._file = _Full()

    with pytest.raises(OSError, match="No space") as caught:
        journal.act("me", 0, 0, "agent_0", 1)

    assert caught.value.errno == errno.ENOSPC


class _Full:
    """A file on a disk that has room for half a line."""

    def write(self, line):
        return len(line) // 2
