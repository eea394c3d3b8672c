"""Slips of the pen get a suggestion, and every piece of advice is a command that can work."""

import argparse

import pytest

from mosaic.cli.connection import refuse_host, seen_from_here
from mosaic.cli.main import build_parser, main
from mosaic.client.remote import read_remote
from mosaic.model.errors import MosaicError, NoDaemon
from mosaic.model.nearest import did_you_mean, nearest


@pytest.fixture
def refused(capsys, root):
    """Says a line that is refused as bad usage; gives the one sentence."""

    def say(line):
        with pytest.raises(SystemExit) as end:
            main(line.split())
        told = capsys.readouterr()
        assert (end.value.code, told.out) == (2, "")
        assert len(told.err.splitlines()) == 1
        return told.err

    return say


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("shwo last", "there is no verb 'shwo'. Did you mean `mosaic show`?"),
        ("ps", "there is no verb 'ps'. Did you mean `mosaic runs`?"),
        ("kill last", "Did you mean `mosaic cancel`?"),
        ("xyzzy", "there is no verb 'xyzzy'. There are: run, submit, resume"),
        ("worker instal toy", "mosaic worker: there is no action 'instal'. Did you mean `mosaic worker install`"),
        ("runs --sate live", "--sate is not an option of `mosaic runs`. Did you mean --state?"),
        ("export last --type steps", "'steps' is none of step, episode, metric, lifecycle. Did you mean 'step'?"),
        ("show one two", "mosaic show: 'two' is one word too many. See: mosaic show --help"),
    ],
)
def test_a_slip_is_one_sentence_with_what_was_meant(refused, line, told):
    assert told in refused(line)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("run toy --steps 500", "It is a setting of toy: write steps=500. See"),
        ("run toy --steps=500 --detach", "It is a setting of toy: write steps=500. See"),
        ("run toy --text-every 5", "It is a setting of toy: write text_every=5. See"),
        ("run toy --paint", "It is a setting of toy: write paint=true. See"),
        ("run toy --step 5", "Did you mean steps=5? See"),
        ("run toy --detch", "Did you mean --detach? See"),
        ("run toy --xyzzyx 1", "Nor is it a setting of the worker. See"),
        ("run nosuch --steps 5", "A setting of the worker is written without dashes: steps=5. See"),
        ("--host me@box run toy --steps 5", "A setting of the worker is written without dashes: steps=5. See"),
        ("run --script x.py --seed 1", "The script's own words stand after --, as in: -- --seed …"),
    ],
)
def test_a_setting_written_as_an_option_is_told_how_to_write_it(refused, line, told):
    assert told in refused(line)


def test_options_are_not_abbreviated(refused):
    assert "env=CartPole-v1" in refused("run nosuch --env CartPole-v1")  # not --env-of
    assert "Did you mean --all?" in refused("cancel --al")


@pytest.mark.parametrize(
    ("line", "name", "words"),
    [
        ("run toy steps=5 --detach rate=2", "settings", ["steps=5", "rate=2"]),
        ("run --name x toy --detach steps=5", "settings", ["steps=5"]),
        ("cancel a --wait b c", "runs", ["a", "b", "c"]),
    ],
)
def test_words_behind_an_option_are_taken_too(line, name, words):
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
def test_the_nearest_names_begin_end_or_look_alike(asked, near):
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
def test_advice_about_another_machine_works_on_this_one(host, text, seen):
    assert seen_from_here(text, host) == seen


def test_a_verb_that_is_refused_for_a_host_names_a_command_that_ssh_understands():
    with pytest.raises(MosaicError, match=r"Run it there: ssh me@box MOSAIC_HOME='/it is' mosaic du$"):
        refuse_host(argparse.Namespace(host="me@box:/it is"), "du")


@pytest.mark.parametrize(
    ("code", "told"),
    [
        (255, "ssh cannot reach box. See what is wrong with: ssh box true"),
        (1, "No daemon has run on box. Start it with: ssh box MOSAIC_HOME=/data mosaic daemon start"),
    ],
)
def test_an_ssh_that_fails_is_told_apart_from_a_daemon_that_is_not_there(script, monkeypatch, tmp_path, code, told):
    script("ssh", f"#!/bin/sh\nexit {code}\n")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")

    with pytest.raises(NoDaemon, match=told):
        read_remote("box", "/data")


def test_a_daemon_elsewhere_is_not_started_here(root, monkeypatch, capsys, tmp_path):
    (tmp_path / "token").write_text("secret")
    monkeypatch.setenv("MOSAIC_ADDRESS", "127.0.0.1:1")
    monkeypatch.setenv("MOSAIC_TOKEN_FILE", str(tmp_path / "token"))

    assert main(["daemon", "start"]) == 1

    told = capsys.readouterr().err
    assert "unset MOSAIC_ADDRESS" in told
    assert "Start it with" not in told
