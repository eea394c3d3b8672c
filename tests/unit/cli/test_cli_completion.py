"""Completions of a command line, and the installation of completion scripts. Needs neither a daemon nor a shell."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mosaic.catalog.answers import Answers
from mosaic.catalog.workers import Catalog
from mosaic.cli import completion
from mosaic.cli.completion_query import FILES, complete, join_pieces
from mosaic.cli.completion_scripts import SCRIPTS
from mosaic.cli.main import main

MOSAIC = Path(sys.executable).with_name("mosaic")


def completions(line):
    """Completions of a line without `mosaic`; its last word may be empty."""
    return [candidate.value for candidate in complete(line.split(" "))]


@pytest.fixture
def known_settings(root):
    """The settings of the toy worker are known."""
    Answers(root.answers).ask(Catalog(root).find("toy"), 60.0)


def test_verbs_and_actions_are_completed_with_a_description(root):
    assert completions("ca") == ["cancel"]
    assert {"run", "show", "cancel", "completion"} <= set(completions(""))
    assert completions("worker in") == ["install"]
    assert [candidate.note for candidate in complete(["cancel"])] == ["cancel runs"]


def test_options_are_completed_once_unless_they_can_be_repeated(root):
    assert completions("cancel --st") == ["--state"]
    assert "--all" not in completions("cancel --all --")
    assert "--tag" in completions("cancel --tag a --")
    assert completions("--host me@box cancel --wa") == ["--wait"]


@pytest.mark.parametrize(
    ("line", "values"),
    [
        ("export --format ", ["jsonl", "csv", "parquet"]),
        ("export --format=c", ["--format=csv"]),
        ("runs --state FA", ["FAULTED"]),
        ("runs --state FAULTED,CAN", ["FAULTED,CANCELLED"]),
        ("runs --sort -ret", ["-return"]),
        ("runs --columns seed,ep", ["seed,episodes"]),
        ("completion install --shell z", ["zsh"]),
        ("run t", ["toy"]),
        ("run --env-of t", ["toy"]),
        ("worker install dr", ["dreamer"]),
        ("worker describe t", ["toy"]),
        ("eval at", ["attach"]),
        ("eval attach --a", ["--as"]),
        ("eval --env E --operator ra", ["random"]),
        ("eval --env E --operator me=h", ["me=human"]),
    ],
)
def test_known_values_are_completed(root, line, values):
    assert completions(line) == values


@pytest.mark.parametrize("line", ["submit ", "submit conf", "export last -o ", "run --script x", "worker install ./my"])
def test_file_names_are_left_to_the_shell(root, line):
    assert completions(line) == [FILES]


def test_settings_come_from_the_workers_schema(known_settings):
    assert "steps=" in completions("run toy st")
    assert completions("run toy rate=5 --detach ste") == ["steps="]  # also after an option
    assert "rate=" not in completions("run toy rate=5 r")
    assert completions("run toy paint=") == ["paint=true", "paint=false"]
    assert completions("run toy paint=f") == ["paint=false"]
    assert completions("run toy nosuch=") == []


@pytest.mark.parametrize("line", ["nosuchverb ", "run nosuch ", "show ", "worker nosuch x", "run toy -- --x", "--host"])
def test_unknown_words_are_not_an_error(root, line):
    completions(line)


@pytest.mark.parametrize(
    ("pieces", "words", "kept"),
    [
        (["run", "toy", "st"], ["run", "toy", "st"], 0),
        (["run", "toy", "algo", "=", "pp"], ["run", "toy", "algo=pp"], 5),
        (["run", "toy", "algo", "="], ["run", "toy", "algo="], 5),
        (["run", "toy", "algo", "=", ""], ["run", "toy", "algo="], 5),
        (["run", "toy", "algo=pp"], ["run", "toy", "algo=pp"], 0),
        (["run", "toy", "a", "=", "1", "b"], ["run", "toy", "a=1", "b"], 0),
        (["--host", "me@box", ":", "/d", "sh"], ["--host", "me@box:/d", "sh"], 0),
        ([], [], 0),
    ],
)
def test_words_that_bash_split_are_joined(pieces, words, kept):
    assert join_pieces(pieces) == (words, kept)


@pytest.mark.parametrize("words", [[], [""], ["bash"], ["zsh", "show", ""], ["fish", "run", "'"], ["bash", "="]])
def test_a_shell_never_sees_an_error(root, words):
    done = subprocess.run([sys.executable, "-m", "mosaic.cli.main", "__complete", *words], capture_output=True)

    assert (done.returncode, done.stderr) == (0, b"")


def test_an_unreadable_root_is_not_an_error(tmp_path):
    (tmp_path / "home").write_text("no folder")
    env = {**os.environ, "MOSAIC_HOME": str(tmp_path / "home")}

    done = subprocess.run([MOSAIC, "__complete", "bash", "show", ""], capture_output=True, env=env)

    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.fixture
def user(tmp_path, monkeypatch):
    """A home folder without our completion scripts."""
    for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "ZDOTDIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(completion, "LOADERS", ())
    return tmp_path


@pytest.mark.parametrize(
    ("shell", "script", "startup"),
    [
        ("bash", ".local/share/bash-completion/completions/mosaic", ".bashrc"),
        ("zsh", ".local/share/zsh/site-functions/_mosaic", ".zshrc"),
        ("fish", ".config/fish/completions/mosaic.fish", ""),
    ],
)
def test_install_writes_the_script_once_and_prints_its_path(user, capsys, monkeypatch, shell, script, startup):
    monkeypatch.setenv("SHELL", f"/usr/bin/{shell}")
    if startup:
        (user / startup).write_text("alias ll='ls -l'")

    assert main(["completion", "install"]) == 0
    first = capsys.readouterr().out
    assert main(["completion", "install", "--shell", shell]) == 0
    second = capsys.readouterr().out

    assert (user / script).read_text() == SCRIPTS[shell]
    assert f"Wrote {user / script}." in first
    assert f"{user / script} is up to date." in second
    if startup:
        lines = (user / startup).read_text().splitlines()
        assert lines[0] == "alias ll='ls -l'"
        assert len(lines) == 2
        assert f"{user / startup} loads it already." in second


def test_with_bash_completion_no_startup_file_is_changed(user, capsys, monkeypatch):
    monkeypatch.setattr(completion, "LOADERS", ("/",))

    main(["completion", "install", "--shell", "bash"])

    assert not (user / ".bashrc").exists()


def test_an_unsupported_shell_is_refused(user, capsys, monkeypatch):
    monkeypatch.setenv("SHELL", "/bin/tcsh")

    assert main(["completion", "install"]) == 2
    assert "$SHELL is tcsh. Choose a shell with --shell: bash, zsh, fish" in capsys.readouterr().err
