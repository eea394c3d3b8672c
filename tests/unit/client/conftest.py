import shutil
import tempfile
from pathlib import Path

import pytest
from scripted_daemon import TOKEN, ScriptedDaemon

from mosaic.client import TrainerClient
from mosaic.client.endpoint import Endpoint


@pytest.fixture
def short_path():
    """Unix sockets take 107 bytes; tmp_path may be longer."""
    path = Path(tempfile.mkdtemp(prefix="mosaic-"))
    yield path
    shutil.rmtree(path)


@pytest.fixture
def serve(short_path):
    """Start a scripted daemon; every one is closed at the end."""
    daemons = []

    def start(service):
        daemons.append(ScriptedDaemon(short_path / "daemon.sock", service).start())
        return daemons[-1]

    yield start
    for daemon in daemons:
        daemon.close()


@pytest.fixture
def connect():
    clients = []

    def make(daemon):
        clients.append(TrainerClient.at(Endpoint(daemon.target, TOKEN)))
        return clients[-1]

    yield make
    for client in clients:
        client.close()
