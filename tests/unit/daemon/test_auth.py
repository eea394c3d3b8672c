"""Tokens: the owner's, and those derived from it."""

import os
import stat

import pytest
from oddities import ODDITIES, plant

from mosaic.daemon.auth import Tokens, bearer, token_hash
from mosaic.model.errors import BadRoot
from mosaic.model.rundir import StateRoot


@pytest.fixture
def root(tmp_path):
    root = StateRoot(tmp_path)
    root.make()
    return root


def test_the_first_start_creates_a_token_that_only_the_owner_can_read(root):
    old = os.umask(0)
    try:
        Tokens.load(root)
    finally:
        os.umask(old)

    assert stat.S_IMODE(root.token.stat().st_mode) == 0o600
    assert len(root.token.read_text().strip()) >= 40


def test_the_next_start_keeps_it(root):
    first = Tokens.load(root)
    token = root.token.read_text().strip()

    again = Tokens.load(root)

    assert root.token.read_text().strip() == token
    assert first.is_owner(token)
    assert again.is_owner(token)


def test_an_empty_token_file_opens_nothing(root):
    root.token.write_text("\n")
    root.token.chmod(0o600)

    tokens = Tokens.load(root)

    assert not tokens.is_owner("")
    assert root.token.read_text().strip()


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o601])
def test_a_token_file_with_an_open_mode_is_refused(root, mode):
    Tokens.load(root)
    root.token.chmod(mode)

    with pytest.raises(BadRoot, match="can be read by other users"):
        Tokens.load(root)


@pytest.mark.timeout(10)
@pytest.mark.parametrize("oddity", sorted(ODDITIES.keys() - {"file without mode"}))  # which root can read
def test_a_token_that_is_not_a_file_of_ours_is_named_at_once(root, oddity):
    if oddity == "file of another user" and os.geteuid() != 0:
        pytest.skip("only root can give a file to another user")
    plant(root.token, oddity)

    with pytest.raises(BadRoot, match=r"daemon\.token is not a token .* rm -r "):
        Tokens.load(root)


def test_a_token_that_is_not_a_text_is_named(root):
    root.token.write_bytes(b"\xff\xfe")
    root.token.chmod(0o600)

    with pytest.raises(BadRoot, match="not a text"):
        Tokens.load(root)


@pytest.mark.parametrize("wrong", ["", "owner ", " owner", "Owner", "owne", "ownerr", "öwner", "owner\0"])
def test_only_the_exact_token_is_accepted(wrong):
    assert Tokens("owner").is_owner("owner")
    assert not Tokens("owner").is_owner(wrong)


def test_a_session_token_belongs_to_one_owner_one_run_and_one_attempt():
    tokens = Tokens("owner")
    all_four = [tokens.session("A", 1), tokens.session("A", 2), tokens.session("B", 1), Tokens("x").session("A", 1)]

    assert len(set(all_four)) == 4
    assert tokens.session("A", 1) == Tokens("owner").session("A", 1)
    assert not tokens.is_owner(tokens.session("A", 1))


def test_a_hash_does_not_reveal_the_token():
    token = Tokens("owner").session("A", 1)

    assert token not in token_hash(token)
    assert token_hash(token) == token_hash(token)


@pytest.mark.parametrize(
    ("metadata", "token"),
    [
        (None, ""),
        ((), ""),
        ((("authorization", "Bearer x"),), "x"),
        ((("user-agent", "Bearer y"), ("authorization", "Bearer x")), "x"),
        ((("authorization", "bearer x"),), ""),
        ((("authorization", "Basic x"),), ""),
        ((("authorization", "x"),), ""),
        ((("authorization", b"Bearer x"),), ""),
        ((("Authorization", "Bearer x"),), ""),
    ],
)
def test_a_bearer_is_read_from_one_place_only(metadata, token):
    assert bearer(metadata) == token
