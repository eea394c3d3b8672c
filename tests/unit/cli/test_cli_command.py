"""The command as a process: exit codes, one sentence per error, a closed pipe, a fast start."""

import os
import subprocess
import sys

import pytest

from mosaic.cli import main as command
from mosaic.model.errors import MosaicError


def mosaic(*words, home, **options):
    environment = {**os.environ, "MOSAIC_HOME": str(home)}
    for name in ("MOSAIC_ADDRESS", "MOSAIC_TOKEN_FILE", "MOSAIC_RUN_ID"):
        environment.pop(name, None)
    program = [sys.executable, "-m", "mosaic.cli.main", *words]
    return subprocess.run(program, env=environment, capture_output=True, text=True, timeout=60, **options)


def test_without_a_daemon_the_error_is_one_sentence_with_exit_code_1(root):
    done = mosaic("daemon", "status", home=root.path)

    assert done.returncode == 1
    assert "mosaic daemon start" in done.stdout


def test_stopping_a_daemon_that_is_not_running_succeeds(root):
    done = mosaic("daemon", "stop", home=root.path)

    assert (done.returncode, done.stdout) == (0, "No daemon is running.\n")


def test_an_unknown_worker_is_one_sentence_and_a_traceback_only_with_v(root):
    short = mosaic("run", "nope", home=root.path)
    long = mosaic("run", "nope", "-v", home=root.path)

    assert short.returncode == long.returncode == 1
    assert short.stderr.startswith("mosaic: ")
    assert "Traceback" not in short.stderr
    assert "Traceback" in long.stderr


def test_a_missing_config_is_named(root):
    done = mosaic("submit", "nowhere.json", home=root.path)

    assert (done.returncode, done.stderr) == (1, "mosaic: Cannot read nowhere.json: No such file or directory.\n")


def test_a_usage_error_is_exit_code_2(root):
    assert mosaic("bogus", home=root.path).returncode == 2


def test_the_doctor_starts_no_daemon(root):
    mosaic("doctor", "--json", home=root.path)

    assert not root.daemon_log.exists()


def test_help_imports_neither_grpc_nor_rich():
    program = (
        "import sys; from mosaic.cli import main; main.main([]); print(sorted(sys.modules.keys() & {'grpc', 'rich'}))"
    )

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)

    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    ("raised", "code"), [(MosaicError("expected"), 1), (KeyboardInterrupt(), 130), (ValueError("odd"), 1)]
)
def test_every_kind_of_error_has_its_exit_code(monkeypatch, capsys, raised, code):
    def fail(_):
        raise raised

    monkeypatch.setattr(command, "_overview", fail)

    assert command.main([]) == code
    assert "Traceback" not in capsys.readouterr().err


LONG_OUTPUT = """
from mosaic.cli import main
main._overview = lambda _: [print("x" * 9999) for _ in range(999)] and 0
raise SystemExit(main.main([]))
"""


LONG_HELP = """
from mosaic.cli import main, worker_settings
worker_settings.describe_settings = lambda *_: "x" * 9_999_999
raise SystemExit(main.main(["run", "toy", "--help"]))
"""


@pytest.mark.parametrize("script", [LONG_OUTPUT, LONG_HELP])
def test_a_closed_pipe_is_not_an_error(script):
    writer = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    writer.stdout.close()
    output = writer.stderr.read()
    writer.stderr.close()

    assert (writer.wait(30), output) == (0, b"")
