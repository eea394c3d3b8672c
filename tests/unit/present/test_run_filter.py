"""The filter of the list of runs, in the window and in the terminal."""

import time

import pytest

from mosaic.present.run_filter import EXAMPLES, FIELDS, BadFilter, parse_filter


@pytest.fixture
def runs(make_run):
    now = time.time()
    return {
        "a": make_run(
            name="cartpole s1",
            worker_name="cleanrl",
            algo="ppo",
            env_id="CartPole-v1",
            seed=1,
            tags=["sweep", "Ablation"],
            total_steps=100,
            created_at=now - 600,
            summary={"env_steps": 62, "mean_return": 412.0, "mean_over": 9, "steps_per_s": 900},
        ),
        "b": make_run(
            "FAULTED",
            name="walker run",
            worker_name="dreamer",
            env_id="walker_walk",
            reason="exit code 1: ValueError",
            created_at=now - 8000,
            summary={"env_steps": 2_000_000, "mean_return": -3.0, "mean_over": 1},
        ),
        "c": make_run("INIT", name="pong", worker_name="cleanrl", algo="dqn", waiting_for="a GPU"),
        "d": make_run("CANCELLED", name="run of cartpole", algo="ppo"),
        "e": make_run("TERMINATED", name="ev", area="evals", summary={"eval_mean": 500, "eval_episodes": 5}),
    }


def found(runs, text):
    chosen = parse_filter(text).chosen(runs.values())
    return "".join(letter for letter, run in runs.items() if run in chosen)


@pytest.mark.parametrize(
    ("text", "letters"),
    [
        ("", "abcde"),
        ("   ", "abcde"),
        ("cartpole", "ad"),
        ("CARTPOLE run", "ad"),
        ("walker run", "b"),
        ('"run of"', "d"),
        ('-"run of" cartpole', "a"),
        ("cartpole -s1", "d"),
        ("-cartpole", "bce"),
        ("cartpole -", "ad"),
        ('"unclosed', ""),
        ("state:live", "ac"),
        ("state:over", "bde"),
        ("state:running", "a"),
        ("state:waiting", "c"),
        ("state:done", "e"),
        ("state:failed,cancelled", "bd"),
        ("STATE:Faulted", "b"),
        ("-state:live", "bde"),
        ("algo:ppo", "ad"),
        ("algo:ppo,dqn", "acd"),
        ("algo=ppo state:live", "a"),
        ("env:cartpole", "a"),
        ("worker:cleanrl", "ac"),
        ("tag:sweep", "a"),
        ("tag:ablation", "a"),
        ("tag:x", ""),
        ('name:"of cart"', "d"),
        ("reason:valueerror", "b"),
        ("return>400", "ae"),
        ("return>=412", "ae"),
        ("return<0", "b"),
        ("return<-2.5", "b"),
        ("-return>400", "bcd"),
        ("steps>1e6", "b"),
        ("steps>1M", "b"),
        ("steps>1.5m", "b"),
        ("progress>50%", "a"),
        ("rate>800", "a"),
        ("seed:1", "a"),
        ("seed=2", ""),
        ("age>5m", "ab"),
        ("age<2h", "acde"),
        ("age<2h state:live cartpole", "a"),
        ("nothing like it", ""),
    ],
)
def test_every_part_of_a_filter_must_match(runs, text, letters):
    assert found(runs, text) == letters


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("stat:live", "stat: is not a field of a run. Did you mean 'state'?"),
        ("http://host", "http: is not a field of a run. Choose from: state, name"),
        ("state:", "state: needs a value, for example state:live."),
        ("return>", "return> needs a value, for example return>400."),
        ("return>abc", 'return: must be a number, not "abc".'),
        ("return>%", 'return: must be a number, not "%".'),
        ("age<soon", "age: 'soon' is not a valid duration. Write it as 90s"),
        ("state:runing", "state: \"runing\" is not a state. Did you mean 'running'?"),
        ("name>3", "name: is text and cannot be compared with >. Write name:3."),
        ("state:,", "state: needs a value, for example state:live."),
    ],
)
def test_a_bad_filter_gets_a_sentence(text, sentence):
    with pytest.raises(BadFilter) as caught:
        parse_filter(text)

    assert str(caught.value).startswith(sentence)
    assert "\n" not in str(caught.value)


def test_control_characters_of_a_bad_filter_are_not_repeated():
    with pytest.raises(BadFilter) as caught:
        parse_filter("return>\x1b[2Jx")

    assert "\x1b" not in str(caught.value)


@pytest.mark.parametrize("field", FIELDS)
def test_every_field_has_an_example_that_is_understood(field):
    with pytest.raises(BadFilter) as caught:
        parse_filter(f"{field}:")

    example = EXAMPLES.get(field, f"{field}:x")
    assert example in str(caught.value)
    assert parse_filter(example).conditions


def test_a_number_that_a_run_does_not_have_matches_no_comparison(make_run):
    run = make_run("INIT")

    assert not parse_filter("return>0").chosen([run])
    assert not parse_filter("return<=0").chosen([run])
    assert not parse_filter("seed<5").chosen([run])


def test_a_filter_of_a_hundred_thousand_characters_is_understood(make_run):
    assert parse_filter("x" * 100_000).chosen([make_run()]) == []
    assert parse_filter("-" * 10_000 + '"' * 10_000).chosen([make_run()])
