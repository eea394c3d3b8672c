"""The grammar of conditions on runs, and what their comparisons mean."""

import pytest

from mosaic.model.errors import BadQuery
from mosaic.model.ordering import ordered, sort_names
from mosaic.model.where import All, Comparison, Either, Missing, Not, names_in, parse_where

RUN = {
    **{"algo": "PPO", "env": "CartPole-v1", "state": "TERMINATED", "tag": ["paper", "lr-sweep"], "seed": 3},
    **{
        "return": 412.5,
        "age": 5400.0,
        "lr": 0.001,
        "batch": "32",
        "anneal": True,
        "layers": [64, 64],
        "loss": float("nan"),
    },
    **{"losses/value loss": 0.5, "note": "it's good"},
}
ALIASES = {"env_id": "env"}


def holds(condition, run=RUN):
    """Evaluates a condition the plain way."""
    if isinstance(condition, Comparison):
        value = run.get(ALIASES.get(condition.name, condition.name))
        return value is not None and condition.test(value)
    if isinstance(condition, Missing):
        return run.get(condition.name) is None
    if isinstance(condition, Not):
        return not holds(condition.part, run)
    results = [holds(part, run) for part in condition.parts]
    return all(results) if isinstance(condition, All) else any(results)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("algo=ppo and env_id~cartpole and return>400", True),
        ("algo=dqn or seed=3 and return<400", False),
        ("(algo=dqn or seed=3) and return>400", True),
        ("not algo=dqn", True),
        ("not not algo=dqn", False),
        ("NOT algo=dqn AND seed=3", True),
        ("algo==ppo", False),
        ("algo==PPO", True),
        ("algo!=ppo", False),
        ("algo=dqn,ppo", True),
        ("algo!=dqn,ppo", False),
        ("seed=1,2,3", True),
        ("state=done", True),
        ("state=live,failed", False),
        ("state!=over", False),
        ("state~termin", True),
        ("tag=paper", True),
        ("tag=sweep", False),
        ("tag~sweep", True),
        ("tag!=paper", False),
        ("age<2h", True),
        ("age>=90m", True),
        ("return>0.4k", True),
        ("lr=1e-3", True),
        ("lr>=1e-3 and lr<=0.001", True),
        ("batch=32", True),
        ("batch>16", False),  # it is text in this run
        ("anneal=true", True),
        ("layers~64,64", True),
        ('layers="[64,64]"', True),
        ("loss=nan", True),
        ("loss>0", False),
        ('"losses/value loss" <= 0.5', True),
        ("note = 'it\\'s good'", True),
        ('note ~ "it\'s"', True),
        ("momentum=0.9", False),
        ("momentum!=0.9", False),  # a missing value meets no comparison
        ("not momentum=0.9", True),
        ("momentum is missing", True),
        ("momentum is not missing", False),
        ("lr is missing or seed is not missing", True),
    ],
)
def test_a_condition_holds_as_it_reads(text, expected):
    assert holds(parse_where(text)) is expected


@pytest.mark.parametrize(
    ("text", "column", "expected"),
    [
        ("", 0, "the name of a field"),
        ("return>", 7, "a value after >"),
        ("algo=ppo and", 12, "the name of a field"),
        ("algo ppo", 5, "expected =, !="),
        ("algo=ppo return>4", 9, "and, or, or the end"),
        ("(a=1 or b=2", 11, "expected ) for the ( at character 1"),
        ("a=1)", 3, "and, or, or the end"),
        ("state=livee", 6, "Did you mean 'live'?"),
        ("return>high", 7, "a number, not 'high'"),
        ("lr<small", 3, "a number, not 'small'"),
        ("age<2x", 4, "a duration"),
        ("algo<3", 4, "algo is text: expected =, !=, == or ~"),
        ("steps~3", 5, "steps is a number: expected ="),
        ("steps>1,2", 8, "one value after >"),
        ("!a=1", 0, "'!' is not an operator"),
        ('a="x', 2, "no closing"),
        ("x is mising", 5, "missing or not missing"),
        ("x is not there", 9, "expected missing after is"),
        ("and=1", 0, "the name of a field"),
        ("日本=1 日本", 5, "and, or"),
    ],
)
def test_what_does_not_parse_is_refused_with_a_caret_under_the_place(text, column, expected):
    with pytest.raises(BadQuery) as caught:
        parse_where(text)

    sentence, shown, caret = str(caught.value).split("\n")
    assert expected in sentence
    assert shown == f"  {text}"
    wide = sum(letter in "日本" for letter in text[:column])
    assert caret == " " * (2 + column + wide) + "^"


def test_a_long_condition_is_shown_around_the_place():
    text = " and ".join(["algo=ppo"] * 100) + " nonsense"

    with pytest.raises(BadQuery) as caught:
        parse_where(text)

    _, shown, caret = str(caught.value).split("\n")
    assert len(shown) < 110
    assert shown[caret.index("^") :].startswith("nonsense")


@pytest.mark.parametrize("text", ["(" * 5000 + "a=1" + ")" * 5000, "not " * 2000 + "a=1", "a=" + "x" * 20_000])
def test_an_endless_condition_is_refused_and_not_followed_down(text):
    with pytest.raises(BadQuery):
        parse_where(text)


def test_a_condition_knows_its_names():
    condition = parse_where("a=1 and (b~x or not c is missing) and extras.algo_params.lr>0 and a<3")

    assert list(names_in(condition)) == ["a", "b", "c", "extras.algo_params.lr", "a"]
    assert isinstance(condition.parts[1], Either)


def test_missing_values_come_last_in_either_direction():
    items = [{"n": 1, "v": 2.0}, {"n": 2}, {"n": 3, "v": float("nan")}, {"n": 4, "v": 9}, {"n": 5, "v": "a"}]

    def numbers(sort):
        return [item["n"] for item in ordered(items, sort_names(sort), lambda item, name: item.get(name))]

    assert numbers("v") == [1, 4, 5, 2, 3]
    assert numbers("-v") == [5, 4, 1, 2, 3]


def test_runs_that_are_equal_in_the_first_name_are_ordered_by_the_next():
    items = [(1, "b"), (2, "c"), (1, "a")]

    found = ordered(items, sort_names("-number, letter"), lambda item, name: item[name == "letter"])

    assert found == [(2, "c"), (1, "a"), (1, "b")]
