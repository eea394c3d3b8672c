"""The examples in --help work: those of `mosaic run` are submitted, the others are parsed.

Examples that only read are executed, too. Those with CleanRL are checked against its real schema, in the environment
that `make test` creates, and cancelled before they start: another run occupies the daemon's only slot.
"""

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

import pytest
from lab import Lab
from toy_worker import get_worker_schema

from mosaic.catalog.descriptor import Descriptor
from mosaic.catalog.inspector import judge
from mosaic.cli.main import build_parser, main
from mosaic.cli.run import RUN_EXAMPLES
from mosaic.cli.settings import parse_settings
from mosaic.model.run import WorkerSpec
from mosaic.model.states import RunState

REPO = Path(__file__).parents[2]
MOSAIC = Path(sys.executable).parent / "mosaic"
CLEANRL, DREAMER = REPO / ".venv-cleanrl", REPO / ".venv-dreamer"
TABLE = REPO / "docs/howto/cleanrl.md"
READING = {"runs", "show", "logs", "export", "curve", "du", "diff"}
READING_WORKERS = {("worker", "list"), ("worker", "describe"), ("daemon", "status")}
RUNS = ("01JCQ", "01JCR")  # ids of runs in examples
KNOWN = {*RUNS, "last", "toy", "episode/return"}  # words of an example that are valid in this test


def commands(text):
    """The commands in the text of --help. Text after two or more spaces is a comment."""
    lines = [re.split(r"\s{2,}", line.strip())[0] for line in text.strip().splitlines()]
    return [line for line in lines if line.startswith("mosaic ")]


def parsers(parser):
    yield parser
    for inner in parser.actions.values():
        yield from parsers(inner)
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                yield from parsers(inner)


def examples():
    found = [line for parser in parsers(build_parser()) for line in commands(parser.epilog or "")]
    return sorted(set(found) - set(commands(RUN_EXAMPLES)))


def words_of(command):
    """The arguments of a command, without redirections and pipes."""
    words = shlex.split(command)[1:]
    return words[: next((number for number, word in enumerate(words) if word in (">", "|")), len(words))]


def is_executed(words):
    verb, *rest = words
    if tuple(words[:2]) in READING_WORKERS:
        rest = rest[1:]
    elif verb not in READING:
        return False
    if "--fix" in rest or "-f" in rest or "--wait" in rest:
        return False
    return all(
        word.startswith("-") or word in KNOWN or rest[number - 1].startswith("--") for number, word in enumerate(rest)
    )


@pytest.fixture(scope="module")
def lab():
    home = Path(tempfile.mkdtemp(prefix="mosaic-"))
    if (CLEANRL / ".ready").exists():
        (home / "envs").mkdir()
        # The packages of the variant are not installed, but its schema is the same and it is never started.
        (home / "envs/cleanrl").symlink_to(CLEANRL)
        (home / "envs/cleanrl@jax").symlink_to(CLEANRL)
        (home / "envs/dreamer").symlink_to(DREAMER)
    lab = Lab(home, ("--gpus", "1", "--max-runs", "1"))
    yield lab
    lab.close()
    shutil.rmtree(home, ignore_errors=True)


@pytest.fixture(scope="module")
def execute(lab, tmp_path_factory):
    folder = tmp_path_factory.mktemp("here")
    for name in ("train.py", "train.sh", "my_package/__init__.py", "my_package/train.py"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("print('hello')\n")
    venv.create(folder / ".venv", symlinks=True, with_pip=False)  # of the project that the examples are in

    def run(*words):
        env = {**os.environ, "MOSAIC_HOME": str(lab.root.path)}
        done = subprocess.run([MOSAIC, *words], capture_output=True, text=True, env=env, cwd=folder, timeout=120)
        assert done.returncode == 0, f"mosaic {' '.join(words)}: {done.stdout}{done.stderr}"
        return done.stdout

    return run


@pytest.mark.parametrize("command", examples())
def test_every_example_can_be_parsed(command):
    assert build_parser().parse_args(words_of(command)).action


def test_examples_that_only_read_are_executed(lab, monkeypatch, tmp_path):
    monkeypatch.setenv("MOSAIC_HOME", str(lab.root.path))
    monkeypatch.chdir(tmp_path)
    ended = [lab.wait_until_over(lab.submit(steps=60, episode_length=20)).run_id for _ in RUNS]
    chosen = [words for words in map(words_of, examples()) if is_executed(words)]

    for words in chosen:
        assert main([ended[RUNS.index(word)] if word in RUNS else word for word in words]) == 0, words

    assert {words[0] for words in chosen} >= {"runs", "show", "logs", "export", "curve", "du", "worker", "daemon"}


def test_the_first_example_runs_to_its_end(execute):
    first = words_of(commands(RUN_EXAMPLES)[0])

    run = json.loads(execute(*first, "--json"))

    assert (run["state"], run["progress"]) == ("TERMINATED", 1.0)


@pytest.mark.skipif(
    not (CLEANRL / ".ready").exists(), reason="the worker's environment is missing: make .venv-cleanrl/.ready"
)
def test_every_example_of_run_can_be_submitted(lab, execute):
    blocker = lab.submit(steps=1_000_000, rate=50)
    lab.wait_for(blocker, RunState.EXECUTING)

    for command in commands(RUN_EXAMPLES):
        words = on_this_machine(words_of(command))
        if "--help" in words:
            assert execute(*words).startswith("usage: mosaic run toy")
            continue
        extra = [word for word in ("--detach", "--json") if word not in words]
        reply = json.loads(execute(words[0], *extra, *words[1:]))
        for run in reply.get("runs", [reply]):  # an experiment has several
            assert (run["state"], run["settings_note"]) == ("INIT", ""), command
            lab.client.cancel_run(run["run_id"])
    lab.client.cancel_run(blocker.run_id)


def on_this_machine(words):
    """The same without the options of clusters: there is none here, and tests/machines starts one."""
    for option in ("--on", "--requeue-as-resume"):
        if option in words:
            at = words.index(option)
            words = words[:at] + words[at + 2 :]
    return [word.partition("@")[0] if words[at - 1] == "--part" else word for at, word in enumerate(words)]


def cleanrl_examples():
    return [words_of(line) for line in commands(RUN_EXAMPLES) if re.match("mosaic run cleanrl", line)]


@pytest.mark.parametrize("words", cleanrl_examples(), ids=" ".join)
def test_examples_with_cleanrl_are_in_the_table_of_supported_algorithms(words):
    """Which algorithm runs in which variant, and on what, is measured in docs/howto/cleanrl.md."""
    settings = parse_settings([word for word in words[2:] if re.match(r"\w+=", word)])
    variant = words[1].partition("@")[2]
    algo = f"{settings['algo']} (`@{variant}`)" if variant else settings["algo"]

    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in TABLE.read_text().splitlines() if "|" in line]

    assert [algo, settings["env_id"], "yes"] in [row[:3] for row in rows]


@pytest.mark.parametrize("settings", get_worker_schema()["x-mosaic-examples"])
def test_the_examples_of_the_toy_worker_fit_its_schema(settings):
    spec = WorkerSpec(module="toy_worker.cli", config=parse_settings(settings.split()))

    assert judge(spec, Descriptor(schema=get_worker_schema())).note == ""
