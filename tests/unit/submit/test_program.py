import sys

import pytest

from mosaic.model import inputs
from mosaic.model.errors import BadConfig
from mosaic.submit import program
from mosaic.submit.validate import validate


@pytest.fixture
def submit(make_context, tmp_path):
    """Validates a config of a script, with these fields of metadata.worker instead of its own."""
    script = tmp_path / "train.py"
    script.touch()

    def submit(**worker):
        fields = {"script": str(script), "python": sys.executable, **worker}
        kept = {name: value for name, value in fields.items() if value is not None}
        return validate({"metadata": {"worker": kept}}, make_context())

    return submit


def test_a_program_has_its_own_interpreter_and_folder(submit, tmp_path):
    run = submit(cwd=str(tmp_path), observe=False)

    assert (run.worker.python, run.worker.cwd, run.worker.observe) == (sys.executable, str(tmp_path), False)
    assert (run.worker_name, run.area) == ("train.py", "custom_scripts")
    assert submit().worker.observe is None


def test_a_module_in_a_foreign_environment_is_not_looked_up(submit):
    run = submit(script=None, module="nosuch_package.train")

    assert (run.worker_name, run.area) == ("nosuch_package.train", "runs")


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"python": "bin/python"}, r"metadata\.worker\.python: 'bin/python' is relative"),
        ({"python": "/nowhere/python"}, "does not exist"),
        ({"python": "/etc"}, "'/etc' is not a program. Name an interpreter, such as /usr/bin/python3"),
        ({"python": "/etc/passwd"}, "is not a program"),
        ({"python": "/bin/\0"}, "NUL"),
        ({"cwd": "/etc/passwd"}, r"metadata\.worker\.cwd: '/etc/passwd' is not a folder"),
        ({"cwd": "here"}, "'here' is relative"),
        ({"inputs": "/nowhere"}, r"metadata\.worker\.inputs: '/nowhere' is not a folder"),
        ({"inputs": "/etc", "cwd": "/etc"}, r"metadata\.worker\.cwd names another one"),
        ({"variant": "toy"}, r"metadata\.worker\.variant names an environment as well"),
        ({"observe": "yes"}, "must be true or false"),
        ({"pyhton": "/usr/bin/python3"}, "Did you mean 'python'"),
    ],
)
def test_what_cannot_be_used_is_refused_at_the_submit(submit, fields, expected):
    with pytest.raises(BadConfig, match=expected):
        submit(**fields)


def test_a_folder_with_too_many_files_is_not_linked(submit, tmp_path, monkeypatch):
    monkeypatch.setattr(program, "MOST_LINKS", 3)
    for number in range(4):
        (tmp_path / f"image{number}").touch()

    assert inputs.MOST_LINKS >= 1000
    with pytest.raises(BadConfig, match=r"has more than 3 files, too many to link\. Run in it instead: --cwd"):
        submit(inputs=str(tmp_path))
