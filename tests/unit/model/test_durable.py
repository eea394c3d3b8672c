"""Reading JSON from folders that are a worker's own: whatever lies there, the reader comes back."""

import os
import socket

import pytest

from mosaic.model.durable import read_json, write_json


def plant_fifo(path):
    os.mkfifo(path)


def plant_device(path):
    path.symlink_to("/dev/zero")


def plant_socket(path):
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))


def plant_loop(path):
    path.symlink_to(path)


def plant_nesting(path):
    path.write_text('{"a":' * 100_000)


def plant_list(path):
    path.write_text("[1]")


@pytest.mark.timeout(30)
@pytest.mark.parametrize("plant", [plant_fifo, plant_device, plant_socket, plant_loop, plant_nesting, plant_list])
def test_what_is_not_a_json_object_in_a_file_reads_as_none(tmp_path, monkeypatch, plant):
    monkeypatch.chdir(tmp_path)
    plant(tmp_path / "exit.json")

    assert read_json(tmp_path / "exit.json") is None


def test_a_link_to_a_file_is_followed(tmp_path):
    write_json(tmp_path / "real.json", {"a": 1})
    (tmp_path / "link.json").symlink_to("real.json")

    assert read_json(tmp_path / "link.json") == {"a": 1}
