import os
import shutil
import signal
import sys
from pathlib import Path

import pytest

PYTHONS = [sys.executable, *map(str, sorted(Path.home().glob(".pyenv/versions/3.[89].*/bin/python")))]
NEWEST = sorted(Path.home().glob(".pyenv/versions/3.1[2-9].*/bin/python"))
PYTHONS += [str(path) for path in NEWEST]


@pytest.fixture(params=PYTHONS, ids=lambda path: path.split("/")[-3])
def python(request):
    return request.param


PRINTERS = """
import os
for child in range(4):
    if os.fork() == 0:
        for number in range(500):
            print("child", child, number, "x" * (number * 97 % 20000), "end")
        os._exit(0)
for _ in range(4): os.wait()
"""


@pytest.mark.parametrize("unbuffered", [{}, {"PYTHONUNBUFFERED": "1"}], ids=["buffered", "unbuffered"])
def test_forked_processes_print_whole_lines(bench, python, unbuffered):
    ended = bench.script(PRINTERS, python=python, path=[bench.autowrap], env=unbuffered)

    assert ended.code == 0, ended.err
    torn = [line for line in ended.lines if not (line.startswith(b"child ") and line.endswith(b" end"))]
    assert torn == []
    assert len(ended.lines) == 2000


def test_a_line_is_in_the_file_when_print_returns(bench, python):
    ended = bench.script("import os; print('a'); print('b', end=''); os._exit(0)", python=python, path=[bench.autowrap])

    assert ended.out == b"a\n"


STACKS = """
import threading, time
def wait_in_thread(): started.set(); time.sleep(60)
def wait_in_main():
    print("ready")
    time.sleep(60)
started = threading.Event()
threading.Thread(target=wait_in_thread, daemon=True).start()
started.wait()
wait_in_main()
"""


def test_sigusr2_prints_the_stacks_of_all_threads_and_the_script_goes_on(bench, python):
    process = bench.start("-c", STACKS, python=python, path=[bench.autowrap])
    bench.wait_for(b"ready", process)

    os.kill(process.pid, signal.SIGUSR2)

    bench.wait_for(b"wait_in_main", process, bench.err)
    assert "wait_in_thread" in bench.err.read_text()
    assert process.poll() is None


def test_a_signal_that_is_ignored_stays_ignored(bench):
    run = "import os, signal, subprocess, sys; signal.signal(signal.SIGUSR2, signal.SIG_IGN)\n"
    run += "sys.exit(subprocess.call([sys.executable, '-c', 'import os; os.kill(os.getpid(), 12)']))"

    ended = bench.script(run, path=[bench.autowrap])

    assert (ended.code, ended.err) == (0, "")


def other_sitecustomize(folder, text):
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(text)
    return folder


def test_the_sitecustomize_that_it_hides_runs_normally(bench, python, tmp_path):
    other = other_sitecustomize(tmp_path / "other", "import sys; sys.path.append('/added'); WHO = __file__\n")
    script = "import sys, sitecustomize; print(sitecustomize.WHO, '/added' in sys.path, *sys.path, sep='\\n')"

    alone = bench.script(script, python=python, path=[other], run_id=None)
    bench.out.unlink()
    hidden = bench.script(script, python=python, path=[bench.autowrap, other])

    assert hidden.lines == alone.lines
    assert str(other).encode() in hidden.lines[0]


def test_the_error_of_a_hidden_sitecustomize_is_reported_as_python_reports_it(bench, tmp_path):
    other = other_sitecustomize(tmp_path / "other", "import no_such_module\n")

    alone = bench.script("print(1)", path=[other], run_id=None)
    bench.err.unlink()
    hidden = bench.script("print(1)", path=[bench.autowrap, other])

    assert hidden.code == alone.code == 0
    assert "no_such_module" in alone.err
    assert hidden.err == alone.err


def test_children_get_it_too(bench):
    child = "import sys; print(sys.stdout.line_buffering)"
    script = f"import subprocess, sys; subprocess.call([sys.executable, '-c', '{child}'])"

    assert bench.script(script, path=[bench.autowrap]).out == b"True\n"


def test_outside_a_run_it_does_nothing(bench):
    script = "import signal, sys; print(sys.stdout.line_buffering); import os; os.kill(os.getpid(), signal.SIGUSR2)"

    ended = bench.script(script + "\n", path=[bench.autowrap], run_id=None)

    assert ended.code == -signal.SIGUSR2


def test_it_survives_without_stdout_and_without_its_sdk(bench, tmp_path):
    lonely = tmp_path / "lonely"
    shutil.copytree(bench.autowrap, lonely)

    ended = bench.run("-c", f"exec '{sys.executable}' -c 'import sys; sys.exit(7)' >&-", python="sh", path=[lonely])

    assert (ended.code, ended.err) == (7, "")


def test_a_preparation_that_fails_does_not_affect_the_script(bench, tmp_path):
    text = (bench.autowrap / "sitecustomize.py").read_text()
    failing = text.replace("_PREPARATIONS = (", "_PREPARATIONS = (lambda: 1 / 0, ")
    assert failing != text

    ended = bench.script(
        "import sys; print(sys.stdout.line_buffering)", path=[other_sitecustomize(tmp_path / "failing", failing)]
    )

    assert (ended.out, ended.err) == (b"True\n", "")


def test_it_imports_nothing_that_python_has_not_loaded(bench):
    script = "import sys; print(*sorted(m for m in sys.modules if m != 'sitecustomize'), sep='\\n')"

    bare = bench.script(script, path=[bench.sdk], run_id=None)
    bench.out.unlink()
    wrapped = bench.script(script, path=[bench.autowrap])

    assert set(wrapped.lines) - set(bare.lines) <= {b"faulthandler"}
