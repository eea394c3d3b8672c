from dataclasses import dataclass, field
from typing import Any

import pytest
from mosaic_sdk.schema import schema_of
from toy_worker import get_worker_schema
from toy_worker.config import ToyConfig

from mosaic.catalog.check import check
from mosaic.catalog.common import with_common
from mosaic.catalog.placement import put_in_place
from mosaic.catalog.schema import help_rows, unavailable, variant_for
from mosaic.model.errors import BadConfig


@dataclass
class Config:
    run_id: str = ""
    seed: int | None = None
    algo: str = field(default="ppo", metadata={"choices": ["ppo", "dqn"], "help": "the algorithm"})
    total_timesteps: int = field(default=1000, metadata={"minimum": 1})
    capture: bool = field(default=False, metadata={"place": "extras"})
    learning_rate: float = field(default=3e-4, metadata={"exclusiveMinimum": 0, "place": "extras.algo_params"})
    layers: list = field(default_factory=lambda: [64, 64], metadata={"place": "extras.algo_params"})
    anything: Any = None


SCHEMA = with_common(schema_of(Config))


def test_a_short_key_finds_its_place():
    settings = {"algo": "dqn", "learning_rate": 0.1, "capture": True, "extras": {"mine": 1}, "unknown": 2}

    assert put_in_place(settings, SCHEMA) == {
        "algo": "dqn",
        "unknown": 2,
        "extras": {"algo_params": {"learning_rate": 0.1}, "capture": True, "mine": 1},
    }
    assert put_in_place({"x": 1}, {}) == {"x": 1}


def test_a_config_that_fits_passes():
    extras = {"fastlane_slot": 1, "algo_params": {"learning_rate": 1, "layers": [1]}}

    check({"run_id": "x", "worker_id": "w", "seed": None, "anything": object(), "extras": extras}, SCHEMA, "c")
    check({"total_timesteps": 10.0}, SCHEMA, "c")  # JSON Schema: a whole number


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        ({"total_timesteps": "many"}, 'c.total_timesteps: must be an integer, not "many".'),
        ({"total_timesteps": True}, "c.total_timesteps: must be an integer, not true."),
        ({"total_timesteps": 0}, "c.total_timesteps: must be at least 1, not 0."),
        (
            {"extras": {"algo_params": {"learning_rate": float("nan")}}},
            "c.extras.algo_params.learning_rate: must be more than 0, not NaN.",
        ),
        ({"seed": 1.5}, "c.seed: must be an integer or null, not 1.5."),
        ({"algo": "pop"}, 'c.algo: must be one of ppo, dqn, not "pop".'),
        ({"alog": "ppo"}, "c.alog: the worker has no such setting. Did you mean 'algo'?"),
        ({"lerning_rate": 1}, "c.lerning_rate: the worker has no such setting. Did you mean 'learning_rate'?"),
        (
            {"extras": {"algo_params": {"learning_rate": 0}}},
            "c.extras.algo_params.learning_rate: must be more than 0, not 0.",
        ),
        (
            {"extras": {"lerning_rate": 1}},
            "c.extras.lerning_rate: the worker has no such setting. Did you mean 'learning_rate'?",
        ),
        (
            {"extras": {"fastlane_slots": 1}},
            "c.extras.fastlane_slots: the worker has no such setting. Did you mean 'fastlane_slot'?",
        ),
        ({"extras": {"fastlane_slot": 64}}, "c.extras.fastlane_slot: must be at most 63, not 64."),
        (
            {"extras": {"algo_params": {"lr": 1}}},
            "c.extras.algo_params.lr: the worker has no such setting. Its settings: layers, learning_rate.",
        ),
        ({"extras": {"capture": 1}}, "c.extras.capture: must be true or false, not 1."),
        ({"extras": []}, "c.extras: must be an object, not []."),
    ],
)
def test_a_value_the_worker_would_not_take_is_named_with_its_field(config, sentence):
    with pytest.raises(BadConfig) as error:
        check(config, SCHEMA, "c")

    assert str(error.value) == sentence


@pytest.mark.parametrize(
    ("part", "bad"),
    [
        ({"type": "array", "items": {"type": "integer"}}, [1, "x"]),
        ({"type": "array", "maxItems": 1}, [1, 2]),
        ({"type": "string", "pattern": "^a"}, "b"),
        ({"type": "string", "minLength": 2}, "b"),
        ({"const": 3}, 4),
        ({"type": "object", "required": ["x"]}, {}),
    ],
)
def test_the_other_keywords_are_understood(part, bad):
    with pytest.raises(BadConfig):
        check({"key": bad}, {"properties": {"key": part}}, "c")


def test_help_shows_type_and_default():
    rows = {row[0]: row[1:] for row in help_rows(SCHEMA)}

    assert rows["algo"] == ("ppo|dqn", "ppo", "the algorithm")
    assert rows["total_timesteps"] == ("integer ≥ 1", "1000", "")
    assert rows["learning_rate"] == ("number > 0", "0.0003", "")
    assert "run_id" not in rows


def test_a_schema_may_map_an_algorithm_to_its_variant():
    schema = {"x-mosaic-variants": {"algo": {"ppo_jax": "jax"}}}

    assert variant_for({"algo": "ppo_jax"}, schema) == ("jax", "algo=ppo_jax")
    assert variant_for({"algo": "ppo"}, schema) == ("", "")


def test_the_toy_worker_accepts_what_its_schema_accepts():
    schema = get_worker_schema()

    for name, keys in schema["x-mosaic-lab"].items():
        config = {key: value for key, value in keys.items() if key != "observation"}  # what the agent is asked about
        check(config, schema, name)
        ToyConfig.from_dict({"run_id": "x", **config})
    for ignored in ("algo", "env_id", "name", "variant"):
        with pytest.raises(BadConfig, match="the worker has no such setting"):
            check({ignored: "x"}, schema, "c")
    with pytest.raises(BadConfig, match="Did you mean 'steps'"):
        check({"stpes": 1}, schema, "c")
    among_extras = set(schema["properties"]["extras"]["properties"])
    assert set(ToyConfig.names()) <= set(schema["properties"]) | among_extras


def test_a_mistyped_choice_among_many_gets_the_nearest_ones():
    choices = [f"algorithm_{number}" for number in range(30)]

    with pytest.raises(BadConfig, match=r"not one of its 30 valid values\. Did you mean .*algorithm_7"):
        check({"algo": "algoritm_7"}, {"properties": {"algo": {"enum": choices}}}, "c")


NAMES = {
    "properties": {
        "algo": {
            "type": "string",
            "enum": ["ppo", "dqn"],
            "x-mosaic-unavailable": {"pqn": "release 2 has it, and 1 is installed"},
            "x-mosaic-open-with": "extras.checkout",
        },
        "extras": {
            "type": "object",
            "properties": {
                "checkout": {"type": "string"},
                "algo_params": {
                    "type": "object",
                    "properties": {"gamma": {"type": "number"}, "buffer_size": {"type": ["integer", "number"]}},
                    "additionalProperties": False,
                    "x-mosaic-algorithms": {"ppo": {"gamma": {}}, "dqn": {"buffer_size": {"type": "integer"}}},
                    "x-mosaic-open-with": "extras.checkout",
                },
            },
        },
    }
}


def test_an_unavailable_value_is_refused_with_the_reason():
    with pytest.raises(BadConfig) as error:
        check({"algo": "pqn"}, NAMES, "c")

    assert str(error.value) == "c.algo: pqn is unavailable here: release 2 has it, and 1 is installed."
    assert unavailable(NAMES) == {"algo": {"pqn": "release 2 has it, and 1 is installed"}}
    assert unavailable(SCHEMA) == {}


def test_a_key_may_allow_any_value_of_another():
    check({"algo": "pqn", "extras": {"checkout": "/mine"}}, NAMES, "c")
    check({"algo": "mine", "extras": {"checkout": "/mine", "algo_params": {"warmth": 1}}}, NAMES, "c")

    with pytest.raises(BadConfig, match=r"c\.algo: must be a string, not 3"):
        check({"algo": 3, "extras": {"checkout": "/mine"}}, NAMES, "c")
    with pytest.raises(BadConfig, match=r"c\.algo: must be one of ppo, dqn"):
        check({"algo": "mine", "extras": {"checkout": ""}}, NAMES, "c")


@pytest.mark.parametrize(
    ("algo", "params", "sentence"),
    [
        ("ppo", {"buffer_size": 3}, "c.extras.algo_params.buffer_size: ppo has no such setting. Its settings: gamma."),
        ("dqn", {"gama": 3}, "c.extras.algo_params.gama: dqn has no such setting. Its settings: buffer_size."),
        ("dqn", {"buffer_size": 1.5}, "c.extras.algo_params.buffer_size: must be an integer, not 1.5."),
    ],
)
def test_a_named_algorithm_accepts_its_own_hyperparameters(algo, params, sentence):
    with pytest.raises(BadConfig) as error:
        check({"algo": algo, "extras": {"algo_params": params}}, NAMES, "c")

    assert str(error.value) == sentence


def test_without_a_named_algorithm_the_hyperparameters_of_any_are_accepted():
    check({"extras": {"algo_params": {"gamma": 0.9, "buffer_size": 1.5}}}, NAMES, "c")


def test_a_value_that_does_not_match_a_pattern_is_refused_with_its_examples():
    part = {"type": "string", "pattern": r"^steps>=\d+$", "examples": ["steps>=100"]}

    with pytest.raises(BadConfig, match=r'must look like steps>=100; "stepps>=3" does not'):
        check({"condition": "stepps>=3"}, {"properties": {"condition": part}}, "c")


def test_an_unknown_short_key_goes_to_a_place_that_another_key_opens():
    settings = {"warmth": 1, "checkout": "/mine", "gamma": 0.9}

    assert put_in_place(settings, NAMES)["extras"] == {"checkout": "/mine", "algo_params": {"gamma": 0.9, "warmth": 1}}
    assert put_in_place({"warmth": 1, "checkout": ""}, NAMES)["warmth"] == 1


def test_a_worker_with_very_many_keys_does_not_list_them_all():
    schema = {"properties": {f"key_{number}": {} for number in range(99)}, "additionalProperties": False}

    with pytest.raises(BadConfig, match=r"It has 99 settings; list them with: mosaic run WORKER --help"):
        check({"warmth": 1}, schema, "c")


def test_extras_that_a_schema_does_not_mention_are_as_strict_as_the_rest():
    check({"extras": {"mine": 1}}, with_common({"properties": {}}), "c")
    check({"extras": {"mine": 1}}, with_common({"properties": {"extras": {}}, "additionalProperties": False}), "c")
    check({"run_id": "x", "extras": {"store_observations": True}}, with_common({"additionalProperties": False}), "c")

    with pytest.raises(BadConfig, match=r"c\.extras\.mine: the worker has no such setting"):
        check({"extras": {"mine": 1}}, with_common({"additionalProperties": False}), "c")


def test_a_worker_without_a_schema_has_no_common_keys_either():
    assert with_common({}) == {}
