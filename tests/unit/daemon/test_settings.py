"""What an explicit start decides, and what a daemon started by a tailer finds."""

import json

import pytest

from mosaic.daemon.settings import Asked, Settings, loopback, settings_at_start
from mosaic.model.errors import BadConfig
from mosaic.model.machine import Machine
from mosaic.model.rundir import StateRoot


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.delenv("MOSAIC_GPUS", raising=False)
    root = StateRoot(tmp_path)
    root.make()
    return root


def test_what_a_start_decided_is_kept_for_the_next(root):
    decided = settings_at_start(root, Asked("127.0.0.1:0", "3", "2.5", "16G", "5"))

    assert decided == Settings(fake_gpus=3, tcp="127.0.0.1:0", cpus=2.5, memory_mb=16384, max_runs=5)
    assert settings_at_start(root, Asked()) == decided
    assert settings_at_start(root, None) == decided


def test_a_daemon_started_by_a_tailer_takes_nothing_from_its_environment(root, monkeypatch):
    monkeypatch.setenv("MOSAIC_GPUS", "7")

    assert settings_at_start(root, None) == Settings()
    assert settings_at_start(root, Asked()).fake_gpus == 7


def test_a_start_ends_the_stop_on_purpose(root):
    Settings(stopped_on_purpose=True).save(root)

    assert not settings_at_start(root, None).stopped_on_purpose
    assert not Settings.load(root).stopped_on_purpose


def test_fields_of_a_newer_mosaic_and_a_torn_file_are_passed_over(root):
    root.settings.write_text(json.dumps({"version": 9, "max_runs": 4, "colour": "blue"}))
    assert Settings.load(root) == Settings(max_runs=4)

    root.settings.write_text('{"max_runs": 4')
    assert Settings.load(root) == Settings()


@pytest.mark.parametrize("address", ["127.0.0.1:0", "127.0.0.1:65535", "localhost:50055", "[::1]:50055"])
def test_a_loopback_address_is_taken_as_it_is(address):
    assert loopback(address) == address


@pytest.mark.parametrize(
    "address",
    [
        *("0.0.0.0:1", "[::]:1", ":1", "192.168.1.5:1", "example.org:1", "127.0.0.1.evil.org:1", "unix:/tmp/x:1"),
        *("127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1", "127.0.0.1:x", "127.0.0.1:²", "127.0.0.1:1 "),
    ],
)
def test_any_other_address_is_refused_with_the_flag(address):
    with pytest.raises(BadConfig, match="--tcp"):
        loopback(address)


@pytest.mark.parametrize("asked", [None, Asked()])
def test_an_address_that_somebody_wrote_into_the_file_is_checked_too(root, asked):
    Settings(tcp="0.0.0.0:50055").save(root)

    with pytest.raises(BadConfig, match="not a loopback address"):
        settings_at_start(root, asked)


@pytest.mark.parametrize("gpus", ["-1", "65", "two", "1.5", "²"])
def test_a_number_of_gpus_that_is_none_is_refused(root, gpus):
    with pytest.raises(BadConfig, match="MOSAIC_GPUS"):
        settings_at_start(root, Asked(gpus=gpus))


def test_auto_asks_the_driver_again(root):
    Settings(fake_gpus=3).save(root)

    assert settings_at_start(root, Asked(gpus="auto")).fake_gpus is None


def test_auto_goes_back_to_what_the_machine_has(root):
    Settings(cpus=64.0, memory_mb=1, max_runs=2).save(root)

    back = settings_at_start(root, Asked(cpus="auto", memory="auto", max_runs="auto"))

    assert back == Settings()
    assert back.machine(Machine(4.0, 8192)) == Machine(4.0, 8192)
    assert Settings(cpus=0.5).machine(Machine(4.0, 8192)) == Machine(0.5, 8192)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (Asked(cpus="many"), "--cpus: 'many' is not a number of CPUs such as 4 or 0.5, nor 'auto'"),
        (Asked(cpus="0"), "--cpus: with 0 no run could ever start"),
        (Asked(memory="16"), "--memory: '16' is not an amount of memory such as 512M or 4G, nor 'auto'"),
        (Asked(max_runs="-3"), "--max-runs: '-3' is not a number of runs, nor 'auto'"),
        (Asked(max_runs="0"), "--max-runs: with 0 no run could ever start"),
    ],
)
def test_an_amount_that_is_none_is_refused_with_its_option(root, asked, words):
    with pytest.raises(BadConfig) as refused:
        settings_at_start(root, asked)

    assert words in str(refused.value)


def test_the_32_runs_that_an_older_mosaic_wrote_down_unasked_are_forgotten(root):
    root.settings.write_text(json.dumps({"version": 1, "max_runs": 32, "tcp": "127.0.0.1:0"}))
    assert Settings.load(root) == Settings(tcp="127.0.0.1:0")

    root.settings.write_text(json.dumps({"version": 2, "max_runs": 32}))
    assert Settings.load(root) == Settings(max_runs=32)
