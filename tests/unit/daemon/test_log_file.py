"""The daemon's log: whatever lies at its name, a start neither waits nor writes elsewhere."""

import logging
import os
import stat

import pytest
from oddities import plant

from mosaic.daemon import log_file
from mosaic.model.errors import BadRoot
from mosaic.model.rundir import StateRoot


@pytest.fixture
def root(tmp_path):
    root = StateRoot(tmp_path / "home")
    root.make()
    return root


@pytest.fixture
def messages(monkeypatch):
    """Nothing of this test in the real root logger."""
    kept = []
    monkeypatch.setattr(logging, "basicConfig", lambda level, handlers: kept.extend(handlers))
    yield kept
    for handler in kept:
        handler.close()


def test_the_log_is_readable_only_by_its_owner_whoever_created_it(root, messages):
    root.daemon_log.touch(mode=0o644)

    log_file.log_to_file(root)
    messages[0].emit(logging.LogRecord("mosaic", logging.INFO, "", 0, "It starts.", (), None))

    assert stat.S_IMODE(root.daemon_log.stat().st_mode) == 0o600
    assert "It starts." in root.daemon_log.read_text()


@pytest.mark.timeout(10)
@pytest.mark.parametrize("oddity", ["fifo", "folder", "socket"])
def test_a_log_that_is_not_a_file_is_named_at_once(root, oddity):
    plant(root.daemon_log, oddity)

    with pytest.raises(BadRoot, match=r"trainer_daemon\.log cannot be opened .* Remove what is there\."):
        log_file.log_to_file(root)


@pytest.mark.timeout(10)
def test_a_fifo_with_a_reader_is_refused_too(root):
    os.mkfifo(root.daemon_log)
    reader = os.open(root.daemon_log, os.O_RDONLY | os.O_NONBLOCK)

    with pytest.raises(BadRoot, match="is not a regular file"):
        log_file.log_to_file(root)

    os.close(reader)


def test_a_link_is_not_followed(root, tmp_path):
    other = tmp_path / "someone's file"
    other.write_text("theirs\n")
    other.chmod(0o644)
    root.daemon_log.symlink_to(other)

    with pytest.raises(BadRoot, match=r"trainer_daemon\.log cannot be opened"):
        log_file.log_to_file(root)

    assert other.read_text() == "theirs\n"
    assert stat.S_IMODE(other.stat().st_mode) == 0o644
