"""Invalid arguments get a suggestion, and commands in messages work on the machine where they are shown."""

import argparse

import pytest

from mosaic.cli.connection import refuse_host, seen_from_here
from mosaic.cli.main import build_parser, main
from mosaic.client.remote import Tunnel
from mosaic.model.errors import MosaicError, NoDaemon
from mosaic.model.nearest import did_you_mean, nearest


@pytest.fixture
def refused(capsys, root):
    """Runs a command line that is refused as invalid usage; returns its message."""

    def run(line):
        with pytest.raises(SystemExit) as end:
            main(line.split())
        output = capsys.readouterr()
        assert (end.value.code, output.out) == (2, "")
        assert len(output.err.splitlines()) == 1
        return output.err

    return run


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("shwo last", "unknown command 'shwo'. Did you mean `mosaic show`?"),
        ("ps", "unknown command 'ps'. Did you mean `mosaic runs`?"),
        ("kill last", "Did you mean `mosaic cancel`?"),
        ("xyzzy", "unknown command 'xyzzy'. Choose from: run, submit, resume"),
        ("worker instal toy", "mosaic worker: unknown action 'instal'. Did you mean `mosaic worker install`"),
        ("runs --sate live", "--sate is not an option of `mosaic runs`. Did you mean --state?"),
        ("export last --type steps", "'steps' is not one of step, episode, metric, lifecycle. Did you mean 'step'?"),
        ("show one two", "mosaic show: unexpected argument 'two'. See: mosaic show --help"),
    ],
)
def test_an_invalid_argument_gets_one_sentence_with_a_suggestion(refused, line, expected):
    assert expected in refused(line)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("run toy --steps 500", "It is a setting of toy. Write: steps=500. See"),
        ("run toy --steps=500 --detach", "It is a setting of toy. Write: steps=500. See"),
        ("run toy --text-every 5", "It is a setting of toy. Write: text_every=5. See"),
        ("run toy --paint", "It is a setting of toy. Write: paint=true. See"),
        ("run toy --step 5", "Did you mean steps=5? See"),
        ("run toy --detch", "Did you mean --detach? See"),
        ("run toy --xyzzyx 1", "It is not a setting of toy either. See"),
        ("run nosuch --steps 5", "If it is a setting of the worker, write: steps=5. See"),
        ("--host me@box run toy --steps 5", "If it is a setting of the worker, write: steps=5. See"),
        ("run --script x.py --seed 1", "Put arguments of the script after --, as in: -- --seed …"),
    ],
)
def test_a_setting_written_as_an_option_gets_a_suggestion(refused, line, expected):
    assert expected in refused(line)


def test_options_are_not_abbreviated(refused):
    assert "--env-o is not an option of `mosaic run`" in refused("run nosuch --env-o CartPole-v1")
    assert "Did you mean --all?" in refused("cancel --al")


@pytest.mark.parametrize(
    ("line", "name", "words"),
    [
        ("run toy steps=5 --detach rate=2", "settings", ["steps=5", "rate=2"]),
        ("run --name x toy --detach steps=5", "settings", ["steps=5"]),
        ("cancel a --wait b c", "runs", ["a", "b", "c"]),
    ],
)
def test_positional_arguments_may_follow_an_option(line, name, words):
    assert getattr(build_parser().parse(line.split()), name) == words


@pytest.mark.parametrize(
    ("asked", "near"),
    [
        ("loss", ["toy/loss"]),
        ("episode", ["episode/return", "episode/length"]),
        ("EPISODE/RETRUN", ["episode/return", "episode/length"]),
        ("zzz", []),
        ("", []),
        ("x" * 1_000_000, []),
    ],
)
def test_the_nearest_names_begin_end_or_are_spelled_alike(asked, near):
    assert nearest(asked, ["toy/loss", "episode/return", "episode/length"], 2) == near


def test_suggestions_are_a_question():
    assert did_you_mean("stps", ["steps", "xyz"]) == "Did you mean 'steps'?"
    assert did_you_mean("stps", []) == ""


@pytest.mark.parametrize(
    ("host", "text", "seen"),
    [
        ("", "End it with: mosaic cancel 01J", "End it with: mosaic cancel 01J"),
        ("me@box", "End it with: mosaic cancel 01J", "End it with: mosaic --host me@box cancel 01J"),
        (
            "me@box",
            "See: mosaic show 1, mosaic logs 1",
            "See: mosaic --host me@box show 1, mosaic --host me@box logs 1",
        ),
        ("me@box", "mosaic daemon status", "mosaic --host me@box daemon status"),
        ("me@box", "Start it with: mosaic daemon start", "Start it with: ssh me@box mosaic daemon start"),
        ("me@box:/d", "mosaic worker install x", "ssh me@box MOSAIC_HOME=/d mosaic worker install x"),
        ("me@box", "Start it with: ssh me@box mosaic daemon start", "Start it with: ssh me@box mosaic daemon start"),
    ],
)
def test_commands_for_another_machine_work_on_this_one(host, text, seen):
    assert seen_from_here(text, host) == seen


def test_a_verb_that_refuses_a_host_names_a_command_for_ssh():
    with pytest.raises(MosaicError, match=r"Run it there with: ssh me@box MOSAIC_HOME='/it is' mosaic du$"):
        refuse_host(argparse.Namespace(host="me@box:/it is"), "du")


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (255, r"ssh cannot reach box: Permission denied \(publickey\)\. See what is wrong with: ssh box true"),
        (1, "No daemon has run on box. Start it with: ssh box MOSAIC_HOME=/data mosaic daemon start"),
    ],
)
def test_a_failed_ssh_is_distinguished_from_a_missing_daemon(script, monkeypatch, tmp_path, code, expected):
    script("ssh", f"#!/bin/sh\necho 'Permission denied (publickey).' >&2\nexit {code}\n")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")

    with Tunnel("box:/data") as tunnel, pytest.raises(NoDaemon, match=expected):
        tunnel.open()


def test_a_daemon_on_another_machine_is_not_started_here(root, monkeypatch, capsys, tmp_path):
    (tmp_path / "token").write_text("secret")
    monkeypatch.setenv("MOSAIC_ADDRESS", "127.0.0.1:1")
    monkeypatch.setenv("MOSAIC_TOKEN_FILE", str(tmp_path / "token"))

    assert main(["daemon", "start"]) == 1

    output = capsys.readouterr().err
    assert "unset MOSAIC_ADDRESS" in output
    assert "Start it with" not in output
