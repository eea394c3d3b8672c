"""The ledger: whole rows, shared by processes, each given out once."""

import errno
import json
import multiprocessing
import os
import stat

import pytest
from mosaic_sdk.ledger import read
from mosaic_sdk.llm.ledger import Former, Ledger

PLACE = {"operator": "gpt", "lane": "a", "agent_id": "x", "episode_index": 2, "seed": 1, "step_index": 0}
PLACE["prompt_hash"] = "h"


def row(call_id, **more):
    counts = {"requests": 1, "tokens_in": 10, "tokens_cached": 4, "tokens_out": 2, "retries": 1, "illegal": 0}
    rest = {"latency_ms": 5.0, "cost": 0.5, "fallback": "", "error": "", "infrastructure": {"timeout": 1}}
    return {"call_id": call_id, "model_served": "m", **PLACE, **counts, **rest, **more}


def test_a_row_is_on_disk_when_append_returns(tmp_path):
    path = tmp_path / "operators" / "gpt.ledger.jsonl"
    ledger = Ledger(str(path))

    ledger.append(row("1"))

    assert list(read(path)) == [row("1")]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_row_that_was_cut_off_spoils_no_other(tmp_path):
    path = tmp_path / "l.jsonl"
    path.write_bytes(json.dumps(row("1")).encode() + b'\n{"call_id": "2", "tok')

    Ledger(str(path)).append(row("3"))

    assert [one["call_id"] for one in read(path)] == ["1", "3"]


def _append_many(path, name):
    ledger = Ledger(path)
    for number in range(50):
        ledger.append(row(f"{name}-{number}", text="x" * 20_000))


def test_processes_share_a_file_without_mixing_rows(tmp_path):
    path = str(tmp_path / "l.jsonl")
    context = multiprocessing.get_context("fork")
    children = [context.Process(target=_append_many, args=(path, name)) for name in "ab"]
    for child in children:
        child.start()
    for child in children:
        child.join()

    assert len({one["call_id"] for one in read(path)}) == 100


def test_a_full_disk_leaves_no_half_row(tmp_path, monkeypatch):
    path = tmp_path / "l.jsonl"
    ledger = Ledger(str(path))
    ledger.append(row("1"))
    real = os.write

    def short(fd, data):
        return real(fd, data[:10])

    monkeypatch.setattr(os, "write", short)
    with pytest.raises(OSError, match="No space") as caught:
        ledger.append(row("2"))
    monkeypatch.undo()
    ledger.append(row("3"))

    assert caught.value.errno == errno.ENOSPC
    assert len(path.read_bytes().splitlines()) == 2, "nothing is left of the row that failed"
    assert [one["call_id"] for one in read(path)] == ["1", "3"]


def test_an_answered_decision_is_given_out_once(tmp_path):
    path = tmp_path / "l.jsonl"
    Ledger(str(path)).append(row("1"))
    former = Former(str(path))

    assert former.take({**PLACE, "prompt_hash": "other"}) is None
    assert former.take({**PLACE, "lane": "b"}) is None
    assert former.take({**PLACE, "episode_index": 3}) is None, "the same seed, played again"
    assert former.take(PLACE)["replayed"] is True
    assert former.take(PLACE) is None


def test_a_decision_that_failed_is_asked_again(tmp_path):
    path = tmp_path / "l.jsonl"
    Ledger(str(path)).append(row("1", error="no answer in time"))

    assert Former(str(path)).take(PLACE) is None
