"""The settings of an explicit start, and of a daemon that a tailer starts."""

import json
import os

import pytest

from mosaic.daemon.settings import Asked, Settings, loopback, settings_at_start
from mosaic.model.durable import write_json
from mosaic.model.errors import BadConfig, BadRoot
from mosaic.model.machine import Machine
from mosaic.model.rundir import StateRoot


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.delenv("MOSAIC_GPUS", raising=False)
    root = StateRoot(tmp_path)
    root.make()
    return root


def test_the_settings_of_a_start_are_kept_for_the_next(root):
    decided = settings_at_start(root, Asked("127.0.0.1:0", "3", "2.5", "16G", "5"))

    assert decided == Settings(fake_gpus=3, tcp="127.0.0.1:0", cpus=2.5, memory_mb=16384, max_runs=5)
    assert settings_at_start(root, Asked()) == decided
    assert settings_at_start(root, None) == decided


def test_a_daemon_started_by_a_tailer_takes_nothing_from_its_environment(root, monkeypatch):
    monkeypatch.setenv("MOSAIC_GPUS", "7")

    assert settings_at_start(root, None) == Settings()
    assert settings_at_start(root, Asked()).fake_gpus == 7


def test_a_start_resets_stopped_on_purpose(root):
    Settings(stopped_on_purpose=True).save(root)

    assert not settings_at_start(root, None).stopped_on_purpose
    assert not Settings.load(root).stopped_on_purpose


def test_fields_of_a_newer_mosaic_and_a_damaged_file_are_ignored(root):
    root.settings.write_text(json.dumps({"version": 9, "max_runs": 4, "colour": "blue"}))
    assert Settings.load(root) == Settings(max_runs=4)

    root.settings.write_text('{"max_runs": 4')
    assert Settings.load(root) == Settings()


@pytest.mark.parametrize("address", ["127.0.0.1:0", "127.0.0.1:65535", "localhost:50055", "[::1]:50055"])
def test_a_loopback_address_is_accepted_unchanged(address):
    assert loopback(address) == address


@pytest.mark.parametrize(
    "address",
    [
        *("0.0.0.0:1", "[::]:1", ":1", "192.168.1.5:1", "example.org:1", "127.0.0.1.evil.org:1", "unix:/tmp/x:1"),
        *("127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1", "127.0.0.1:x", "127.0.0.1:²", "127.0.0.1:1 "),
    ],
)
def test_any_other_address_is_refused_with_the_option(address):
    with pytest.raises(BadConfig, match="--tcp"):
        loopback(address)


@pytest.mark.parametrize("asked", [None, Asked()])
def test_an_address_edited_in_the_file_is_checked_too(root, asked):
    Settings(tcp="0.0.0.0:50055").save(root)

    with pytest.raises(BadConfig, match="not a loopback address"):
        settings_at_start(root, asked)


@pytest.mark.parametrize("gpus", ["-1", "65", "two", "1.5", "²"])
def test_an_invalid_number_of_gpus_is_refused(root, gpus):
    with pytest.raises(BadConfig, match="MOSAIC_GPUS"):
        settings_at_start(root, Asked(gpus=gpus))


def test_auto_uses_the_real_gpus_again(root):
    Settings(fake_gpus=3).save(root)

    assert settings_at_start(root, Asked(gpus="auto")).fake_gpus is None


def test_auto_returns_to_the_resources_of_the_machine(root):
    Settings(cpus=64.0, memory_mb=1, max_runs=2).save(root)

    back = settings_at_start(root, Asked(cpus="auto", memory="auto", max_runs="auto"))

    assert back == Settings()
    assert back.machine(Machine(4.0, 8192)) == Machine(4.0, 8192)
    assert Settings(cpus=0.5).machine(Machine(4.0, 8192)) == Machine(0.5, 8192)


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        (Asked(cpus="many"), "--cpus: 'many' is not a valid number of CPUs, such as 4 or 0.5, or 'auto'"),
        (Asked(cpus="0"), "--cpus: must be more than 0"),
        (Asked(memory="16"), "--memory: '16' is not a valid amount of memory, such as 512M or 4G, or 'auto'"),
        (Asked(max_runs="-3"), "--max-runs: '-3' is not a valid number of runs, such as 8, or 'auto'"),
        (Asked(max_runs="0"), "--max-runs: must be more than 0"),
    ],
)
def test_an_invalid_amount_is_refused_with_its_option(root, asked, sentence):
    with pytest.raises(BadConfig) as refused:
        settings_at_start(root, asked)

    assert sentence in str(refused.value)


def test_the_default_of_32_runs_from_an_older_mosaic_is_ignored(root):
    root.settings.write_text(json.dumps({"version": 1, "max_runs": 32, "tcp": "127.0.0.1:0"}))
    assert Settings.load(root) == Settings(tcp="127.0.0.1:0")

    root.settings.write_text(json.dumps({"version": 2, "max_runs": 32}))
    assert Settings.load(root) == Settings(max_runs=32)


@pytest.mark.parametrize(
    "damage",
    [
        {"fake_gpus": "two"},
        {"fake_gpus": 10**9},
        {"cpus": []},
        {"cpus": float("nan")},
        {"memory_mb": -1},
        {"max_runs": True},
        {"tcp": 3},
        {"stopped_on_purpose": "no"},
    ],
)
def test_an_invalid_value_has_its_default_and_is_logged(root, damage, caplog):
    write_json(root.settings, {"version": 2, "max_runs": 5, **damage})

    loaded = Settings.load(root)

    (name,) = damage
    assert getattr(loaded, name) == getattr(Settings(), name)
    assert name in caplog.text
    assert loaded.max_runs == (None if name == "max_runs" else 5)


@pytest.mark.parametrize("make", [lambda path: path.write_bytes(b"\xff{"), os.mkfifo, os.mkdir])
def test_a_damaged_file_has_the_defaults_and_is_logged(root, make, caplog):
    make(root.settings)

    assert Settings.load(root) == Settings()
    assert "damaged" in caplog.text


def test_a_folder_in_place_of_the_file_is_named(root):
    root.settings.mkdir()

    with pytest.raises(BadRoot, match=f"{root.settings} is a folder"):
        Settings().save(root)
