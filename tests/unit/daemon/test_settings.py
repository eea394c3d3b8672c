"""What an explicit start decides, and what a daemon started by a tailer finds."""

import json

import pytest

from mosaic.daemon.settings import Settings, loopback, settings_at_start
from mosaic.model.errors import BadConfig
from mosaic.model.rundir import StateRoot


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.delenv("MOSAIC_GPUS", raising=False)
    root = StateRoot(tmp_path)
    root.make()
    return root


def test_what_a_start_decided_is_kept_for_the_next(root):
    decided = settings_at_start(root, "127.0.0.1:0", "3", 5, kept=False)

    assert (decided.tcp, decided.fake_gpus, decided.max_runs) == ("127.0.0.1:0", 3, 5)
    assert settings_at_start(root, "", "", None, kept=False) == decided
    assert settings_at_start(root, "", "", None, kept=True) == decided


def test_a_daemon_started_by_a_tailer_takes_nothing_from_its_environment(root, monkeypatch):
    monkeypatch.setenv("MOSAIC_GPUS", "7")

    assert settings_at_start(root, "127.0.0.1:1", "2", 9, kept=True) == Settings()
    assert settings_at_start(root, "", "", None, kept=False).fake_gpus == 7


def test_a_start_ends_the_stop_on_purpose(root):
    Settings(stopped_on_purpose=True).save(root)

    assert not settings_at_start(root, "", "", None, kept=True).stopped_on_purpose
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


@pytest.mark.parametrize("kept", [True, False])
def test_an_address_that_somebody_wrote_into_the_file_is_checked_too(root, kept):
    Settings(tcp="0.0.0.0:50055").save(root)

    with pytest.raises(BadConfig, match="not a loopback address"):
        settings_at_start(root, "", "", None, kept=kept)


@pytest.mark.parametrize("gpus", ["-1", "65", "two", "1.5", "²"])
def test_a_number_of_gpus_that_is_none_is_refused(root, gpus):
    with pytest.raises(BadConfig, match="MOSAIC_GPUS"):
        settings_at_start(root, "", gpus, None, kept=False)


def test_auto_asks_the_driver_again(root):
    Settings(fake_gpus=3).save(root)

    assert settings_at_start(root, "", "auto", None, kept=False).fake_gpus is None
