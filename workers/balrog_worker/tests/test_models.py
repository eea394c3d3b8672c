"""A real llama.cpp server with random weights: the protocol is real, the play is nonsense."""

import json
import os
import stat
from pathlib import Path

import pytest
from mosaic_sdk.ledger import totals

FREE = {"agent": "naive", "max_tokens": 12, "episodes": 1, "max_steps": 4}
HELD = {**FREE, "output": "json_schema", "max_tokens": 64}


def test_nonsense_is_counted_and_the_default_is_played(run, server):
    played = run(**server, **FREE)

    assert played.finish() == 0, played.stderr

    assert [line["action"] for line in played.lines("step")] == ["go forward"] * 4
    (episode,) = played.lines("episode")
    assert episode["metadata"]["invalid"] == 4
    assert episode["metadata"]["tokens_in"] > 100
    assert [row["fallback"] for row in played.ledger] == ["default"] * 4
    assert played.results["tasks"]["babyai/goto"]["invalid"] == 1.0


@pytest.mark.parametrize("agent", ["naive", "chain_of_thought"])
def test_a_server_that_is_held_to_the_actions_plays_them(run, server, agent):
    settings = {**HELD, "agent": agent, "max_tokens": 400 if agent == "naive" else 30}
    played = run(**server, **settings, price_per_million_input=1.0, price_per_million_output=2.0, history=1)

    assert played.finish() == 0, played.stderr

    rows = played.ledger
    assert len(rows) == 4
    if agent == "naive":  # random weights never end a thought, so that one is cut off
        assert [row["illegal"] for row in rows] == [0] * 4
        assert [row["action"] for row in rows] == [line["action"] for line in played.lines("step")]
    tokens = played.results["tokens_in"], played.results["tokens_out"]
    assert tokens == (sum(row["tokens_in"] for row in rows), sum(row["tokens_out"] for row in rows))
    assert played.results["cost"] == pytest.approx((tokens[0] + 2 * tokens[1]) / 1e6)
    assert rows[2]["tokens_in"] <= rows[1]["tokens_in"] + 60, "the window does not grow"


def test_a_continued_evaluation_asks_nothing_that_was_answered(run, server):
    first = run("first", **server, **HELD)
    assert first.finish() == 0
    journal = Path(first.journal)
    journal.write_text(journal.read_text().splitlines()[0] + "\n")  # as if it was killed in its episode

    second = run("second", **server, **HELD, resume_from=first.journal)

    assert second.finish() == 0, second.stderr
    # Random weights may reach the goal before the last step.
    assert [row["replayed"] for row in second.ledger] == [True] * len(first.ledger)
    assert [row["action"] for row in second.ledger] == [row["action"] for row in first.ledger]
    ledgers = [one.folder / "operators" / "balrog.ledger.jsonl" for one in (first, second)]
    assert totals(*ledgers)["requests"] == 4


def test_the_key_is_written_nowhere(run, server):
    key = "sk-do-not-tell-anyone"
    played = run(**server, **FREE, env={"OPENAI_API_KEY": key, "OPENAI_LOG": "debug"})

    assert played.finish("-v") == 0
    files = [path for path in played.folder.rglob("*") if path.is_file()]
    assert not [path for path in files if key in path.read_text(errors="replace")]
    ledger = played.folder / "operators" / "balrog.ledger.jsonl"
    assert stat.S_IMODE(os.stat(ledger).st_mode) == 0o600


def test_an_endpoint_that_is_not_there_is_a_clear_error(run):
    lost = run(agent="naive", model="m", base_url="http://127.0.0.1:9/v1", max_retries=0)

    assert lost.finish() == 1

    assert "The endpoint http://127.0.0.1:9/v1 cannot be reached: Connection refused." in lost.stderr
    assert "Traceback" not in lost.stderr
    assert "cannot be reached" in json.dumps(lost.lines("run_failed"))


def test_a_model_that_is_not_served_is_a_clear_error(run, server):
    lost = run(agent="naive", base_url=server["base_url"], model="gpt-x")

    assert lost.finish() == 1
    assert 'does not list "gpt-x"' in lost.stderr
    assert "Choose from: tiny" in lost.stderr
