"""mosaic_sdk.settings: one class gives the defaults, the checks, the config file and the schema."""

import copy
import pickle
import subprocess
import sys
from typing import Any, ClassVar

import pytest
from mosaic_sdk import keywords
from mosaic_sdk.config import ConfigError
from mosaic_sdk.contract import WorkerConfig
from mosaic_sdk.schema import schema_of
from mosaic_sdk.settings import Settings, setting


class Acme(Settings):
    limit: ClassVar[int] = 3
    seed: int | None = setting(None, "Seed.", minimum=0, schema_default=1)
    env_id: str = setting("CartPole-v1", "Environment.", aliases=("env",))
    total_timesteps: int = setting(1000, "Steps.", minimum=1)
    rate: float = setting(0.5, "Rate.", exclusive_minimum=0, maximum=9)
    size: str | None = setting(None, "Size.", choices=("small", "large"))
    steps: int = setting(0, "Found out later.", record_default=False)
    parts: list[str] = setting(["a"], "Parts.", schema={"items": {"enum": ["a", "b"]}})
    task: str = setting("gym_x", "Task.", pattern="^gym_", examples=["gym_CartPole-v1"])
    mode: str = setting("train", "Mode.", choices=("train", "policy_eval"), place="extras")
    cuda: bool = setting(False, "GPU.", place="extras")
    policy_path: str = setting("", "Checkpoint.", place="extras", checkpoint=True, aliases=("checkpoint_path",))
    learning_rate: float = setting(3e-4, "Step size.", place="extras.algo_params")

    def check(self) -> None:
        if self.mode == "policy_eval" and not self.policy_path:
            raise ConfigError("extras.policy_path is missing.")


class Open(Settings):
    open_places = ("extras", "extras.algo_params")
    seed: int | None = None
    checkpoint: str = setting("", aliases=("extras.policy_path", "extras.checkpoint_path"))


class Plain(Settings):
    seed: int | None = None


NESTED = {
    "run_id": "r1",
    "seed": 3,
    "extras": {"cuda": True, "algo_params": {"learning_rate": 0.1}},
}


def test_a_file_gives_values_and_the_class_the_rest():
    config = Acme.from_dict(NESTED)

    assert (config.run_id, config.seed, config.cuda, config.learning_rate) == ("r1", 3, True, 0.1)
    assert (config.env_id, config.total_timesteps, config.size, config.mode) == ("CartPole-v1", 1000, None, "train")
    assert config.given == {"run_id", "seed", "cuda", "learning_rate"}
    assert isinstance(config, WorkerConfig)
    assert Acme.env_id == "CartPole-v1"


def test_a_round_trip_through_the_file_format_changes_nothing():
    config = Acme.from_dict(NESTED)

    document = config.to_dict()

    assert document["extras"]["algo_params"] == {"learning_rate": 0.1}
    assert document["extras"]["cuda"] is True
    assert "learning_rate" not in document
    assert Acme.from_dict(document) == config
    assert Acme.from_dict(document).to_dict() == document


def test_a_whole_trainer_config_and_keys_in_other_places_are_understood():
    worker = {"worker_id": "w1", "config": {"learning_rate": 0.2, "extras": {"seed": 4}, "mode": "train"}}

    config = Acme.from_dict({"metadata": {"run_id": "r1", "worker": worker}})

    assert (config.run_id, config.worker_id, config.learning_rate, config.seed) == ("r1", "w1", 0.2, 4)


def test_other_names_of_a_setting_count_and_two_values_of_one_are_refused():
    assert Acme.from_dict({"run_id": "r1", "env": "Ant-v4"}).env_id == "Ant-v4"
    assert Acme.from_dict({"run_id": "r1", "env": "A-v1", "env_id": "A-v1"}).env_id == "A-v1"
    assert Open.from_dict({"run_id": "r1", "extras": {"checkpoint_path": "/x"}}).checkpoint == "/x"
    assert Open.from_dict({"run_id": "r1", "checkpoint": "", "extras": {"policy_path": "/x"}}).checkpoint == "/x"
    assert Open.from_dict({"run_id": "r1", "checkpoint": "/x", "extras": {"policy_path": ""}}).checkpoint == "/x"
    with pytest.raises(ConfigError, match="env_id: is the same setting as env but has another value"):
        Acme.from_dict({"run_id": "r1", "env": "A", "env_id": "B"})


def test_null_means_not_given_where_null_is_not_a_valid_value():
    config = Acme.from_dict({"run_id": "r1", "env_id": None, "seed": None})

    assert (config.env_id, config.seed) == ("CartPole-v1", None)
    assert config.given == {"run_id", "seed"}


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        ({"seed": "three"}, 'seed: must be an integer or null, not "three".'),
        ({"seed": True}, "seed: must be an integer or null, not true."),
        ({"seed": -1}, "seed: must be at least 0, not -1."),
        ({"total_timesteps": 1.5}, "total_timesteps: must be an integer, not 1.5."),
        ({"rate": 0}, "rate: must be more than 0, not 0."),
        ({"rate": 10}, "rate: must be at most 9, not 10."),
        ({"size": "huge"}, 'size: must be one of small, large, null, not "huge".'),
        ({"parts": "a"}, 'parts: must be a list, not "a".'),
        ({"task": "dmc_walk"}, 'task: must look like gym_CartPole-v1; "dmc_walk" does not.'),
        ({"extras": {"cuda": 1}}, "extras.cuda: must be true or false, not 1."),
        ({"extras": {"algo_params": {"learning_rate": "x"}}}, "extras.algo_params.learning_rate: must be a number"),
        ({"extras": [1]}, "extras: must be an object, not [1]."),
        ({"extras": {"algo_params": 3}}, "extras.algo_params: must be an object, not 3."),
        ({"total_timestep": 3}, "total_timestep: the worker has no such setting. Did you mean 'total_timesteps'?"),
        (
            {"extras": {"lerning_rate": 3}},
            "extras.lerning_rate: the worker has no such setting. Did you mean 'extras.algo",
        ),
        ({"zzz": 3}, "zzz: the worker has no such setting. Its settings: cuda, env_id, learning_rate,"),
        ({"extras": {"mode": "policy_eval"}}, "extras.policy_path is missing."),
        ({"run_id": ""}, 'run_id is missing. Add "run_id" to the config, or set MOSAIC_RUN_ID.'),
    ],
)
def test_a_value_that_a_setting_does_not_accept_is_refused_by_name(keys, reason):
    with pytest.raises(ConfigError) as error:
        Acme.from_dict({"run_id": "r1", **keys})

    assert str(error.value).startswith(reason)


def test_the_bounds_themselves_are_valid():
    config = Acme.from_dict({"run_id": "r1", "seed": 0, "total_timesteps": 1, "rate": 9})

    assert (config.seed, config.total_timesteps, config.rate) == (0, 1, 9)


def test_an_integral_float_becomes_an_integer():
    config = Acme.from_dict({"run_id": "r1", "total_timesteps": 1e5})

    assert (config.total_timesteps, type(config.total_timesteps)) == (100_000, int)


def test_the_constructor_checks_too():
    assert Acme(run_id="r1", seed=3).seed == 3
    with pytest.raises(ConfigError, match="seed: must be at least 0"):
        Acme(run_id="r1", seed=-3)
    with pytest.raises(ConfigError, match=r"sed: the worker has no such setting. Did you mean 'seed'"):
        Acme(run_id="r1", sed=3)  # type: ignore[call-arg]


def test_a_config_does_not_change_and_replace_makes_a_checked_copy():
    config = Acme(run_id="r1", seed=3)

    changed = config.replace(seed=4)

    assert (config.seed, changed.seed, changed.given) == (3, 4, {"run_id", "seed"})
    with pytest.raises(AttributeError, match="use replace"):
        config.seed = 5  # type: ignore[misc]
    with pytest.raises(ConfigError, match="at least 0"):
        config.replace(seed=-1)


def test_instances_share_no_list_and_can_be_copied_and_pickled():
    one, two = Acme(run_id="r1"), Acme(run_id="r1")

    one.parts.append("b")

    assert two.parts == ["a"]
    assert copy.deepcopy(one) == pickle.loads(pickle.dumps(one)) == one != two


def test_open_places_keep_what_they_do_not_know():
    config = Open.from_dict({"run_id": "r1", "extras": {"gamma": 0.9, "algo_params": {"lr": 1}}})

    assert config.rest == {"extras": {"gamma": 0.9}, "extras.algo_params": {"lr": 1}}
    assert Open.from_dict(config.to_dict()) == config
    with pytest.raises(ConfigError, match="gamma: the worker has no such setting"):
        Open.from_dict({"run_id": "r1", "gamma": 0.9})


def test_what_mosaic_itself_reads_is_accepted_unless_ignoring_it_would_do_something_else():
    extras = {"fastlane_slot": 2, "store_observations": True, "mode": "train", "test_mode": False}

    assert Plain.from_dict({"run_id": "r1", "version": 1, "extras": extras}).run_id == "r1"
    with pytest.raises(ConfigError, match=r'extras.mode: this worker does not support "policy_eval"'):
        Plain.from_dict({"run_id": "r1", "extras": {"mode": "policy_eval"}})


def test_prepare_derives_settings_from_others_and_given_is_what_the_file_said():
    class Derived(Plain):
        preset: str = ""
        steps: int = 0

        @classmethod
        def prepare(cls, values: dict[str, Any]) -> dict[str, Any]:
            kept = {name: value for name, value in values.items() if value != ""}
            return {"steps": 500, **kept} if kept.get("preset") else kept

    config = Derived.from_dict({"run_id": "r1", "preset": "short"})
    empty = Derived.from_dict({"run_id": "r1", "preset": ""})

    assert (config.steps, config.given) == (500, {"run_id", "preset"})
    assert (empty.steps, empty.given) == (0, {"run_id"})


def test_the_schema_says_what_the_class_says():
    schema = schema_of(
        Acme, title="Acme", lab={"short": {"total_timesteps": 3}}, examples=["seed=1"], resume={"seed": 1}
    )

    top, extras = schema["properties"], schema["properties"]["extras"]["properties"]
    assert top["seed"] == {"type": ["integer", "null"], "minimum": 0, "description": "Seed.", "default": 1}
    assert top["env"] == {
        "type": "string",
        "description": "The same as env_id.",
        "default": "CartPole-v1",
        keywords.SAME_AS: "env_id",
    }
    assert top["size"]["enum"] == ["small", "large", None]
    assert "default" not in top["steps"]
    assert top["parts"]["items"] == {"enum": ["a", "b"]}
    assert (extras["policy_path"][keywords.CHECKPOINT], extras["mode"]["default"]) == (True, "train")
    assert extras["algo_params"]["properties"]["learning_rate"]["default"] == 3e-4
    assert top["run_id"] == top["worker_id"] == {}
    assert "limit" not in top
    assert (schema["title"], schema[keywords.EXAMPLES], schema[keywords.RESUME]) == ("Acme", ["seed=1"], {"seed": 1})
    assert schema["additionalProperties"] is extras["algo_params"]["additionalProperties"] is False


SAME = {"description": "The same as policy_path.", keywords.SAME_AS: "policy_path"}


def test_aliases_in_another_place_are_properties_there():
    extras = schema_of(Open)["properties"]["extras"]["properties"]

    assert extras["policy_path"] == {"type": "string", "description": "The same as checkpoint."}
    assert extras["checkpoint_path"] == {**extras["policy_path"], **SAME}


def test_declaring_settings_imports_no_dataclasses():
    script = (
        "import sys; from mosaic_sdk.settings import Settings, setting\n"
        "class C(Settings):\n    steps: int = setting(1, minimum=1)\n"
        "C.from_dict({'run_id': 'x', 'steps': 3})\n"
        "sys.exit('dataclasses' in sys.modules or 'inspect' in sys.modules)"
    )

    assert subprocess.run([sys.executable, "-c", script]).returncode == 0


def test_a_changed_copy_refuses_an_unknown_setting():
    with pytest.raises(ConfigError, match=r"sede: the worker has no such setting\. Did you mean 'seed'"):
        Acme(run_id="r1").replace(sede=3)


def test_nan_is_within_no_bounds():
    with pytest.raises(ConfigError, match="rate: must be at most 9, not NaN"):
        Acme.from_dict({"run_id": "r1", "rate": float("nan")})


@pytest.mark.parametrize("name", ["check", "given", "names", "rest", "replace", "open_places", "extras", "version"])
def test_a_setting_cannot_have_a_name_that_the_class_uses_itself(name):
    with pytest.raises(TypeError, match=f"Odd.{name}: a setting cannot have this name"):
        type("Odd", (Settings,), {"__annotations__": {name: int}, name: setting(5)})
