"""The evaluation script: what it accepts, what it becomes, and how it refuses."""

import json

import pytest
from mosaic_sdk.config import ConfigError
from mosaic_sdk.operators.script import EvalScript

SHORT = {"env": "CartPole-v1", "operators": {"a": "random"}}
FULL = {
    "name": "all-keys",
    "env": {"id": "pettingzoo/connect_four_v3", "kwargs": {"x": 1}, "wrappers": ["a:B", {"name": "C"}], "api": "aec"},
    "operators": {
        "ppo": {"kind": "rl", "run": "last", "checkpoint": "best", "settings": {"cuda": True}, "owns_env": False},
        "gpt": {"kind": "llm", "model": "m", "base_url": "http://127.0.0.1:1/v1", "settings": {"temperature": 0}},
        "toy": {"kind": "worker", "worker": "toy", "timeout_s": 5},
        "me": {"kind": "human", "time_limit_s": 30},
        "chance": "random",
    },
    "lanes": [{"name": "mixed", "agents": {"player_0": "ppo", "*": "gpt"}}, "toy", {"operator": "me"}, "chance"],
    "groups": {"red": ["player_0", "player_1"]},
    "rotate": True,
    "seeds": {"procedural": 7, "count": 3},
    "max_steps": 100,
    "parallel": 2,
    "on_done": "wait",
    "pace": 4,
    "video": 2,
    "record": ["ppo"],
}


def parse(**keys):
    return EvalScript.parse({**SHORT, **keys})


def test_a_short_script_gets_every_default():
    assert EvalScript.parse(SHORT).to_dict() == {
        "name": "",
        "env": {"id": "CartPole-v1", "kwargs": {}, "wrappers": [], "api": "auto"},
        "operators": {"a": {"kind": "random", "timeout_s": 60.0}},
        "lanes": None,
        "groups": {},
        "rotate": False,
        "seeds": list(range(1_000_000, 1_000_010)),
        "max_steps": None,
        "parallel": 1,
        "on_done": "next",
        "pace": 0.0,
        "video": 0,
        "record": [],
    }


@pytest.mark.parametrize("document", [SHORT, FULL])
def test_parsing_the_normal_form_gives_the_same_script(document):
    script = EvalScript.parse(document)

    assert EvalScript.parse(json.loads(json.dumps(script.to_dict()))) == script


def test_parsing_changes_nothing_in_the_document():
    before = json.dumps(FULL)

    EvalScript.parse(FULL)

    assert json.dumps(FULL) == before


@pytest.mark.parametrize(
    ("short", "long"),
    [
        ("random", {"kind": "random", "timeout_s": 60.0}),
        ("passive", {"kind": "passive", "timeout_s": 60.0}),
        ("human", {"kind": "human", "time_limit_s": None, "timeout_s": None}),
        ("rl:01J", {"run": "01J", "checkpoint": ""}),
        ("rl:01J:best", {"run": "01J", "checkpoint": "best"}),
        ("rl:01J:/a/b:c.pt", {"run": "01J", "checkpoint": "/a/b:c.pt"}),
        ("llm:qwen:7b", {"kind": "llm", "settings": {"model": "qwen:7b"}, "timeout_s": 600.0}),
        ("worker:toy", {"kind": "worker", "worker": "toy", "settings": {}, "owns_env": True, "timeout_s": 60.0}),
    ],
)
def test_short_forms_of_operators(short, long):
    if short.startswith("rl"):
        long = {"kind": "rl", **long, "settings": {}, "owns_env": True, "timeout_s": 60.0}

    assert parse(operators={"a": short}).operators == {"a": long}


def test_the_endpoint_of_an_llm_is_among_its_settings():
    operator = EvalScript.parse(FULL).operators["gpt"]

    assert operator["settings"] == {"temperature": 0, "model": "m", "base_url": "http://127.0.0.1:1/v1"}
    assert set(operator) == {"kind", "settings", "timeout_s"}


@pytest.mark.parametrize(
    ("seeds", "found"),
    [
        ("0-3", [0, 1, 2, 3]),
        ("7", [7]),
        (" 1, 5-6 ", [1, 5, 6]),
        (7, [7]),
        ([1, 5, 9], [1, 5, 9]),
        ({"first": 1000, "count": 3}, [1000, 1001, 1002]),
        ({"fixed": 7, "count": 3}, [7, 7, 7]),
    ],
)
def test_seeds(seeds, found):
    assert parse(seeds=seeds).seeds == found


def test_procedural_seeds_are_always_the_same_and_all_different():
    seeds = parse(seeds={"procedural": 7, "count": 50}).seeds

    assert seeds == parse(seeds={"procedural": 7}, episodes=50).seeds
    assert seeds != parse(seeds={"procedural": 8, "count": 50}).seeds
    assert len(set(seeds)) == 50
    # Of this and every later Python: a script must mean the same seeds next year.
    assert seeds[:3] == [1475861810, 79939516, 1305724707]


def test_episodes_is_the_count_of_seeds_without_one():
    assert parse(episodes=3).seeds == [1_000_000, 1_000_001, 1_000_002]
    assert parse(seeds={"first": 5}, episodes=2).seeds == [5, 6]
    assert parse(seeds="0-4", episodes=5).seeds == [0, 1, 2, 3, 4]


def test_manual_mode_waits_by_default_and_human_operators_are_recorded():
    document = {**SHORT, "operators": {"a": "random", "me": "human"}}

    assert EvalScript.parse(document, mode="manual").on_done == "wait"
    assert EvalScript.parse({**document, "on_done": "next"}, mode="manual").on_done == "next"
    assert EvalScript.parse(document).record == ["me"]
    assert EvalScript.parse({**document, "record": []}).record == []


def test_only_operators_of_other_workers_need_a_command():
    assert list(EvalScript.parse(FULL).resolved_operators) == ["ppo", "gpt", "toy"]


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"sedes": "0-1"}, "sedes: there is no such key. Did you mean 'seeds'?"),
        ({"env": None}, "env is missing."),
        ({"env": 3}, "env: must be an object, not 3."),
        ({"env": ""}, "env: must not be empty."),
        ({"env": {"kwargs": {}}}, "env.id is missing: name an environment, such as MiniGrid-Empty-8x8-v0."),
        ({"env": {"id": "x", "kwarg": {}}}, "env.kwarg: there is no such key. Did you mean 'kwargs'?"),
        ({"env": {"id": "x", "api": "both"}}, 'env.api: must be one of auto, aec, parallel, not "both".'),
        ({"env": {"id": "x", "wrappers": [3]}}, "env.wrappers[0]: must be an object, not 3."),
        ({"operators": None}, "operators is missing."),
        ({"operators": {}}, "operators: must name at least one operator."),
        ({"operators": ["random"]}, 'operators: must be an object, not ["random"].'),
        ({"operators": {"a b": "random"}}, 'operators: "a b" is not a valid name. Use at most 40 letters'),
        ({"operators": {1: "random"}}, "operators: the key 1 must be a string. Write it in quotes."),
        ({"operators": {"a": "randm"}}, "operators.a: must be random, passive, human, rl:RUN, rl:RUN:best"),
        ({"operators": {"a": "rl:"}}, 'llm:MODEL@URL or worker:NAME, not "rl:".'),
        ({"operators": {"a": "rndom"}}, "llm:MODEL@URL or worker:NAME, not \"rndom\". Did you mean 'random'?"),
        (
            {"operators": {"a": {}}},
            "operators.a.kind is missing. Choose from: rl, llm, worker, human, random, passive.",
        ),
        ({"operators": {"a": {"kind": "lm"}}}, "operators.a.kind: there is no kind \"lm\". Did you mean 'llm'?"),
        ({"operators": {"a": {"kind": "rl"}}}, "operators.a.run is missing."),
        ({"operators": {"a": {"kind": "llm"}}}, "operators.a.model is missing: name the model"),
        ({"operators": {"a": {"kind": "random", "model": "x"}}}, "operators.a.model: there is no such key."),
        ({"operators": {"a": {"kind": "human", "time_limit_s": 0}}}, "time_limit_s: must be more than 0, not 0."),
        (
            {"operators": {"a": {"kind": "random", "timeout_s": "x"}}},
            'operators.a.timeout_s: must be a number, not "x".',
        ),
        (
            {"operators": {"a": {"kind": "llm", "model": "x", "settings": {"model": "y"}}}},
            "operators.a.model: is the same setting as operators.a.settings.model but has another value.",
        ),
        ({"lanes": []}, "lanes: must have at least one lane."),
        ({"lanes": ["b"]}, 'lanes[0].operator: there is no operator "b". Choose from: a.'),
        ({"lanes": [{"name": "x"}]}, "lanes[0]: must have either operator or agents."),
        ({"lanes": [{"operator": "a", "agents": {"p": "a"}}]}, "lanes[0]: must have either operator or agents."),
        ({"lanes": [{"agents": {}}]}, "lanes[0].agents: must name the operator of at least one agent."),
        ({"lanes": ["a", "a"]}, "lanes: two lanes have the name a. Give each a name of its own."),
        ({"operators": {"a": "random", "b": "random"}, "lanes": ["a"]}, "operators.b: is in no lane."),
        ({"groups": {"red": ["x"], "blue": ["x"]}}, "groups.blue: x is in red already. An agent is in one group."),
        ({"seeds": "a-b"}, 'seeds: must look like 0-19 or 1,5,9; "a-b" does not.'),
        ({"seeds": "9-1"}, 'seeds: "9-1" ends before it begins.'),
        (
            {"operators": {"a": {"kind": "llm", "model": "x", "base_url": "http://me:secret@127.0.0.1/v1"}}},
            "operators.a.base_url: must not contain a user name, a password or a query.",
        ),
        (
            {"operators": {"a": {"kind": "llm", "model": "x", "settings": {"base_url": "http://h/v1?key=secret"}}}},
            "operators.a.base_url: must not contain a user name, a password or a query.",
        ),
        ({"seeds": []}, "seeds: must have at least one seed."),
        ({"seeds": "9" * 5000}, 'seeds: must be at most 2147483647, not "9999'),
        ({"seeds": "0-" + "9" * 5000}, 'seeds: must be at most 2147483647, not "0-9999'),
        ({"pace": float("inf")}, "pace: must be at most 1000000, not Infinity."),
        (
            {"operators": {"a": {"kind": "random", "timeout_s": 1e300}}},
            "operators.a.timeout_s: must be at most 1000000000",
        ),
        ({"seeds": [1, -1]}, "seeds[1]: must be at least 0, not -1."),
        ({"seeds": [True]}, "seeds[0]: must be an integer, not true."),
        ({"seeds": {"first": 1, "fixed": 2}}, "seeds: must have one of first, procedural, fixed, not 2."),
        ({"seeds": {"count": 2}}, "seeds: must have one of first, procedural, fixed, not none."),
        ({"seeds": {"frist": 2}}, "seeds.frist: there is no such key. Did you mean 'first'?"),
        ({"seeds": "0-999999999"}, "seeds: must be at most 100000 seeds"),
        ({"seeds": "99999999999"}, "seeds: must be at most 2147483647, not 99999999999."),
        ({"seeds": {"first": 2**31 - 1, "count": 2}}, "seeds: must be at most 2147483647; the last one would be"),
        ({"seeds": "0-4", "episodes": 7}, "episodes: is 7, but seeds has 5. Remove one of the two."),
        ({"episodes": "abc"}, 'episodes: must be an integer, not "abc".'),
        ({"max_steps": 0}, "max_steps: must be at least 1, not 0."),
        ({"parallel": 0}, "parallel: must be at least 1, not 0."),
        ({"on_done": "stop"}, 'on_done: must be one of next, wait, not "stop".'),
        ({"pace": -1}, "pace: must be at least 0, not -1."),
        ({"pace": float("nan")}, "pace: must be at least 0, not NaN."),
        ({"video": 1.5}, "video: must be an integer, not 1.5."),
        ({"record": ["me"]}, 'record[0]: there is no operator "me". Choose from: a.'),
        ({"record": [["a"]]}, "record[0]: must be a string"),
        ({"name": "a/b"}, 'name: "a/b" is not a valid name.'),
    ],
)
def test_what_is_wrong_is_refused_with_its_key(keys, message):
    with pytest.raises(ConfigError) as refused:
        parse(**keys)

    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("document", [None, [], "x", 3])
def test_a_document_that_is_no_object_is_refused(document):
    with pytest.raises(ConfigError, match="The script: must be an object"):
        EvalScript.parse(document)


def test_an_llm_may_name_its_endpoint():
    operators = {"q": "llm:qwen:7b@http://127.0.0.1:8080/v1", "c": "llm:@cf/meta/llama"}

    script = EvalScript.parse({"env": "X-v0", "operators": operators})

    assert script.operators["q"]["settings"] == {"model": "qwen:7b", "base_url": "http://127.0.0.1:8080/v1"}
    assert script.operators["c"]["settings"] == {"model": "@cf/meta/llama"}


def test_an_endpoint_without_a_scheme_is_not_taken_for_a_model():
    with pytest.raises(ConfigError, match="after @ there must be an address"):
        EvalScript.parse({"env": "X-v0", "operators": {"q": "llm:qwen@127.0.0.1:8080"}})
