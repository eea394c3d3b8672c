"""metadata.operators: what is read, what is refused, and what a policy and a script mean for an operator's settings."""

import json

import pytest

from mosaic.catalog.interactive import Interactive
from mosaic.model.errors import BadConfig
from mosaic.model.rundir import EVALS
from mosaic.submit.config import read_config
from mosaic.submit.operator_settings import operator_config
from mosaic.submit.operators import read_asked
from mosaic.submit.policy import Policy, policy_of
from mosaic.submit.section import Section

RL = {"kind": "rl", "run": "last"}
SCHEMA = {
    "type": "object",
    "properties": {"env_id": {"type": "string"}, "algo": {"type": "string"}, "policy_path": {"type": "string"}},
}
WAY = Interactive(
    {"policy_path": "{checkpoint}", "env_id": "{env_id}", "algo": "{algo}", "cuda": "{parent}"},
    ("--interactive",),
    ("{env}", "gym_{env}"),
)


def read(operators):
    return read_asked(Section({"operators": operators}, "metadata"))


def settings(entry, policy=None, way=WAY, **more):
    (asked,) = read({"ppo": entry})
    return operator_config(asked, way, SCHEMA, policy or Policy(), **more)


BAD = {
    "not an object": ([], "metadata.operators", "must be an object"),
    "null": ({"a": None}, "metadata.operators.a", "must be an object, not null"),
    "an empty name": ({"": RL}, "metadata.operators.", "1 to 40 letters"),
    "a long name": ({"a" * 41: RL}, f"metadata.operators.{'a' * 41}", "1 to 40 letters"),
    "a path as a name": ({"../a": RL}, "metadata.operators.../a", "not a valid name"),
    "a folder as a name": ({"..": RL}, "metadata.operators...", "not a valid name"),
    "a newline in a name": ({"a\n": RL}, "metadata.operators.a\n", "not a valid name"),
    "a kind that is no text": ({"a": {"kind": 3}}, "metadata.operators.a.kind", "must be a string"),
    "a key of another kind": ({"a": {**RL, "worker": "toy"}}, "metadata.operators.a.worker", "unknown field"),
    "a number as a checkpoint": ({"a": {**RL, "checkpoint": 3}}, "metadata.operators.a.checkpoint", "must be a string"),
    "settings in a list": ({"a": {**RL, "settings": []}}, "metadata.operators.a.settings", "must be an object"),
    "an env without an id": ({"a": {**RL, "env": {}}}, "metadata.operators.a.env.id", "missing"),
    "an unknown key of env": (
        {"a": {**RL, "env": {"id": "x", "wraps": []}}},
        "metadata.operators.a.env.wraps",
        "Did you mean 'wrappers'?",
    ),
    "wrappers that are no list": (
        {"a": {**RL, "env": {"id": "x", "wrappers": {}}}},
        "metadata.operators.a.env.wrappers",
        "must be a list",
    ),
    "too many": ({f"a{n}": RL for n in range(65)}, "metadata.operators", "the maximum is 64"),
}


@pytest.mark.parametrize(("operators", "field", "why"), BAD.values(), ids=list(BAD))
def test_bad_operators_are_refused_with_the_field(operators, field, why):
    with pytest.raises(BadConfig) as refused:
        read(operators)

    assert refused.value.field == field
    assert why in str(refused.value)


def test_a_run_with_operators_is_an_evaluation():
    document = {"metadata": {"worker": {"module": "any.cli"}, "operators": {"a": RL}}}

    assert read_config(document).area == EVALS
    assert read_config({"metadata": {"worker": {"module": "eval_worker.cli"}}}).area == EVALS
    assert read_config({"metadata": {"worker": {"module": "evals.cli"}, "operators": {}}}).area == "runs"


def test_a_recorded_operator_is_read_back():
    worker = {"module": "toy_worker.cli", "name": "toy", "arguments": ["--interactive"], "config": {"steps": 3}}
    entry = {**RL, "env": {"id": "toy"}, "resolved": {"worker": worker, "about": {"worker": "toy", "step": 4}}}

    operator = read_config({"metadata": {"worker": {"module": "a.b"}, "operators": {"a": entry}}}).operators["a"]

    assert (operator.worker.module, operator.worker.arguments) == ("toy_worker.cli", ("--interactive",))
    assert (operator.worker.config, operator.about["step"], operator.owns_env) == ({"steps": 3}, 4, True)


def test_placeholders_are_filled_and_those_without_a_value_are_left_out():
    found = settings({**RL, "env": {"id": "CartPole-v1"}}, Policy(("CartPole-v1",), "dqn"), checkpoint="/a.pt")

    assert found == {"policy_path": "/a.pt", "env_id": "CartPole-v1", "algo": "dqn"}
    assert settings(RL, parent={"cuda": True}) == {"cuda": True}
    assert settings({"kind": "worker", "worker": "x", "env": {"id": "Pong"}}) == {"env_id": "Pong"}


@pytest.mark.parametrize(
    ("asked", "own"), [("A-v1", "A-v1"), ("A-v1", "gym_A-v1"), ("pack:A-v1", "A-v1"), ("A-v1", "pack:A-v1")]
)
def test_an_environment_may_have_several_names(asked, own):
    assert settings({**RL, "env": {"id": asked}}, Policy((own,)))["env_id"] == own


def test_a_policy_of_a_curriculum_plays_each_of_its_environments():
    assert settings({**RL, "env": {"id": "B-v1"}}, Policy(("A-v1", "B-v1")))["env_id"] == "B-v1"


def test_a_policy_of_another_environment_is_refused():
    with pytest.raises(BadConfig, match=r"trained on A-v1, and the environment to play is B-v1\. Choose another run"):
        settings({**RL, "env": {"id": "B-v1"}}, Policy(("A-v1",)))


def test_an_operator_that_only_selects_actions_may_be_of_another_environment():
    assert settings(RL, Policy(("A-v1",)))["env_id"] == "A-v1"


@pytest.mark.parametrize(("name", "value"), [("algo", "ppo"), ("env_id", "B-v1")])
def test_settings_that_contradict_the_policy_are_refused(name, value):
    with pytest.raises(BadConfig, match=f"settings.{name}: the policy's .* not {value}"):
        settings({**RL, "settings": {name: value}}, Policy(("A-v1",), "dqn"))


def test_arguments_of_the_environment_need_a_worker_that_takes_them():
    entry = {**RL, "env": {"id": "A-v1", "kwargs": {"size": 5}}}
    able = Interactive({"env_kwargs": "{env_kwargs}"})

    assert settings(entry, way=able) == {"env_kwargs": {"size": 5}}
    with pytest.raises(BadConfig, match=r"env.kwargs: .* set owns_env: false"):
        settings(entry)


def test_the_policy_is_what_the_checkpoint_records(tmp_path):
    path = tmp_path / "checkpoint.pt"
    path.write_text("x")
    stages = [{"env_id": "B-v1"}, {"env_id": "C-v1"}]
    record = {"env_id": "A-v1", "algo": "ppo", "settings": {"extras": {"curriculum_schedule": stages}}}
    (tmp_path / "checkpoint.pt.commit.json").write_text(json.dumps(record))

    assert policy_of(str(path), {"env_id": "Z", "algo": "z"}) == Policy(("A-v1", "B-v1", "C-v1"), "ppo")


def test_without_a_record_the_policy_is_what_its_run_was_given(tmp_path):
    assert policy_of(str(tmp_path), {"env": "A-v1", "algo": "ppo"}) == Policy(("A-v1",), "ppo")
    assert policy_of(str(tmp_path), {"algo": 3}) == Policy()
