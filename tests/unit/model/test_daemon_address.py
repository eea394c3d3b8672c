import os
import shutil

import pytest

from mosaic.model.daemon_address import DaemonAddress, encode, read_address
from mosaic.model.durable import write_json
from mosaic.model.rundir import StateRoot


@pytest.fixture
def root(tmp_path):
    root = StateRoot(tmp_path / "original")
    root.make()
    write_json(root.address, encode(root, [f"unix:{root.socket}", "127.0.0.1:1"], "1.2"))
    return root


def test_what_the_daemon_wrote_is_read(root):
    assert read_address(root) == DaemonAddress([f"unix:{root.socket}", "127.0.0.1:1"], "1.2")


def test_the_address_in_a_copied_root_leads_nowhere(root, tmp_path):
    copy = StateRoot(shutil.copytree(root.path, tmp_path / "copy"))

    assert read_address(copy) == DaemonAddress()


def test_the_address_of_an_older_daemon_must_be_in_this_root(root, tmp_path):
    write_json(root.address, {"version": 1, "addresses": [f"unix:{root.socket}"]})
    copy = StateRoot(shutil.copytree(root.path, tmp_path / "copy"))

    assert read_address(root).addresses == [f"unix:{root.socket}"]
    assert read_address(copy) == DaemonAddress()


def test_a_root_behind_a_link_has_the_same_address(root, tmp_path):
    (tmp_path / "link").symlink_to(root.path)

    assert read_address(StateRoot(tmp_path / "link")).addresses


@pytest.mark.parametrize(
    "value",
    [
        {"addresses": 3},
        {"addresses": [3]},
        {"addresses": [""]},
        {"addresses": ["unix:/a\nb"]},
        {"addresses": ["x" * 1000]},
        {"mosaic": []},
        {"root": 3, "addresses": ["unix:/x"]},
    ],
)
def test_a_damaged_file_has_no_address(root, value):
    write_json(root.address, {**encode(root, ["unix:/x"], "1"), **value})

    assert read_address(root) == DaemonAddress()


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: path.symlink_to("/dev/zero")])
def test_something_else_in_place_of_the_file_has_no_address(root, make):
    root.address.unlink()
    make(root.address)

    assert read_address(root) == DaemonAddress()
