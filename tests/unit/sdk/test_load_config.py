import json

import pytest
from mosaic_sdk.config import ConfigError, load_config


@pytest.fixture
def written(tmp_path, monkeypatch):
    monkeypatch.delenv("MOSAIC_RUN_ID", raising=False)

    def write(value):
        path = tmp_path / "config.json"
        path.write_bytes(value if isinstance(value, bytes) else json.dumps(value).encode())
        return path

    return write


def test_a_flat_config_is_used_unchanged(written):
    config = {"run_id": "r1", "env_id": "CartPole-v1", "extras": {"cuda": True}}

    assert load_config(written(config)) == config


def test_of_a_trainer_config_the_workers_part_is_used_with_its_run_id(written):
    worker = {"module": "x.cli", "worker_id": "w1", "config": {"env_id": "CartPole-v1"}}

    config = load_config(written({"metadata": {"run_id": "r1", "worker": worker}, "payload": {}}))

    assert config == {"env_id": "CartPole-v1", "run_id": "r1", "worker_id": "w1"}


def test_the_workers_own_run_id_wins(written):
    config = load_config(written({"metadata": {"run_id": "r1", "worker": {"config": {"run_id": "r2"}}}}))

    assert config["run_id"] == "r2"


def test_metadata_of_a_flat_config_is_not_mistaken_for_a_trainer_config(written):
    config = {"run_id": "r1", "metadata": {"note": "mine"}}

    assert load_config(written(config)) == config


def test_a_missing_run_id_comes_from_the_environment(written, monkeypatch):
    monkeypatch.setenv("MOSAIC_RUN_ID", "r9")

    assert load_config(written({}))["run_id"] == "r9"


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"{not json", "is not JSON"),
        (b"\xff\xfe", "is not JSON"),
        (b"[1, 2]", "holds a list. It must be a JSON object"),
        (b"null", "holds null"),
        ({"metadata": {"worker": {"config": "x"}}}, "metadata.worker.config in .* is a string"),
        (b"[" * 200_000, "nested too deeply"),
    ],
)
def test_a_config_that_cannot_be_used_is_an_error_that_names_it(written, value, reason):
    path = written(value)

    with pytest.raises(ConfigError, match=reason) as error:
        load_config(path)

    assert str(path) in str(error.value)


def test_a_config_that_does_not_exist_is_an_error_that_says_what_to_do(tmp_path):
    with pytest.raises(ConfigError, match=r"No such file.*Pass an existing file to --config"):
        load_config(tmp_path / "none.json")
