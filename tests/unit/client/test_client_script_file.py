"""Evaluation scripts are read from YAML, JSON and programs."""

import os

import pytest
from lab import alive, wait_until

from mosaic.client.script_file import is_script, parse_script, read_script
from mosaic.model.errors import BadConfig, MosaicError


@pytest.fixture
def read(tmp_path):
    def write_and_read(name, text, **options):
        path = tmp_path / name
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return read_script(path, **options)

    return write_and_read


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.yaml", "env: E\nlr: 1e-3\nseeds: 0-19\n"),
        ("a.yml", "{env: E, lr: 0.001, seeds: 0-19}"),
        ("a.json", '{"env": "E", "lr": 0.001, "seeds": "0-19"}'),
        ("a.py", 'print(\'{"env": "E", "lr": 1e-3, "seeds": "0-19"}\')'),
        ("b.py", "print('env: E\\nlr: 1e-3\\nseeds: 0-19')"),
    ],
)
def test_every_format_gives_the_same_document(read, name, text):
    assert read(name, text) == {"env": "E", "lr": 0.001, "seeds": "0-19"}


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("a.yaml", "env: E\nseeds: [1, 2\n", r"a.yaml, line 3, column 1: expected ',' or '\]'"),
        ("a.yaml", "env: E\nenv: F\n", "a.yaml, line 2, column 1: the key 'env' is given twice"),
        (
            "a.yaml",
            "env: !!python/object/apply:os.system [true]\n",
            "line 1, column 6: could not determine a constructor",
        ),
        ("a.yaml", "- env\n", "must be a mapping with keys such as env and operators; it is a list"),
        ("a.yaml", "", "it is empty"),
        ("a.yaml", b"\xff\xfe\x00", "is not a UTF-8 text file"),
        ("a.json", '{"env": }', "a.json, line 1, column 9: Expecting value"),
        ("a.json", "[" * 100_000, "nested too deeply"),
        ("a.toml", "env = 1", "its name must end with .yaml, .yml, .json, .py"),
        ("a.py", "print('[1')", "The output of .*a.py, line 2, column 1"),
        ("a.py", "print(1)", "The output of .*a.py must be a mapping"),
    ],
)
def test_a_file_that_cannot_be_used_is_named_with_the_place(read, name, text, sentence):
    with pytest.raises(MosaicError, match=sentence):
        read(name, text)


def test_a_program_that_fails_shows_its_exit_code_and_stderr(read):
    text = "import sys\nprint('env: E')\nsys.exit('no such policy')\n"

    with pytest.raises(MosaicError, match=r"a.py exited with 1. Its output on stderr:\n  no such policy"):
        read("a.py", text)


def test_a_program_has_a_time_limit_and_leaves_nothing_behind(read, tmp_path):
    child = "import subprocess, sys\nchild = subprocess.Popen(['sleep', '600'])\n"
    text = f"{child}open({str(tmp_path / 'pid')!r}, 'w').write(str(child.pid))\nchild.wait()\n"

    with pytest.raises(MosaicError, match=r"a.py did not end within 1 s"):
        read("a.py", text, limit_s=1)

    wait_until(lambda: not alive(int((tmp_path / "pid").read_text())))


def test_a_program_runs_in_a_process_of_its_own(read):
    text = "import os, json\nos.environ['MARK'] = '1'\nprint(json.dumps({'pid': os.getpid()}))\n"

    assert read("a.py", text)["pid"] != os.getpid()
    assert "MARK" not in os.environ


def test_a_bad_script_is_a_bad_config():
    with pytest.raises(BadConfig, match="operators is missing"):
        parse_script({"env": "E"}, "script")


def test_names_of_scripts_and_of_runs():
    assert [
        name for name in ("a.yaml", "b/c.YML", "d.json", "e.py", "last", "01JCQ", "run.v2", "") if is_script(name)
    ] == [
        "a.yaml",
        "b/c.YML",
        "d.json",
        "e.py",
    ]
