"""Files that an earlier daemon or another program left: a new daemon starts anyway, or reports the problem."""

import socket

import pytest
from lab import Lab

from mosaic.client import TrainerClient
from mosaic.client.endpoint import Endpoint
from mosaic.model.errors import MosaicError, NotAllowed
from mosaic.model.states import RunState


@pytest.fixture
def killed(lab):
    """A lab whose daemon was killed: its lock, socket, pid and token files remain."""
    lab.kill_daemon()
    return lab


def works(lab):
    return lab.wait_until_over(lab.submit(steps=20)).state is RunState.TERMINATED


def test_the_files_of_a_killed_daemon_do_not_prevent_a_start(killed):
    assert killed.root.socket.exists()

    killed.restart_daemon()

    assert works(killed)


def test_garbage_in_the_pid_and_lock_files_does_not_prevent_a_start(killed):
    killed.root.pid.write_bytes(b"\xff not a pid")
    (killed.root.trainer / "daemon.lock").write_bytes(b"garbage")

    killed.restart_daemon()

    assert works(killed)


def test_a_socket_of_another_program_is_replaced(killed):
    killed.root.socket.unlink()
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(killed.root.socket))
        other.listen()

        killed.restart_daemon()

        assert works(killed)


def test_a_changed_token_of_an_earlier_daemon_is_refused(lab):
    target, token = lab.client.target, lab.root.token.read_text().strip()
    lab.stop_daemon()
    lab.root.token.unlink()
    lab.restart_daemon()

    assert lab.root.token.read_text().strip() != token
    with TrainerClient.at(Endpoint(target, token)) as stale, pytest.raises(NotAllowed):
        stale.list_runs()
    assert works(lab)


def test_a_port_in_use_is_named_and_no_files_are_left(home):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        address = f"127.0.0.1:{other.getsockname()[1]}"

        with pytest.raises(MosaicError, match=address):
            Lab(home, ("--tcp", address))

    lab = Lab(home)
    try:
        assert works(lab)
    finally:
        lab.close()
