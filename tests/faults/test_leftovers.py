"""What an earlier daemon, or somebody else, left in the way: a new one starts beside it, or says what is wrong."""

import socket

import pytest
from lab import Lab

from mosaic.client import TrainerClient
from mosaic.client.endpoint import Endpoint
from mosaic.model.errors import MosaicError, NotAllowed
from mosaic.model.states import RunState


@pytest.fixture
def killed(lab):
    """A lab whose daemon was killed: its lock, socket, pid and token files are left."""
    lab.kill_daemon()
    return lab


def works(lab):
    return lab.wait_until_over(lab.submit(steps=20)).state is RunState.TERMINATED


def test_the_files_of_a_killed_daemon_are_in_nobodys_way(killed):
    assert killed.root.socket.exists()

    killed.restart_daemon()

    assert works(killed)


def test_garbage_in_the_place_of_pid_and_lock_is_in_nobodys_way(killed):
    killed.root.pid.write_bytes(b"\xff not a pid")
    (killed.root.trainer / "daemon.lock").write_bytes(b"garbage")

    killed.restart_daemon()

    assert works(killed)


def test_a_socket_that_somebody_else_listens_at_is_replaced(killed):
    killed.root.socket.unlink()
    with socket.socket(socket.AF_UNIX) as stranger:
        stranger.bind(str(killed.root.socket))
        stranger.listen()

        killed.restart_daemon()

        assert works(killed)


def test_a_token_of_an_earlier_daemon_that_was_changed_since_opens_nothing(lab):
    target, token = lab.client.target, lab.root.token.read_text().strip()
    lab.stop_daemon()
    lab.root.token.unlink()
    lab.restart_daemon()

    assert lab.root.token.read_text().strip() != token
    with TrainerClient.at(Endpoint(target, token)) as stale, pytest.raises(NotAllowed):
        stale.list_runs()
    assert works(lab)


def test_a_taken_port_is_named_and_nothing_is_left_in_the_way(home):
    with socket.socket() as stranger:
        stranger.bind(("127.0.0.1", 0))
        stranger.listen()
        address = f"127.0.0.1:{stranger.getsockname()[1]}"

        with pytest.raises(MosaicError, match=address):
            Lab(home, ("--tcp", address))

    lab = Lab(home)
    try:
        assert works(lab)
    finally:
        lab.close()
