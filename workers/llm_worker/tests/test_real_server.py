"""A real llama.cpp server with random weights: constrained output is legal, free output is nonsense."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ACTIONS, SPACE, start_server
from mosaic_sdk.ledger import read, totals

MASK = [0, 1, 1]


def play(asked, steps, **fields):
    return [asked.act(f"You see wall number {step}.", step_index=step, **fields) for step in range(steps)]


def test_output_that_is_constrained_to_the_legal_actions_is_legal(server, operator, rows):
    asked = operator(**server)
    ready = asked.begin()

    answers = play(asked, 6, action_mask=MASK)

    assert ready["views"] == ["text"]
    assert all(answer["action"] in (1, 2) for answer in answers)
    assert all(answer["report"]["illegal"] == 0 for answer in answers)
    assert [row["step_index"] for row in rows()] == list(range(6))


def test_a_row_says_what_was_asked_and_what_it_cost(server, operator, rows):
    asked = operator(**server, price_per_million_input=1.0, price_per_million_output=2.0, seed=7)
    asked.begin(seed=11, lane="a")

    play(asked, 2)

    row = rows()[1]
    place = {"run": "R1", "operator": "gpt", "lane": "a", "agent_id": "agent_0", "seed": 11, "step_index": 1}
    assert {name: row[name] for name in place} == place
    assert (row["model"], row["model_served"], row["finish_reason"]) == ("tiny", "tiny", "stop")
    assert row["server"]["n_ctx"] == 16384
    assert row["system_fingerprint"]
    assert row["tokens_in"] > row["tokens_cached"] > 0, "the server has the first turn in its cache"
    assert row["cost"] == pytest.approx((row["tokens_in"] + 2 * row["tokens_out"]) / 1e6)
    assert row["action_name"] == ACTIONS[row["action"]]["name"]


def test_the_same_episode_twice_is_the_same(server, operator, rows):
    asked = operator(**server)
    episodes = []
    for _ in range(2):
        asked.begin(seed=5)
        episodes.append([answer["action"] for answer in play(asked, 4)])

    assert episodes[0] == episodes[1]
    hashes = [row["prompt_hash"] for row in rows()]
    assert hashes[:4] == hashes[4:]
    assert len(set(hashes)) == 4


def test_free_text_of_random_weights_is_nonsense_and_the_policy_for_it_is_visible(server, operator, rows):
    asked = operator(**server, output="text", max_tokens=16, illegal_retries=1, fallback="random")
    asked.begin()

    answers = play(asked, 3, action_mask=MASK)

    assert all(answer["action"] in (1, 2) for answer in answers)
    assert [answer["report"]["fallback"] for answer in answers] == ["random"] * 3
    assert [row["illegal"] for row in rows()] == [2, 2, 2]
    assert all(row["infrastructure"] == {} for row in rows())


def test_a_thought_comes_back_as_text_when_there_is_room_for_it(server, operator, rows):
    asked = operator(**server, reasoning=True, max_tokens=24, illegal_retries=0, fallback="first")
    asked.begin()

    answer = asked.act()

    # Random weights never end their thought, so it is cut off.
    assert rows()[0]["illegal_kinds"] == {"truncated": 1}
    assert answer["report"]["finish_reason"] == "length"


def test_other_spaces_are_constrained_too(server, operator):
    asked = operator(**server, max_tokens=200)
    asked.begin(action_space={"type": "MultiDiscrete", "nvec": [2, 3]}, actions=None)

    answer = asked.act()

    assert len(answer["action"]) == 2


def test_several_agents_have_histories_of_their_own(server, operator, rows):
    asked = operator(**server)
    for agent_id in ("agent_0", "agent_1"):
        asked.begin(agent_id=agent_id)

    asked.act("Only agent_0 sees this.", agent_id="agent_0")
    tokens = [asked.act("Nothing.", agent_id="agent_1")["report"]["tokens_in"] for _ in range(2)]

    assert tokens[0] < tokens[1]
    assert [row["agent_id"] for row in rows()] == ["agent_0", "agent_1", "agent_1"]


def test_a_prompt_that_is_too_long_is_an_error_of_the_request(server, operator, rows):
    asked = operator(**server)
    asked.begin()

    answer = asked.act("x" * 40_000)

    assert answer["kind"] == "infrastructure"
    assert "exceeds the available context size" in answer["message"]
    assert rows()[0]["infrastructure"] == {"bad_request": 1}


def test_a_resumed_run_asks_nothing_that_was_answered(server, operator, rows, run_dir, tmp_path, monkeypatch):
    first = operator(**server)
    first.begin(seed=5, episode_index=1)
    before = [answer["action"] for answer in play(first, 3)]
    former = (run_dir / "operators" / "gpt.ledger.jsonl").rename(tmp_path / "former.jsonl")
    monkeypatch.setenv("MOSAIC_REPLAY_LEDGER", str(former))

    second = operator(**server)
    second.begin(seed=5, episode_index=1)
    after = play(second, 5)

    assert [answer["action"] for answer in after[:3]] == before
    assert [row["replayed"] for row in rows()] == [True] * 3 + [False] * 2
    assert {row["episode_index"] for row in rows()} == {1}
    both = totals(former, run_dir / "operators" / "gpt.ledger.jsonl")
    assert (both["decisions"], both["requests"], both["replayed"]) == (5, 5, 0)
    assert both["tokens_in"] == sum(row["tokens_in"] for row in rows())


def test_a_wrong_key_is_told_at_the_beginning(operator, tmp_path, monkeypatch):
    (tmp_path / "good").write_text("sk-the-good-key\n")
    child, ready = start_server(tmp_path, "--api-key-file", str(tmp_path / "good"))
    try:
        asked = operator(model="tiny", base_url=ready["base_url"])
        without = asked.begin()["message"]
        monkeypatch.setenv("OPENAI_API_KEY", "sk-a-wrong-key")
        wrong = operator(model="tiny", base_url=ready["base_url"]).begin()["message"]
        (tmp_path / "good").chmod(0o600)
        right = operator(model="tiny", base_url=ready["base_url"], api_key_file=str(tmp_path / "good"))
        right.begin()
        answer = right.act()
    finally:
        child.kill()
        child.wait()

    assert without.endswith(
        "Set the variable OPENAI_API_KEY where the daemon is started, or name a file in api_key_file."
    )
    assert "the key was refused (401" in wrong
    assert "sk-a-wrong-key" not in wrong
    assert answer["type"] == "action_selected"


def test_as_a_process_it_keeps_the_key_to_itself(server, run_dir, tmp_path):
    config = tmp_path / "gpt.json"
    config.write_text(json.dumps({"run_id": "R1", **server}))
    key = "sk-do-not-tell-anyone"
    lines = [
        {"cmd": "init_agent", "agent_id": "a", "seed": 1, "env_id": "X-v0", "action_space": SPACE, "actions": ACTIONS},
        {"cmd": "select_action", "agent_id": "a", "observation": [1, 2], "step_index": 0},
        {"cmd": "stop"},
    ]

    done = subprocess.run(
        [sys.executable, "-m", "llm_worker.cli", "--config", str(config), "--interactive", "-v"],
        input="".join(json.dumps(line) + "\n" for line in lines),
        env={**os.environ, "OPENAI_API_KEY": key, "OPENAI_LOG": "debug"},
        capture_output=True,
        text=True,
        timeout=60,
    )

    answers = [json.loads(line)["type"] for line in done.stdout.splitlines()]
    assert (done.returncode, answers) == (0, ["agent_ready", "action_selected", "stopped"])
    ledger = run_dir / "operators" / "gpt.ledger.jsonl"
    assert len(list(read(ledger))) == 1
    assert stat.S_IMODE(ledger.stat().st_mode) == 0o600
    everything = (
        done.stdout + done.stderr + "".join(path.read_text() for path in Path(run_dir).rglob("*") if path.is_file())
    )
    assert key not in everything
