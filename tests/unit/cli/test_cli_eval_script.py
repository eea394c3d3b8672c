"""The options of `mosaic eval` make a script."""

import pytest

from mosaic.cli.eval import _place_words
from mosaic.cli.eval_script import document_of
from mosaic.cli.main import build_parser
from mosaic.cli.verb import BadUsage


def parsed(*words):
    args = build_parser(["eval"]).parse(["eval", *words])
    _place_words(args)
    return args


def document(*words):
    return document_of(parsed("--env", "E", *words))


def test_operators_are_named_after_their_kind():
    words = ["random", "rl:last", "rl:01JCQ:best", "worker:toy", "me=human", "random"]
    options = [part for word in words for part in ("--operator", word)]

    assert document(*options)["operators"] == {
        "random": "random",
        "rl": "rl:last",
        "rl-2": "rl:01JCQ:best",
        "toy": "worker:toy",
        "me": "human",
        "random-2": "random",
    }


def test_settings_belong_to_an_operator_and_its_own_fields_stay_outside():
    words = ("--operator", "llm:gpt", "--operator", "me=human")
    sets = ("--set", "llm.temperature=0", "--set", "llm.extra.top_p=0.5", "--set", "me.time_limit_s=30")

    operators = document(*words, *sets)["operators"]

    assert operators["llm"]["settings"] == {"model": "gpt", "temperature": 0, "extra": {"top_p": 0.5}}
    assert operators["me"]["time_limit_s"] == 30
    assert "settings" not in operators["me"]


def test_the_other_options_are_keys_of_the_script():
    words = ("--seeds", "0-4", "--max-steps", "9", "--video", "2", "--pace", "1.5", "--episodes", "3")
    agents = ("--operator", "a=random", "--agent", "player_0=a", "--agent", "*=a")

    assert document(*words, *agents) == {
        "env": "E",
        "operators": {"a": "random"},
        "lanes": [{"agents": {"player_0": "a", "*": "a"}}],
        "seeds": "0-4",
        "max_steps": 9,
        "video": 2,
        "pace": 1.5,
        "episodes": 3,
    }
    assert document("--operator", "random", "--seeds", "1,5,9")["seeds"] == [1, 5, 9]
    assert document("--operator", "random", "--video")["video"] == 1


def test_options_come_on_top_of_a_file(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_text("env: F\nseeds: 0-9\noperators: {a: random, b: {kind: llm, model: m}}\ngroups: {}\n")

    made = document_of(parsed(str(path), "--operator", "human", "--seeds", "3-4", "--set", "b.temperature=1"))

    assert (made["env"], made["seeds"], made["groups"]) == ("F", "3-4", {})
    assert made["operators"]["b"] == {"kind": "llm", "model": "m", "settings": {"temperature": 1}}
    assert list(made["operators"]) == ["a", "b", "human"]


@pytest.mark.parametrize(
    "words", [("--video", "last"), ("last", "--video"), ("--video", "--best", "last"), ("--best", "--video", "last")]
)
def test_video_without_a_number_still_takes_a_run(words):
    args = parsed(*words)

    assert (args.run, args.video, args.settings) == ("last", True, [])


def test_settings_of_a_run_may_follow_video():
    args = parsed("last", "--video", "gamma=0.9", "x=1")

    assert (args.run, args.video, args.settings) == ("last", True, ["gamma=0.9", "x=1"])


def test_a_setting_is_not_taken_for_a_run():
    with pytest.raises(BadUsage, match="'steps=3': settings of an operator are given with --set"):
        document("--operator", "random", "steps=3")


@pytest.mark.parametrize("pace", ["-1", "fast", "inf", "nan"])
def test_a_pace_is_a_number(pace, capsys):
    with pytest.raises(SystemExit):
        parsed("--env", "E", "--operator", "random", "--pace", pace)

    assert f"'{pace}' is not a number of steps per second" in capsys.readouterr().err
