"""mosaic_sdk.ledger: what the decisions of a language model add up to."""

import json

from mosaic_sdk.ledger import read, totals


def row(call_id, **more):
    counts = {"requests": 1, "tokens_in": 10, "tokens_cached": 4, "tokens_out": 2, "retries": 1, "illegal": 0}
    rest = {"latency_ms": 5.0, "cost": 0.5, "fallback": "", "error": "", "infrastructure": {"timeout": 1}}
    return {"call_id": call_id, "model_served": "m", **counts, **rest, **more}


def ledger(path, *rows):
    path.write_text("".join(json.dumps(one) + "\n" for one in rows))
    return path


def test_each_decision_counts_once_over_a_run_and_the_one_that_resumed_it(tmp_path):
    old = ledger(tmp_path / "old.jsonl", row("1"), row("2", error="down", cost=None))
    new = ledger(tmp_path / "new.jsonl", row("1", replayed=True), row("3", fallback="random", illegal=3))

    both = totals(old, new)

    assert (both["decisions"], both["replayed"], both["requests"], both["tokens_in"]) == (3, 0, 3, 30)
    assert (both["illegal"], both["fallbacks"], both["errors"], both["cost"]) == (3, 1, 1, 1.0)
    assert (both["infrastructure"], both["models"], both["latency_ms"]) == ({"timeout": 3}, ["m"], 5.0)
    assert (totals(new)["decisions"], totals(new)["replayed"]) == (2, 1)


def test_what_is_not_a_row_is_left_out(tmp_path):
    path = tmp_path / "l.jsonl"
    path.write_bytes(json.dumps(row("1")).encode() + b'\n[1]\n{"call_id": 7}\n\xff\n{"call_id": "2", "tok')

    assert [one["call_id"] for one in read(path)] == ["1"]


def test_impossible_numbers_count_as_nothing(tmp_path):
    path = ledger(tmp_path / "l.jsonl", row("1", tokens_in="many", latency_ms=None, infrastructure=[1], cost="free"))

    found = totals(path)

    assert (found["tokens_in"], found["latency_ms"], found["infrastructure"], found["cost"]) == (0, 0.0, {}, None)


def test_no_ledger_is_an_empty_one(tmp_path):
    found = totals(tmp_path / "missing.jsonl")

    assert (found["decisions"], found["latency_ms"], found["cost"]) == (0, None, None)
