"""x-mosaic-interactive in a worker's schema."""

import pytest
from toy_worker import get_worker_schema

from mosaic.catalog.interactive import Interactive
from mosaic.catalog.keywords import unsupported
from mosaic.catalog.schema import schema_problem

KEYWORD = "x-mosaic-interactive"


def test_a_worker_without_the_keyword_cannot_be_an_operator():
    assert Interactive.of({"properties": {}}) is None


def test_the_toy_worker_is_an_operator_with_one_environment():
    way = Interactive.of(get_worker_schema())

    assert way.arguments == ("--interactive",)
    assert way.only_envs == ("toy",)
    assert way.is_same("toy", "toy")
    assert not way.is_same("CartPole-v1", "toy")


def test_a_worker_that_names_no_environments_takes_any():
    way = Interactive.of({KEYWORD: {"arguments": ["--interactive"]}})

    assert (way.only_envs, way.is_same("A-v1", "A-v1"), way.is_same("A-v1", "B-v1")) == ((), True, False)


@pytest.mark.parametrize(
    ("way", "problem"),
    [
        (True, "is not an object"),
        ({"setting": {}}, "has the unknown key 'setting'"),
        ({"settings": []}, "has settings that are not an object"),
        ({"arguments": "--interactive"}, "has arguments that are not a list of strings"),
        ({"env_ids": [3]}, "has env_ids that are not a list of strings"),
    ],
)
def test_a_schema_with_an_invalid_value_is_refused(way, problem):
    assert unsupported({KEYWORD: way}) == f"{KEYWORD} {problem}"


def test_settings_inside_each_other_are_refused():
    schema = {KEYWORD: {"settings": {"extras": {}, "extras.mode": "interactive"}}}

    assert schema_problem(schema) == f"{KEYWORD} sets extras and also a key inside it"
