"""Every client's settings end up where the worker reads them."""

import pytest
from mosaic_sdk.schema import schema_of

from mosaic.catalog.common import with_common
from mosaic.catalog.placement import put_in_place, with_integers
from mosaic.model.errors import BadConfig

PARAMS = {
    "learning_rate": {"type": "number"},
    "num_envs": {"type": "integer"},
    "either": {"type": ["integer", "number"]},
}
SCHEMA = with_common(
    {
        "properties": {
            "seed": {"type": "integer"},
            "stages": {"type": "array", "items": {"type": "object", "properties": {"steps": {"type": "integer"}}}},
            "extras": {
                "properties": {
                    "cuda": {"type": "boolean"},
                    "algo_params": {"type": "object", "properties": PARAMS, "additionalProperties": False},
                },
                "additionalProperties": False,
            },
        },
        "additionalProperties": False,
    }
)


@pytest.mark.parametrize(
    "settings",
    [
        {"learning_rate": 0.1},
        {"extras": {"learning_rate": 0.1}},
        {"extras": {"algo_params": {"learning_rate": 0.1}}},
        {"algo_params": {"learning_rate": 0.1}},
        {"learning_rate": 0.1, "extras": {"algo_params": {"learning_rate": 0.1}}},
    ],
)
def test_an_algorithms_setting_is_found_in_any_place(settings):
    before = repr(settings)

    assert put_in_place(settings, SCHEMA) == {"extras": {"algo_params": {"learning_rate": 0.1}}}
    assert repr(settings) == before


def test_a_key_is_moved_to_an_outer_or_an_inner_place():
    settings = {"mode": "policy_eval", "extras": {"seed": 3, "algo_params": {"cuda": True, "num_envs": 2}}}

    assert put_in_place(settings, SCHEMA) == {
        "seed": 3,
        "extras": {"mode": "policy_eval", "cuda": True, "algo_params": {"num_envs": 2}},
    }


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (
            {"extras": {"learning_rate": 0.2, "algo_params": {"learning_rate": 0.1}}},
            "c.extras.learning_rate: is the same setting as extras.algo_params.learning_rate but has another value. "
            "Keep one of them.",
        ),
        ({"seed": 1, "extras": {"seed": 2}}, "c.extras.seed: is the same setting as seed but has another value. Keep"),
        (
            {"algo_params": {"num_envs": 1}, "extras": {"algo_params": {"num_envs": 2}}},
            "c.algo_params.num_envs: is the same setting as extras.algo_params.num_envs but has another value.",
        ),
    ],
)
def test_two_different_values_of_one_setting_are_refused(settings, sentence):
    with pytest.raises(BadConfig) as error:
        put_in_place(settings, SCHEMA, "c")

    assert str(error.value).startswith(sentence)


SECOND = with_common(
    {"properties": {"steps": {"type": "integer"}, "total": {"type": "integer", "x-mosaic-same-as": "steps"}}}
)


def test_a_setting_with_two_names_is_stored_under_its_first():
    assert put_in_place({"total": 3}, SECOND) == {"steps": 3} == put_in_place({"steps": 3, "total": 3}, SECOND)

    with pytest.raises(BadConfig) as error:
        put_in_place({"steps": 3, "total": 4}, SECOND, "c")

    assert str(error.value) == "c.total: is the same setting as steps but has another value. Keep one of them."


def test_unknown_keys_stay_where_they_are():
    settings = {"warmth": 1, "extras": {"colour": 2, "algo_params": {"smell": 3}}}

    assert put_in_place(settings, SCHEMA) == settings
    assert put_in_place({"extras": 3, "cuda": True}, SCHEMA) == {"extras": 3, "cuda": True}


def test_an_open_place_keeps_its_own_keys():
    class Config:
        seed: int = 0

    is_open = with_common(schema_of(Config, closed=False))

    assert put_in_place({"extras": {"seed": 2}}, is_open) == {"extras": {"seed": 2}}


def test_an_integral_float_is_passed_on_as_an_integer():
    settings = {"seed": 1e5, "stages": [{"steps": 2e3}], "extras": {"algo_params": {"num_envs": 4.0, "either": 1e3}}}
    settings["extras"]["algo_params"]["learning_rate"] = 1.0

    whole = with_integers(settings, SCHEMA)

    assert repr(whole) == repr(
        {
            "seed": 100000,
            "stages": [{"steps": 2000}],
            "extras": {"algo_params": {"num_envs": 4, "either": 1e3, "learning_rate": 1.0}},
        }
    )
    assert with_integers({"seed": 1.5}, SCHEMA) == {"seed": 1.5}
