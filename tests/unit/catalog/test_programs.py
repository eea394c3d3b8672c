import sys
from pathlib import Path

import pytest

from mosaic.catalog.interpreters import Interpreter
from mosaic.catalog.programs import Program, Surroundings, check_module, find_script, is_program, program_section
from mosaic.model.errors import MosaicError

HERE = Interpreter(Path(sys.executable), "this one", sys.version_info[:3])


@pytest.mark.parametrize(
    ("words", "program"),
    [
        ("python train.py --lr 1 -v", Program("", "train.py", "", ("--lr", "1", "-v"))),
        ("python3 -- train.py -- x", Program("", "train.py", "", ("--", "x"))),
        ("python -m pkg.train --lr 1", Program("", "", "pkg.train", ("--lr", "1"))),
        ("python3.12 train.py", Program("python3.12", "train.py")),
        (".venv/bin/python train.py", Program(".venv/bin/python", "train.py")),
    ],
)
def test_a_command_line_is_read_as_a_shell_would_start_it(words, program):
    assert Program.of(words.split()) == program


@pytest.mark.parametrize(
    ("words", "expected"),
    [("python", "Name the script"), ("python -u x.py", "-u is in the place of the script"), ("python -m", "-m needs")],
)
def test_a_command_line_without_a_script_is_refused(words, expected):
    with pytest.raises(MosaicError, match=expected):
        Program.of(words.split())


def test_only_a_python_begins_a_program():
    assert all(map(is_program, ("python", "python3", "python3.13", "python3.13t", "/usr/bin/python3", "./x/python")))
    assert not any(map(is_program, ("toy", "python_worker", "pythonic", "pyhton", "python@jax", "my-python")))


def test_a_script_is_submitted_with_its_interpreter_and_the_folder_of_the_caller(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/train.py").touch()
    program = Program("", "sub/train.py", "", ("--lr", "3e-4"))

    section = program_section(program, HERE, Surroundings(), tmp_path)

    assert section == {
        "script": str(tmp_path / "sub/train.py"),
        "python": sys.executable,
        "arguments": ["--lr", "3e-4"],
        "inputs": str(tmp_path),
    }
    assert program.folder(tmp_path) == tmp_path / "sub"


def test_a_folder_variables_and_observation_are_as_asked(tmp_path):
    (tmp_path / "train.py").touch()

    section = program_section(
        Program("", "train.py"), HERE, Surroundings(".", {"WANDB_MODE": "offline"}, False), tmp_path
    )

    assert section["cwd"] == str(tmp_path)
    assert "inputs" not in section
    assert (section["environment"], section["observe"]) == ({"WANDB_MODE": "offline"}, False)


def test_a_python_that_the_sdk_does_not_support_is_not_observed(tmp_path):
    (tmp_path / "train.py").touch()
    old = Interpreter(Path(sys.executable), "old", (3, 8, 18))

    assert program_section(Program("", "train.py"), old, Surroundings(), tmp_path)["observe"] is False


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("nosuch.py", "There is no file .*/nosuch.py"),
        ("trian.py", r"There is no file .*/trian.py\. Did you mean train.py\?"),
        ("folder", "folder is a folder. Name the script in it"),
        ("pkg", "Start a package with: mosaic run --module pkg"),
        ("book.ipynb", "book.ipynb is a notebook.*nbconvert --to script book.ipynb"),
        ("all.sh", "all.sh is a shell script. Run it with: mosaic run --script all.sh"),
    ],
)
def test_what_python_cannot_run_is_refused(tmp_path, name, expected):
    for file in ("train.py", "book.ipynb", "all.sh", "folder/x", "pkg/__init__.py"):
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).touch()

    with pytest.raises(MosaicError, match=expected):
        find_script(name, tmp_path)


def test_a_module_is_found_beside_the_caller_and_in_the_environment(tmp_path):
    (tmp_path / "pkg/sub").mkdir(parents=True)
    (tmp_path / "pkg/__init__.py").write_text("raise RuntimeError('imported by the check')")
    for name in ("train.py", "sub/__main__.py"):
        (tmp_path / "pkg" / name).touch()

    for module in ("pkg.train", "pkg.sub", "json.tool"):
        check_module(module, HERE, tmp_path)


@pytest.mark.parametrize(
    ("module", "expected"),
    [
        ("nosuch", "has no module 'nosuch', and neither has"),
        ("pkg.nosuch", r"There is no module 'nosuch' in 'pkg'\. It has: train"),
        ("pkg", r"'pkg' is a package without a __main__\.py\. Name one of its modules: pkg\.train"),
        ("train.py", "Run a file with: mosaic run python train.py"),
        ("a-b", "'a-b' is not a valid module name"),
    ],
)
def test_a_module_that_does_not_exist_is_refused(tmp_path, module, expected):
    (tmp_path / "pkg").mkdir()
    for name in ("__init__.py", "train.py"):
        (tmp_path / "pkg" / name).touch()

    with pytest.raises(MosaicError, match=expected):
        check_module(module, HERE, tmp_path)
