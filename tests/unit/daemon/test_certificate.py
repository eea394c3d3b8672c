"""The certificate of the listener for nodes: made once, kept, and named when it is damaged."""

import os

import pytest

from mosaic.daemon.certificate import load_certificate
from mosaic.model.errors import MosaicError
from mosaic.model.rundir import StateRoot

DAMAGE = {
    "empty": lambda path, other: path.write_bytes(b""),
    "garbage": lambda path, other: path.write_bytes(b"-----BEGIN garbage"),
    "truncated": lambda path, other: os.truncate(path, 100),
    "huge": lambda path, other: os.truncate(path, 1 << 30),
    "of another root": lambda path, other: path.write_bytes((other.trainer / path.name).read_bytes()),
}


@pytest.fixture
def make_root(tmp_path):
    def make(name):
        root = StateRoot(tmp_path / name)
        root.trainer.mkdir(parents=True)
        return root

    return make


def test_it_is_made_once_and_kept(make_root):
    root = make_root("a")

    made = load_certificate(root)

    assert load_certificate(root) == made


@pytest.mark.parametrize("name", ["nodes_key", "nodes_certificate"])
@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_one_is_named_with_what_to_do(make_root, damage, name):
    root, other = make_root("a"), make_root("b")
    load_certificate(root)
    load_certificate(other)

    DAMAGE[damage](getattr(root, name), other)

    with pytest.raises(MosaicError, match=r"nodes\.crt or its key .* Delete both"):
        load_certificate(root)
