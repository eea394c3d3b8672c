"""Settings and keys: what is refused, in which words, and without repeating a secret."""

import os

import pytest
from llm_worker.config import LlmConfig
from mosaic_sdk.config import ConfigError
from mosaic_sdk.llm.credentials import Key, load_key

SECRET = "sk-very-secret"


def refusal(**settings):
    with pytest.raises(ConfigError) as caught:
        LlmConfig(run_id="R1", **{"model": "m", **settings})
    return str(caught.value)


def test_a_model_must_be_named():
    assert refusal(model="").startswith("model is missing.")


@pytest.mark.parametrize(
    "url",
    [
        f"http://user:{SECRET}@host/v1",
        f"http://{SECRET}@host/v1",
        f"https://host/v1?api_key={SECRET}",
        f"https://host/v1#{SECRET}",
    ],
)
def test_an_address_with_credentials_is_refused_and_not_repeated(url):
    message = refusal(base_url=url)

    assert message.startswith("base_url: must not contain")
    assert SECRET not in message


@pytest.mark.parametrize("url", ["host/v1", "ftp://host", "http://", "http://host:99999/v1", "http://[::1"])
def test_an_address_must_be_one(url):
    assert refusal(base_url=url).startswith("base_url: ")


@pytest.mark.parametrize("name", [SECRET, "", "lower_case", "A-B", "A=B"])
def test_a_key_in_place_of_a_variable_is_refused_and_not_repeated(name):
    message = refusal(api_key_env=name)

    assert message == "api_key_env: must be the name of a variable in capitals, such as OPENAI_API_KEY."


def test_the_fields_that_the_worker_sets_cannot_be_set_twice():
    assert refusal(extra_body={"messages": []}) == "extra_body: messages is set by the worker itself. Remove it."


def test_paths_must_be_absolute():
    assert refusal(prompt_file="my.txt").startswith("prompt_file: must be an absolute path")


def test_the_key_comes_from_the_variable_that_the_settings_name(monkeypatch):
    monkeypatch.setenv("MY_KEY", f" {SECRET}\n")

    assert load_key(LlmConfig(run_id="R1", model="m", api_key_env="MY_KEY")).reveal() == SECRET
    assert not load_key(LlmConfig(run_id="R1", model="m")).is_set


def test_the_key_comes_from_a_file_that_only_its_owner_can_read(tmp_path):
    path = tmp_path / "key"
    path.write_text(f"{SECRET}\n")
    config = LlmConfig(run_id="R1", model="m", api_key_file=str(path))

    path.chmod(0o640)
    with pytest.raises(ConfigError) as caught:
        load_key(config)
    path.chmod(0o600)

    assert str(caught.value) == f"api_key_file: other users can read {path}. Type: chmod 600 {path}"
    assert load_key(config).reveal() == SECRET


def test_a_file_that_is_not_ours_is_refused(tmp_path):
    path = tmp_path / "key"
    path.write_text(SECRET)
    path.chmod(0o600)
    if os.geteuid() == 0:
        os.chown(path, 12345, 12345)
    else:
        path = "/etc/hostname"

    with pytest.raises(ConfigError, match="belongs to another user"):
        load_key(LlmConfig(run_id="R1", model="m", api_key_file=str(path)))


@pytest.mark.parametrize("kind", ["link", "folder", "pipe", "missing", "empty"])
def test_what_is_not_a_file_with_a_key_is_refused(tmp_path, kind):
    path, good = tmp_path / "key", tmp_path / "good"
    good.write_text(SECRET)
    good.chmod(0o600)
    {
        "link": lambda: path.symlink_to(good),
        "folder": path.mkdir,
        "pipe": lambda: os.mkfifo(path, 0o600),
        "missing": lambda: None,
        "empty": lambda: path.touch(0o600),
    }[kind]()

    with pytest.raises(ConfigError, match=r"^api_key_file: "):
        load_key(LlmConfig(run_id="R1", model="m", api_key_file=str(path)))


def test_a_key_with_a_line_break_cannot_become_a_header(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", f"{SECRET}\nX-Other: 1")

    with pytest.raises(ConfigError) as caught:
        load_key(LlmConfig(run_id="R1", model="m"))

    assert SECRET not in str(caught.value)


def test_a_key_is_not_shown():
    key = Key(SECRET)

    assert SECRET not in f"{key} {key!r} {[key]}"
    assert key.redacted(f"bad key {SECRET}!") == "bad key [key]!"
    with pytest.raises(TypeError):
        key.__reduce__()
