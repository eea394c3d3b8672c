import pytest

from mosaic.cli.experiment_file import read_file
from mosaic.cli.main import build_parser
from mosaic.cli.run import run_options
from mosaic.cli.sweep import describe, document_of, parse_axes, parse_seeds, split_values
from mosaic.cli.verb import BadUsage
from mosaic.model.errors import MosaicError
from mosaic.model.experiment import label, point_key, points, read_document, run_key


@pytest.mark.parametrize(
    ("text", "seeds"), [("0-3", [0, 1, 2, 3]), ("0,1,5", [0, 1, 5]), ("0-2,10", [0, 1, 2, 10]), ("7", [7]), ("", [])]
)
def test_seeds_are_numbers_and_ranges(text, seeds):
    assert parse_seeds(text) == seeds


@pytest.mark.parametrize("text", ["a", "3-1", "-1", "1,,2", "1-", "1,1", "0-2,1", "0-99999999"])
def test_what_is_no_list_of_seeds_is_refused(text):
    with pytest.raises(BadUsage, match="--seeds"):
        parse_seeds(text)


def test_the_values_of_a_sweep_are_parsed_as_those_of_settings():
    axes = parse_axes(["lr=1e-4,3e-4", "env=A-v1,B-v1", "layers=[64,64],[32]", 'x.y="a,b",true,null'])

    assert axes == {
        "lr": [1e-4, 3e-4],
        "env_id": ["A-v1", "B-v1"],
        "layers": [[64, 64], [32]],
        "x.y": ["a,b", True, None],
    }
    assert list(split_values('{"a": [1,2]},b')) == ['{"a": [1,2]}', "b"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["lr"], "write the setting and its values"),
        (["lr="], "write the setting and its values"),
        (["lr=1,,2"], "a value is empty"),
        (["lr=1", "lr=2"], "given twice"),
        (["seed=1,2"], "--seeds 1,2"),
    ],
)
def test_what_is_no_sweep_is_refused(arguments, said):
    with pytest.raises(BadUsage, match=said):
        parse_axes(arguments)


def document(*words):
    args = build_parser(["run"]).parse(["run", "toy", "--seeds", "0-1", *words])
    return document_of(args, run_options(args))


def test_each_run_has_every_option_of_the_command_line():
    made = document(
        *("--name", "x", "--tag", "a", "--gpus", "1", "--gpus-mandatory", "--cpus", "0", "--memory", "1G"),
        *("--on", "slurm:gpu", "--requeue-as-resume", "2", "--part", "env:2@slurm:cpu"),
        *("--time-limit", "1h", "--spin-limit", "0", "--commands"),
    )

    assert made["options"] == {
        "tags": ["a"],
        "gpus": 1,
        "gpus_mandatory": True,
        "cpus": 0,
        "memory_mb": 1024,
        "limits": {"time_s": 3600, "spin_s": 0},
        "commands": True,
        "on": "slurm:gpu",
        "requeue_as_resume": 2,
        "parts": ["env:2@slurm:cpu"],
    }
    assert document()["options"] == {}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--cwd", "/tmp"], "--cwd is for your own programs"),
        (["--var", "A=b"], "--var is for your own programs"),
        (["--env-of", "cleanrl"], "--env-of cannot be combined with --seeds"),
        (["--set", "a=b"], "--set cannot be combined with --seeds"),
        (["--no-observe"], "--no-observe cannot be combined with --seeds"),
        (["--idempotency-key", "k"], "--idempotency-key is for one run"),
    ],
)
def test_an_option_that_runs_of_an_experiment_cannot_have_is_refused(words, said):
    with pytest.raises(BadUsage, match=said):
        document(*words)


@pytest.mark.parametrize(
    ("axes", "seeds", "said"),
    [({}, [], "nothing varies"), ({}, [3], "1 seed"), ({"a": [1, 2]}, [0, 1], "2 × a, 2 seeds")],
)
def test_an_experiment_is_described_in_a_few_words(axes, seeds, said):
    assert describe({"axes": axes, "seeds": seeds}) == said


def test_equal_points_have_equal_keys_however_they_are_written():
    assert point_key({"a": 1e5, "b": [1.0]}) == point_key({"b": [1], "a": 100000})
    assert run_key("x", {"a": 1}) == run_key("x", {"a": 1.0}) != run_key("x", {"a": 2})
    assert run_key("x", {"a": 1}, "01") == f"{run_key('x', {'a': 1})}/retry-01"


def test_the_seeds_of_a_group_come_one_after_another():
    document = read_document({"worker": "toy", "axes": {"a": [1, 2], "b": ["x"]}, "seeds": [3, 4]})

    assert [label(point) for point in points(document)] == [
        "a=1 b=x seed=3",
        "a=1 b=x seed=4",
        "a=2 b=x seed=3",
        "a=2 b=x seed=4",
    ]


def test_a_file_has_the_same_document_as_the_options(tmp_path):
    file = tmp_path / "lr-sweep.yaml"
    file.write_text("worker: cleanrl@jax\nbase: {env: A-v1, extras.x: 1}\naxes: {lr: [1e-4, 3]}\nseeds: 0-2,7\n")

    name, document = read_file(file)

    assert name == "lr-sweep"
    assert (document["worker"], document["variant"]) == ("cleanrl", "jax")
    assert document["base"] == {"env_id": "A-v1", "extras": {"x": 1}}
    assert document["axes"] == {"lr": [1e-4, 3]}
    assert document["seeds"] == [0, 1, 2, 7]


def test_words_that_yaml_once_took_for_booleans_are_words(tmp_path):
    file = tmp_path / "x.yaml"
    file.write_text("worker: toy\nbase: {a: off, b: yes, c: true, d: False}\noptions: {on: slurm}\n")

    _, document = read_file(file)

    assert document["options"] == {"on": "slurm"}
    assert document["base"] == {"a": "off", "b": "yes", "c": True, "d": False}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("worker: toy\nseed: 3\n", "there is no key 'seed'. Did you mean 'seeds'"),
        ("base: {}\n", "the worker is missing"),
        ("worker: toy\nname: a b\n", "'a b' is not a valid name"),
        ("worker: toy\naxes: {lr: 3}\n", "axes.lr: must be a list"),
        ("worker: toy\nworker: dqn\n", "is given twice"),
        ("- a\n", "must contain keys such as worker"),
        ("worker: toy\noptions: {cpu: 1}\n", "x.yaml: options.cpu: there is no such option. Did you mean 'cpus'"),
        ("worker: toy\nseeds: 0,0\n", "x.yaml: seeds 0,0: a seed is given twice"),
        ("worker: toy\nseeds: [3, 0, 3]\n", "x.yaml: seeds: 3 is given twice"),
        ("a: [\n", "is not valid YAML: line 2, column 1: expected the node content"),
    ],
)
def test_a_file_that_is_no_experiment_is_refused_with_its_name(tmp_path, text, said):
    file = tmp_path / "x.yaml"
    file.write_text(text)

    with pytest.raises(MosaicError, match=said) as found:
        read_file(file)

    assert str(file) in str(found.value)
