"""The trainer config that `client.run` and `mosaic run` build."""

import pytest

from mosaic.catalog.request import RunOptions, nest, rename_fields, trainer_config, worker_section
from mosaic.model.errors import BadConfig


def test_without_options_the_config_has_only_the_worker():
    worker = {"module": "toy_worker.cli", "config": {"steps": 5}}

    assert trainer_config(worker, RunOptions()) == {"metadata": {"worker": worker}, "payload": {}}


def test_every_option_has_its_place_in_the_config():
    options = RunOptions(
        name="first", tags=("a",), gpus=2, gpus_mandatory=True, cpus=0.5, memory_mb=100, limits={"time_s": 60}
    )

    config = trainer_config({}, options)

    assert config["metadata"] == {"worker": {}, "run_name": "first", "tags": ["a"]}
    assert config["payload"] == {
        "resources": {"gpus": {"requested": 2, "mandatory": True}, "cpus": 0.5, "memory_mb": 100},
        "limits": {"time_s": 60},
    }


@pytest.mark.parametrize("name", ["cleanrl", "cleanrl_worker"])
def test_the_module_of_a_worker_on_another_machine_follows_from_its_name(name):
    section = worker_section(f"{name}@jax", {"algo": "ppo"}, None)

    assert section == {"module": "cleanrl_worker.cli", "name": name, "config": {"algo": "ppo"}, "variant": "jax"}


def test_dots_nest_and_env_is_short_for_env_id():
    assert nest([("extras.lr", 3e-4), ("extras.net.layers", 2), ("env", "Pong")]) == {
        "extras": {"lr": 3e-4, "net": {"layers": 2}},
        "env_id": "Pong",
    }


@pytest.mark.parametrize("pairs", [[("a", 1), ("a", 2)], [("a", 1), ("a.b", 2)], [("a.b", 2), ("a", 1)]])
def test_settings_that_contradict_each_other_are_refused(pairs):
    with pytest.raises(BadConfig):
        nest(pairs)


def test_an_unknown_option_without_a_near_name_lists_all_of_them():
    with pytest.raises(BadConfig, match=r"run_options\.zzz: there is no such option\. Known options: name, tags"):
        RunOptions.of({"zzz": 1})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tags": "demo"}, "run_options.tags: must be a list of strings, not 'demo'."),
        ({"limits": 600}, "run_options.limits: must be a mapping such as {'time_s': 600}, not 600."),
        ("demo", "run_options: must be a RunOptions or a mapping, not 'demo'."),
    ],
)
def test_options_of_the_wrong_type_are_refused(options, message):
    with pytest.raises(BadConfig) as caught:
        RunOptions.of(options)

    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("message", "renamed"),
    [
        ("metadata.worker.config.steps: it is wrong.", "steps: it is wrong."),
        ("payload.resources.gpus.requested: too many.", "run_options.gpus: too many."),
        ("payload.resources.cpus: too many.", "run_options.cpus: too many."),
        ("payload.limits.time_s: too long.", "run_options.limits.time_s: too long."),
        ("metadata.worker.module: unknown.", "metadata.worker.module: unknown."),
    ],
)
def test_errors_name_a_field_as_the_caller_wrote_it(message, renamed):
    assert rename_fields(message) == renamed
