"""The rows of the composer become a script; a script and its results become facts and tables."""

import pytest
from evaluation_events import episode, started
from mosaic_sdk.operators.script import EvalScript
from mosaic_sdk.results.summary import EvalResults

from mosaic.client.evaluation_state import EvaluationState
from mosaic.present.eval_draft import EvaluationDraft, OperatorDraft, free_name, place_of
from mosaic.present.eval_listing import listing
from mosaic.present.eval_plan import facts_of, people_of
from mosaic.present.eval_tables import live_table, results_of
from mosaic.present.trained_runs import known_envs, last_finished, trained_runs

DUEL = EvaluationDraft(
    "Corridor",
    (
        OperatorDraft("policy", "rl", run="01J", checkpoint="best"),
        OperatorDraft("me", "human", time_limit_s="30"),
        OperatorDraft("model", "llm", model="qwen", base_url="http://localhost:1/v1", key_env="KEY"),
    ),
    seeds="0-3",
    max_steps="40",
)


def test_a_draft_is_a_script_that_parses():
    script = EvalScript.parse(DUEL.document(), "manual")

    assert script.seeds == [0, 1, 2, 3]
    assert script.operators["me"]["time_limit_s"] == 30.0
    assert script.operators["model"]["settings"]["api_key_env"] == "KEY"
    assert DUEL.problem() == ""


def test_the_command_line_does_the_same():
    assert DUEL.command_line(is_manual=True) == (
        "mosaic eval --env Corridor --operator policy=rl:01J:best --operator me=human --operator "
        "model=llm:qwen@http://localhost:1/v1 --seeds 0-3 --max-steps 40 --set me.time_limit_s=30 --set "
        "model.api_key_env=KEY --manual"
    )


@pytest.mark.parametrize(
    ("draft", "problem"),
    [
        (EvaluationDraft("", ()), "env is missing"),
        (EvaluationDraft("E", (OperatorDraft("a"), OperatorDraft("a"))), "operators.a: there are two operators"),
        (EvaluationDraft("E", (OperatorDraft("p", "rl"),)), "operators.p.run is missing: choose a trained run."),
    ],
)
def test_what_a_form_can_get_wrong_is_said_in_words(draft, problem):
    assert problem in draft.problem()


@pytest.mark.parametrize(
    ("message", "place"),
    [
        ("operators.me-2.model is missing", "operators.me-2"),
        ("operators.me: must be …", "operators.me"),
        ("seeds: must be …", "seeds"),
        ("Something else", ""),
    ],
)
def test_an_error_finds_its_field(message, place):
    assert place_of(message, ["me", "me-2"]) == place


def test_names_are_free():
    assert free_name("human", []) == "me"
    assert free_name("random", ["random", "random-2"]) == "random-3"


def test_a_script_is_summarised():
    script = EvalScript.parse({"env": "E", "operators": {"a": "random", "me": "human"}, "seeds": "0-19"})

    facts = dict(facts_of(script))

    assert facts["Seeds"] == "0, 1, 2 … 19 (20)"
    assert facts["Episodes"] == "40, 20 episodes in each of 2 lanes"
    assert facts["Operators"] == "a: random\nme: person"
    assert people_of(script) == ["me"]


def test_results_are_tables_sentences_and_warnings():
    found = EvalResults(run_id="r", env_id="E", seeds=range(8), operators={"a": {}, "b": {}})
    for seed in range(8):
        for name, total in (("a", 1.0 + seed / 10), ("b", 0.0)):
            has_failed = name == "b" and seed == 7
            row = {"lane": name, "env_index": 0, "operator": name, "agent_id": name, "episode_index": seed}
            found.add({**row, "seed": seed, "return": total, "length": 5, "failed": has_failed, "reason": "crash"})

    results = results_of(found.summary())

    operators, pairs = results.tables
    assert operators.headings[:3] == ("Operator", "Episodes", "Mean return [95 %]")
    assert operators.rows[1][1] == "7 of 8"
    assert pairs.rows[0][0] == "a – b"
    assert dict(zip(pairs.headings, pairs.rows[0], strict=True))["Better"] == "7"
    assert results.sentences[0].startswith("a beats b by")
    assert any("failed" in text for text in results.warnings)
    assert results.tsv().splitlines()[0].split("\t")[0] == "Operator"


def test_the_live_table_has_means_and_the_time_left():
    state = EvaluationState()
    state.receive([started("ppo", "me", mode="script")])
    state.receive([episode(total=4.0, at_s=1010.0)])

    table = live_table(state)

    assert table.rows[0] == ("ppo", "1 of 2", "4", "-", "-", "0", "0", "10s")
    assert table.rows[1][1] == "0 of 2"


def test_runs_are_offered_as_policies(make_run):
    old = make_run("TERMINATED", name="old", env_id="A-v0", algo="ppo", created_at=1.0)
    new = make_run("TERMINATED", name="new", env_id="B-v0", created_at=2.0)
    judged = make_run("EXECUTING", name="judged", area="evals", created_at=3.0)
    waiting = make_run("INIT", name="waiting", created_at=4.0)
    runs = [old, new, judged, waiting]

    assert [title for _, title in trained_runs(runs)] == ["new · B-v0", "old · ppo · A-v0"]
    assert last_finished(runs) is new
    assert known_envs(runs)[:2] == ["B-v0", "A-v0"]
    assert [title for _, title, _ in listing(runs)] == ["judged"]
