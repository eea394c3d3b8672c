"""`payload.parts`: what is read, and what is refused."""

import pytest

from mosaic.catalog.request import part_of
from mosaic.model.errors import BadConfig
from mosaic.model.run import GpuRequest, Part, ResourceRequest, Role
from mosaic.submit.config import read_config
from mosaic.submit.derive import Parent, derive
from mosaic.submit.parts import place_of
from mosaic.submit.validate import validate

ID = "01ARZ3NDEKTSV4RRFFQ69G5FAV"


def config(*parts, **payload):
    return {"metadata": {"worker": {"module": "toy_worker.cli"}}, "payload": {"parts": list(parts), **payload}}


def test_parts_are_read_with_their_places_and_resources():
    whole = {"name": "env", "count": 3, "on": "slurm:cpu", "resources": {"cpus": 8, "gpus": {"requested": 1}}}

    read = read_config(config(whole, {"name": "replay"})).parts

    assert read == (Part("env", 3, "slurm:cpu", GpuRequest(1), ResourceRequest(8.0)), Part("replay"))


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ("env", r"payload\.parts: must be a list of objects"),
        (["env"], r"payload\.parts\[0\]: must be an object"),
        ([{"count": 2}], r"payload\.parts\[0\]\.name: '' is not a valid name"),
        ([{"name": "env", "count": 0}], r"parts\[0\]\.count: must be between 1 and 256"),
        ([{"name": "env", "cuont": 2}], r"parts\[0\]\.cuont: unknown field\. Did you mean 'count'"),
        ([{"name": "env", "resources": {"cpu": 2}}], r"resources\.cpu: unknown field\. Did you mean 'cpus'"),
        ([{"name": "env", "on": "a b"}], "'a b' is not valid"),
        ([{"name": "env"}, {"name": "env"}], "names a part twice"),
        ([{"name": "env", "count": 200}, {"name": "b", "count": 57}], "has more than 256 runs"),
        ([{"name": 1}] * 257, "has more than 256 runs"),  # before any of them is read
    ],
)
def test_what_cannot_be_a_part_is_refused(parts, words):
    with pytest.raises(BadConfig, match=words):
        read_config({**config(), "payload": {"parts": parts}})


@pytest.mark.parametrize(
    ("part", "words"),
    [
        ({"name": "helper", "on": "nowhere"}, "nowhere"),
        ({"name": "helper", "resources": {"cpus": 5}}, "5 are requested but runs on this machine may use 4"),
        ({"name": "helper", "resources": {"gpus": {"requested": 9, "mandatory": True}}}, "9 are mandatory"),
    ],
)
def test_a_part_that_could_never_start_is_refused_with_its_name(make_context, part, words):
    with pytest.raises(BadConfig, match=f"payload.parts: 'helper': .*{words}"):
        validate(config(part), make_context())


@pytest.mark.parametrize(
    ("on", "own", "place"),
    [("", "", ""), ("", "slurm", "slurm"), ("local", "slurm", ""), ("ray", "slurm", "ray"), ("ray", "", "ray")],
)
def test_a_part_runs_where_its_run_does_unless_it_says_otherwise(on, own, place):
    assert place_of(Part("env", on=on), own) == place


def test_the_role_of_a_part_is_read():
    role = {"part": "env", "index": 1, "count": 2, "number": 3, "address": "a:1"}
    document = config()
    document["metadata"] |= {"parent_run_id": ID, "relation": "part", "role": role}

    assert read_config(document).role == Role("env", 1, 2, 3, "a:1")


def test_a_resumed_run_has_the_parts_of_its_parent():
    document = config({"name": "helper", "count": 2})
    schema = {"x-mosaic-resume": {"checkpoint": "{checkpoint}"}}
    parent = Parent(ID, "main", "toy", document, schema)

    assert derive({"metadata": {}}, parent, "resume", {"checkpoint": "/c"})["payload"]["parts"] == [
        {"name": "helper", "count": 2}
    ]


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("replay", {"name": "replay"}),
        ("env:2", {"name": "env", "count": 2}),
        ("env:2@slurm:cpu", {"name": "env", "count": 2, "on": "slurm:cpu"}),
        ("replay@ray", {"name": "replay", "on": "ray"}),
    ],
)
def test_a_part_on_the_command_line(text, part):
    assert part_of(text) == part


@pytest.mark.parametrize("text", ["", ":2", "env:", "env:two", "env@", "@ray"])
def test_what_is_not_a_part_on_the_command_line(text):
    with pytest.raises(BadConfig, match=r"run_options\.parts: .* Write NAME\[:COUNT\]\[@PLACE\]"):
        part_of(text)
