from dataclasses import dataclass, field
from typing import Any

import pytest
from mosaic_sdk.schema import schema_of
from toy_worker import get_worker_schema
from toy_worker.config import ToyConfig

from mosaic.catalog.schema import check, help_rows, put_in_place, variant_for
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


SCHEMA = schema_of(Config)


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
        ({"total_timesteps": "many"}, 'c.total_timesteps: it must be a whole number, not "many".'),
        ({"total_timesteps": True}, "c.total_timesteps: it must be a whole number, not true."),
        ({"total_timesteps": 0}, "c.total_timesteps: it must be at least 1, not 0."),
        ({"seed": 1.5}, "c.seed: it must be a whole number or null, not 1.5."),
        ({"algo": "pop"}, 'c.algo: it must be one of ppo, dqn, not "pop".'),
        ({"alog": "ppo"}, "c.alog: the worker has no such key. Did you mean 'algo'?"),
        ({"lerning_rate": 1}, "c.lerning_rate: the worker has no such key. Did you mean 'learning_rate'?"),
        (
            {"extras": {"algo_params": {"learning_rate": 0}}},
            "c.extras.algo_params.learning_rate: it must be more than 0, not 0.",
        ),
        ({"extras": {"capture": 1}}, "c.extras.capture: it must be true or false, not 1."),
        ({"extras": []}, "c.extras: it must be an object, not []."),
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


def test_help_tells_kind_default_and_place():
    rows = {row[0]: row[1:] for row in help_rows(SCHEMA)}

    assert rows["algo"] == ("ppo|dqn", "ppo", "the algorithm")
    assert rows["total_timesteps"] == ("integer ≥ 1", "1000", "")
    assert rows["learning_rate"] == ("number > 0", "0.0003", "(extras.algo_params) ")
    assert "run_id" not in rows


def test_a_schema_may_map_an_algorithm_to_its_variant():
    schema = {"x-mosaic-variants": {"algo": {"ppo_jax": "jax"}}}

    assert [variant_for({"algo": algo}, schema) for algo in ("ppo_jax", "ppo")] == ["jax", ""]


def test_the_toy_worker_takes_what_its_schema_takes():
    schema = get_worker_schema()

    for name, config in schema["x-mosaic-lab"].items():
        check(config, schema, name)
        ToyConfig.from_dict({"run_id": "x", **config})
    with pytest.raises(BadConfig, match="Did you mean 'steps'"):
        check({"stpes": 1}, schema, "c")
    assert set(ToyConfig.__annotations__) <= set(schema["properties"])


def test_a_mistyped_one_of_many_choices_gets_the_nearest_ones():
    choices = [f"algorithm_{number}" for number in range(30)]

    with pytest.raises(BadConfig, match=r"none of its 30 values\. Did you mean .*algorithm_7"):
        check({"algo": "algoritm_7"}, {"properties": {"algo": {"enum": choices}}}, "c")
