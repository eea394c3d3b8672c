"""The model card."""

import yaml

from mosaic.exports.evaluations import EVALUATION, TRAINING, Score
from mosaic.exports.model_card import Card


def card(**changes):
    facts = {
        "name": "first",
        "library": "cleanrl",
        "algo": "ppo",
        "env_id": "CartPole-v1",
        "files": {"model.safetensors": "the weights"},
        "scores": [Score(EVALUATION, 10, 487.104, 20.3, 430.0, 500.0, "1 to 10", "01JCQ", "checkpoint-1.pt")],
        "settings": {"gamma": 0.9},
        "provenance": {"run": "01JCQ"},
    }
    return Card(**{**facts, **changes})


def front_of(text):
    _, front, body = text.split("---\n", 2)
    return yaml.safe_load(front), body


def test_the_front_matter_has_what_the_hub_reads():
    front, _ = front_of(card().text())

    assert front["library_name"] == "cleanrl"
    assert front["tags"] == ["reinforcement-learning", "CartPole-v1", "ppo", "cleanrl", "mosaic"]
    (model,) = front["model-index"]
    (result,) = model["results"]
    assert model["name"] == "ppo"
    assert result["task"]["type"] == "reinforcement-learning"
    assert result["dataset"] == {"name": "CartPole-v1", "type": "CartPole-v1"}
    assert result["metrics"] == [
        {"type": "mean_reward", "value": "487.10 +/- 20.30", "name": "mean_reward", "verified": False}
    ]


def test_returns_of_the_training_are_marked_as_such():
    front, body = front_of(card(scores=[Score(TRAINING, 60, 30.0, 9.0)]).text())

    assert front["model-index"][0]["results"][0]["metrics"][0]["name"] == "mean_reward (training episodes)"
    assert "has not been evaluated" in body
    assert "not an evaluation" in body


def test_a_run_without_results_claims_none():
    front, body = front_of(card(scores=[]).text())

    assert front["model-index"][0]["results"] == []
    assert "neither evaluations nor finished episodes" in body


def test_names_cannot_break_out_of_the_card():
    hostile = "x\n---\nlicense: mit\n| a | <script>`"

    front, body = front_of(card(name=hostile, env_id=hostile, settings={hostile: hostile}).text())

    assert set(front) == {"library_name", "tags", "model-index"}
    assert "<script>" not in body
    assert not [line for line in body.splitlines() if line.startswith("license")]


def test_the_name_of_a_file_cannot_break_out_of_the_card():
    """A worker chooses it: a checkpoint may be named like a heading of the page that its user publishes."""
    hostile = "a`\n\n# Official\n\n<script>[here](javascript:x)\x1b]0;owned\x07\u202e.pt"

    _, body = front_of(card(files={hostile: "the weights"}, clip=hostile).text())

    assert "\n# Official" not in body
    assert "<script>" not in body
    assert "\\[here\\](javascript" in body  # text, not a link
    assert not {"\x1b", "\x07", "\u202e"} & set(body)


def test_a_program_in_the_card_cannot_end_its_own_block():
    _, body = front_of(card(usage="load()\n```\n# Official").text())

    before, after = body.split("# Official")
    assert before.count("````") == 1
    assert after.startswith("\n````")
