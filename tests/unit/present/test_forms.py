"""Forms made from schemas, without a window: the toy worker's schema, small ones, and schemas that are wrong."""

import pytest
from toy_worker import get_worker_schema

from mosaic.catalog.descriptor import Descriptor
from mosaic.catalog.inspector import judge
from mosaic.catalog.request import nest, rename_fields
from mosaic.model.errors import BadConfig
from mosaic.model.run import WorkerSpec
from mosaic.present.form_fields import BOOL, CHOICE, INTEGER, JSON, LIST, NUMBER, PATH, TEXT
from mosaic.present.form_roles import ALGORITHM, ENVIRONMENT, GPU, SEED, STEPS, WANDB, suggestions
from mosaic.present.forms import OTHER, Form

ACME = {
    "type": "object",
    "additionalProperties": False,
    "required": ["env_id"],
    "x-mosaic-examples": ["algo=dqn env=Pong-v5", "this is no example"],
    "properties": {
        "algo": {
            "type": "string",
            "enum": ["ppo", "dqn"],
            "default": "ppo",
            "x-mosaic-unavailable": {"sac": "it needs a newer release"},
        },
        "env_id": {"type": "string", "examples": ["CartPole-v1"]},
        "total_timesteps": {"type": "integer", "minimum": 1, "default": 1000},
        "seed": {"type": ["integer", "null"], "default": 1},
        "layers": {"type": "array", "items": {"type": "integer"}},
        "net": {"type": "object", "description": "Network."},
        "fast": {"type": ["boolean", "null"]},
        "extras": {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                "seed": {"type": "integer", "description": "Another seed, of the environment."},
                "cuda": {"type": "boolean", "default": False},
                "track_wandb": {"type": "boolean", "default": False},
                "label": {"type": "string", "default": ""},
                "policy": {"type": "string", "x-mosaic-checkpoint": True, "default": ""},
                "algo_params": {
                    "type": "object",
                    "additionalProperties": False,
                    "properties": {"learning_rate": {"type": "number"}, "buffer_size": {"type": "integer"}},
                    "x-mosaic-algorithms": {
                        "ppo": {"learning_rate": {"type": "number", "exclusiveMinimum": 0, "default": 0.00025}},
                        "dqn": {
                            "learning_rate": {"type": "number", "exclusiveMinimum": 0, "default": 0.001},
                            "buffer_size": {"type": "integer", "minimum": 1, "default": 500},
                        },
                    },
                },
            },
        },
    },
}


@pytest.fixture
def acme():
    form = Form(ACME)
    form.set("env_id", "Pong-v5")
    return form


def refusal(settings, schema=ACME):
    """What `mosaic run` prints for these settings."""
    with pytest.raises(BadConfig) as refused:
        judge(WorkerSpec(module="acme.cli", config=nest(settings)), Descriptor(schema=schema))
    return rename_fields(str(refused.value))


def test_every_setting_is_a_field_of_its_kind(acme):
    kinds = {field.key: field.kind for field in acme.fields}

    assert kinds["algo"] == CHOICE
    assert kinds["fast"] == CHOICE
    assert (kinds["env_id"], kinds["total_timesteps"], kinds["learning_rate"]) == (TEXT, INTEGER, NUMBER)
    assert (kinds["cuda"], kinds["policy"], kinds["layers"], kinds["net"]) == (BOOL, PATH, LIST, JSON)


def test_the_settings_that_matter_are_found_by_the_names_that_workers_use(acme):
    found = {role: field.key for role, field in acme.roles.items()}

    assert found[ALGORITHM] == "algo"
    assert found[ENVIRONMENT] == "env_id"
    assert found[STEPS] == "total_timesteps"
    assert found[SEED] == "seed"
    assert found[GPU] == "cuda"
    assert found[WANDB] == "track_wandb"


def test_a_name_that_two_places_have_is_typed_with_its_place(acme):
    acme.set("extras.seed", "7")

    assert dict(acme.settings())["extras.seed"] == 7
    assert acme.problems() == {}


def test_only_what_differs_from_the_default_is_submitted(acme):
    acme.set("seed", "1")
    acme.set("total_timesteps", "5e4")

    assert acme.settings() == [("env_id", "Pong-v5"), ("total_timesteps", 50_000)]
    assert acme.is_changed("total_timesteps")
    assert not acme.is_changed("seed")
    acme.reset(["total_timesteps"])
    assert acme.text("total_timesteps") == "1000"


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("seed", "abc"),
        ("total_timesteps", "0"),
        ("total_timesteps", "1.5"),
        ("algo", "pop"),
        ("algo", "sac"),
        ("layers", '[1, "a"]'),
        ("net", "five"),
        ("cuda", "maybe"),
    ],
)
def test_an_invalid_value_gets_the_sentence_of_mosaic_run(acme, key, text):
    acme.set(key, text)

    problem = acme.problems()[key]

    said = refusal(acme.settings())
    assert said.endswith(problem.partition(":")[2])
    assert problem.startswith(f"{key}")


def test_every_problem_is_shown_at_once(acme):
    acme.set("seed", "abc")
    acme.set("learning_rate", "-1")
    acme.set("env_id", "")

    assert acme.problems() == {
        "seed": 'seed: must be an integer or null, not "abc".',
        "learning_rate": "learning_rate: must be more than 0, not -1.",
        "env_id": "env_id: missing. The worker requires it.",
    }


def test_another_algorithm_has_other_fields_and_keeps_what_still_applies(acme):
    acme.set("learning_rate", "0.5")

    assert acme.set("algo", "dqn") is True
    acme.set("buffer_size", "9")

    assert acme.field("buffer_size").algorithm == "dqn"
    assert dict(acme.settings()) == {"algo": "dqn", "env_id": "Pong-v5", "learning_rate": 0.5, "buffer_size": 9}
    acme.set("algo", "ppo")
    assert "buffer_size" not in dict(acme.settings())
    acme.set("algo", "dqn")
    assert acme.text("buffer_size") == "9"


def test_what_cannot_be_used_here_has_its_reason(acme):
    assert acme.field("algo").unavailable == {"sac": "it needs a newer release"}
    acme.set("algo", "sac")
    assert acme.problems()["algo"] == "algo: sac is unavailable here: it needs a newer release."


@pytest.mark.parametrize("text", ["123", "true", "null", "[1]", "it's", "a=b"])
def test_a_field_for_text_takes_any_text(acme, text):
    acme.set("label", text)

    assert dict(acme.settings())["label"] == text
    assert acme.problems() == {}


def test_an_empty_text_is_typed_with_quotes(acme):
    acme.set("env_id", '""')

    assert dict(acme.settings())["env_id"] == ""


def test_environments_are_suggested_from_the_schema(acme):
    assert suggestions(acme.roles[ENVIRONMENT], acme.schema) == ["CartPole-v1", "Pong-v5"]


def test_a_search_looks_at_names_help_and_choices(acme):
    assert [field.key for field in acme.matching("learning rate")] == ["learning_rate"]
    assert [field.key for field in acme.matching("another environment")] == ["extras.seed"]
    assert [field.key for field in acme.matching("dqn")] == ["algo"]
    assert acme.matching("no such thing") == []


def test_a_run_is_copied_with_all_that_it_was_given(acme):
    config = {
        "run_id": "01ABC",
        "algo": "dqn",
        "env_id": "Pong-v5",
        "seed": 4,
        "extras": {"label": "123", "algo_params": {"buffer_size": 8}, "gone": [1]},
    }

    secret = acme.fill(config)

    assert secret == []
    assert acme.settings() == [
        ("algo", "dqn"), ("env_id", "Pong-v5"), ("seed", 4), ("label", "123"), ("buffer_size", 8), ("extras.gone", [1])
    ]  # fmt: skip
    assert "gone" in acme.problems()[OTHER]


def test_a_masked_secret_is_not_copied(acme):
    assert acme.fill({"env_id": "Pong-v5", "extras": {"label": "***"}}) == ["extras.label"]
    assert acme.settings() == [("env_id", "Pong-v5")]


def test_what_was_typed_is_remembered(acme):
    acme.set("algo", "dqn")
    acme.set("buffer_size", "9")

    again = Form(ACME)
    again.restore(acme.typed())

    assert again.settings() == acme.settings()
    again.restore({"texts": ["damaged"], "other": 3})
    assert again.settings() == []


def test_secrets_are_not_remembered():
    form = Form({"properties": {"api_key": {"type": "string"}, "steps": {"type": "integer"}}})
    form.set("api_key", "very secret")
    form.set("steps", "5")
    form.other = "extras.password=hunter2\nlr=0.1"

    assert form.typed() == {"texts": {"steps": "5"}, "other": "lr=0.1"}


def test_lines_without_a_field_are_settings_too(acme):
    acme.other = "labe=x\n"
    assert acme.problems() == {OTHER: "labe: the worker has no such setting. Did you mean 'label'?"}
    acme.other = "nonsense"
    assert acme.problems()[OTHER].startswith("'nonsense' is not of the form key=value")
    acme.other = "seed=1\nseed=2"
    assert acme.problems()[OTHER] == "seed: given twice."


@pytest.mark.parametrize("schema", [{}, {"properties": {"a": 5}}, {"properties": {"extras": {"properties": [1]}}}])
def test_without_a_usable_schema_lines_of_settings_are_left(schema):
    form = Form(schema)

    form.other = "steps=5\nextras.lr=1e-3"

    assert form.is_open
    assert form.settings() == [("steps", 5), ("extras.lr", 0.001)]
    assert form.problems() == {}


def test_a_schema_that_only_the_check_cannot_read_rejects_nothing():
    form = Form({"properties": {"a": {"type": "string", "pattern": "("}}})

    form.set("a", "x")

    assert form.problems() == {}
    assert form.settings() == [("a", "x")]


def test_the_toy_worker_has_a_form():
    form = Form(get_worker_schema())

    form.set("steps", "many")

    assert form.roles[STEPS].key == "steps"
    assert form.roles[SEED].key == "seed"
    assert form.problems() == {"steps": 'steps: must be an integer, not "many".'}
