"""`mosaic run python FILE …`: where the options of MOSAIC end, and what is refused before anything is submitted."""

import pytest

from mosaic.cli.completion_query import complete
from mosaic.cli.main import build_parser, main
from mosaic.cli.run_program import variables_of
from mosaic.cli.verb import BadUsage


def parse(line):
    return build_parser(["run"]).parse(line.split())


@pytest.mark.parametrize(
    ("line", "program"),
    [
        ("run python train.py --lr 3e-4 --name x -v --help", "python train.py --lr 3e-4 --name x -v --help"),
        ("run --gpus 1 --name a python train.py --gpus 7", "python train.py --gpus 7"),
        ("run --name=a -- python train.py -- x", "python train.py -- x"),
        ("run --detach .venv/bin/python train.py", ".venv/bin/python train.py"),
        ("run --name python python x.py", "python x.py"),
        ("run --module pkg.train --lr 1", "python -m pkg.train --lr 1"),
        ("run --module=pkg.train -- --lr 1", "python -m pkg.train --lr 1"),
    ],
)
def test_everything_after_python_belongs_to_the_program(line, program):
    assert parse(line).program == program.split()


def test_options_before_python_are_those_of_mosaic():
    args = parse("run --gpus 2 --name python --env sb3 --no-observe python train.py --gpus 7")

    assert (args.gpus, args.name, args.env, args.no_observe) == (2, "python", "sb3", True)


def test_a_worker_and_a_script_are_parsed_as_before():
    args = parse("run toy steps=5 --detach rate=2")
    assert (args.program, args.worker, args.settings) == ([], "toy", ["steps=5", "rate=2"])
    args = parse("run --script x.sh python y")
    assert (args.program, args.script, args.worker, args.settings) == ([], "x.sh", "python", ["y"])


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("run", "name a worker (list them with: mosaic worker list), python and a script, or a --script"),
        ("run python", "Name the script: mosaic run python FILE"),
        ("run python -u x.py", "-u is in the place of the script"),
        ("run pyhton x.py", "there is no worker 'pyhton'. Did you mean: mosaic run python x.py"),
        ("run x.py", "there is no worker 'x.py'. Did you mean: mosaic run python x.py"),
        ("run toy --env CartPole-v1", "If it is a setting of the worker, write: env=CartPole-v1"),
        ("run toy --cwd /x", "--cwd is for your own programs"),
        ("run --set lr=1 --python /usr/bin/python3 python -m json.tool", "--set needs --script"),
        ("run --python a --env b python -m json.tool", "--python a and --env b both name a Python"),
        ("run --python a python3.12 -m json.tool", "--python a and python3.12 both name a Python"),
    ],
)
def test_a_command_that_cannot_be_meant_is_invalid_usage(root, capsys, line, expected):
    assert main(line.split()) == 2
    assert expected in capsys.readouterr().err


def test_another_machine_has_other_files(root, capsys):
    assert main(["--host", "me@box", "run", "python", "x.py"]) == 1
    assert "run python" in capsys.readouterr().err


def test_a_variable_is_given_or_taken_from_here(monkeypatch):
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.delenv("NOWHERE", raising=False)

    assert variables_of(parse("run --var WANDB_MODE --var A=b=c python x.py")) == {"WANDB_MODE": "offline", "A": "b=c"}
    with pytest.raises(BadUsage, match="--var NOWHERE: this variable is not set here"):
        variables_of(parse("run --var NOWHERE python x.py"))


def test_a_program_is_completed_with_files(root):
    def completions(line):
        return [candidate.value for candidate in complete(line.split(" "))]

    assert completions("run py") == ["python"]
    assert completions("run python tra") == [":files"]
    assert completions("run --gpus 1 python train.py --l") == []
