"""A schema that MOSAIC can check only in part is refused; the message names the keyword and the worker."""

import asyncio
import json

import pytest
from toy_worker import get_worker_schema

from mosaic.catalog.answers import Answers
from mosaic.catalog.inspector import Inspector
from mosaic.catalog.keywords import unsupported
from mosaic.model.errors import BadConfig
from mosaic.model.run import WorkerSpec

UNKNOWN = [
    ({"anyOf": [{"required": ["a"]}, {"required": ["b"]}]}, "the keyword 'anyOf' in the schema; remove it"),
    ({"properties": {"lr": {"$ref": "#/$defs/rate"}}}, "the keyword '$ref' in 'lr'; remove it"),
    ({"properties": {"envs": {"type": "integer", "multipleOf": 8}}}, "the keyword 'multipleOf' in 'envs'; remove it"),
    ({"$defs": {"rate": {"type": "number"}}}, "the keyword '$defs' in the schema"),
    ({"properties": {"extras": {"properties": {"x": {"oneOf": []}}}}}, "the keyword 'oneOf' in 'extras.x'"),
    ({"properties": {"layers": {"items": {"not": {}}}}}, "the keyword 'not' in 'layers[]'"),
    ({"properties": {"p": {"x-mosaic-algorithms": {"dqn": {"tau": {"allOf": []}}}}}}, "the keyword 'allOf' in 'p.tau'"),
    ({"properties": {"p": {"x-mosaic-chekpoint": True}}}, "'p'; did you mean 'x-mosaic-checkpoint'?"),
    ({"properties": {"p": {"type": ["integr", "null"]}}}, "'integr' in 'p' is not a JSON type"),
    ({"properties": {"p": {"additionalProperties": {"type": "number"}}}}, "'additionalProperties' in 'p' must be true"),
    ({"properties": {"p": {"items": [{"type": "number"}]}}}, "'p[]' is not described by an object"),
]


@pytest.mark.parametrize(("schema", "sentence"), UNKNOWN, ids=[sentence for _, sentence in UNKNOWN])
def test_keywords_that_cannot_be_checked_are_named(schema, sentence):
    assert sentence in unsupported(schema)


def test_annotations_and_the_keywords_of_other_programs_are_accepted():
    part = {"title": "t", "description": "d", "default": {"anyOf": 1}, "examples": [1], "format": "uri", "x-acme": 1}

    assert unsupported({"$schema": "https://json-schema.org/draft/2020-12/schema", "properties": {"a": part}}) == ""


def test_a_setting_may_have_the_name_of_a_keyword():
    assert unsupported({"properties": {"anyOf": {"type": "integer"}, "not": {"enum": ["$ref"]}}}) == ""


def test_the_schema_of_the_toy_worker_is_supported():
    assert unsupported(get_worker_schema()) == ""


def test_a_schema_that_is_nested_too_deeply_is_refused():
    schema = {}
    for _ in range(5000):
        schema = {"items": schema}

    assert unsupported(schema) == "it is nested too deeply"


@pytest.mark.parametrize("part", [{"anyOf": []}, {"$ref": "#"}, {"multipleOf": 8}], ids=lambda part: next(iter(part)))
def test_a_submit_to_a_worker_with_such_a_schema_is_refused(root, catalog, make_environment, install, part):
    source = "def get_worker_metadata():\n    return {}, {}\ndef get_worker_schema():\n    return "
    install(make_environment("mine"), "mine", "my_worker", source + json.dumps({"properties": {"steps": part}}))
    inspector = Inspector(catalog, Answers(root.answers))

    with pytest.raises(BadConfig) as error:
        asyncio.run(inspector.inspect(WorkerSpec(module="my_worker.cli", config={"steps": 3})))

    (keyword,) = part
    assert str(error.value) == (
        f"The schema of worker 'mine' cannot be used: MOSAIC does not support the keyword '{keyword}' in 'steps'; "
        "remove it from the schema."
    )
