"""Real shells complete the real command."""

import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import pytest
from lab import Lab

BIN = Path(sys.executable).parent
NEEDS = {
    shell: pytest.mark.skipif(not shutil.which(shell), reason=f"{shell} is not installed") for shell in ("zsh", "fish")
}


@pytest.fixture(scope="module")
def shared():
    """One daemon; a run called `alpha`, one called `two words`, two called `twin`."""
    home = Path(tempfile.mkdtemp(prefix="mosaic-"))
    lab = Lab(home)
    lab.runs = {name: lab.submit(name, steps=1) for name in ("alpha", "two words", "twin")}
    lab.submit("twin", steps=1)
    subprocess.run([BIN / "mosaic", "worker", "describe", "toy"], env=env_of(home), check=True, capture_output=True)
    yield lab
    lab.close()
    shutil.rmtree(home, ignore_errors=True)


def env_of(home):
    return {**os.environ, "MOSAIC_HOME": str(home), "PATH": f"{BIN}:{os.environ['PATH']}", "TERM": "xterm"}


def until(ask, is_good):
    """Ask until the answer is good: on a busy machine a completion may reach its time limit and find less."""
    deadline = time.monotonic() + 60
    while not is_good(output := ask()):
        assert time.monotonic() < deadline, output
    return output


def in_bash(home, *words):
    script = (
        'source <(mosaic completion bash); COMP_WORDS=(mosaic "$@"); COMP_CWORD=$#; _mosaic; '
        "printf '%s\\n' \"${COMPREPLY[@]}\""
    )
    done = subprocess.run(["bash", "-c", script, "bash", *words], capture_output=True, text=True, env=env_of(home))
    assert done.stderr == ""
    return done.stdout.split("\n")[:-1]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["sho"], ["show"]),
        (["show", "al"], ["alpha"]),
        (["show", "two"], [r"two\ words"]),
        (["show", '"two'], ["two words"]),
        (["show", r"two\ w"], [r"two\ words"]),
        (["logs", "la"], ["last"]),
        (["run", "to"], ["toy"]),
        (["run", "toy", "step"], ["steps="]),
        (["run", "toy", "paint", "="], ["true", "false"]),
        (["run", "toy", "paint", "=", "t"], ["true"]),
        (["run", "toy", "paint=t"], ["paint=true"]),
        (["cancel", "--wa"], ["--wait"]),
        (["curve", "alpha", "step/"], ["step/reward"]),
    ],
)
def test_bash_completes(shared, words, expected):
    shared.wait_until_over(shared.runs["alpha"])

    assert until(lambda: in_bash(shared.root.path, *words), lambda found: found != [""]) == expected


def test_bash_completes_short_ids_and_unique_names(shared):
    found = until(lambda: in_bash(shared.root.path, "show", ""), lambda found: found != [""])

    assert {run.run_id[:13] for run in shared.runs.values()} <= set(found)
    assert {"last", "alpha"} <= set(found)
    assert "twin" not in found


@NEEDS["fish"]
@pytest.mark.parametrize(
    ("line", "expected"),
    [("mosaic show al", "alpha"), ("mosaic run toy step", "steps="), ("mosaic run toy paint=t", "paint=true")],
)
def test_fish_completes(shared, line, expected):
    def ask():
        script = f"mosaic completion fish | source; complete -C '{line}'"
        done = subprocess.run(
            ["fish", "--no-config", "-c", script], capture_output=True, text=True, env=env_of(shared.root.path)
        )
        assert done.stderr == ""
        return done.stdout

    found = until(ask, bool)

    assert [row.split("\t")[0] for row in found.splitlines()] == [expected]


@NEEDS["zsh"]
@pytest.mark.parametrize(
    ("line", "expected"),
    [("mosaic show al", "alpha "), ("mosaic run toy step", "steps="), ("mosaic run toy paint=t", "paint=true ")],
)
def test_zsh_completes(shared, line, expected):
    assert expected in until(lambda: typed_in_zsh(shared.root.path, line, expected), lambda screen: expected in screen)


def typed_in_zsh(home, line, expected):
    """The line after Tab. zsh completes only on a terminal."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execvpe("zsh", ["zsh", "-f", "-i"], {**env_of(home), "PS1": "> "})
    try:
        setup = "autoload -Uz compinit; compinit -u -D; source <(mosaic completion zsh); PS1='rea''dy> '"
        os.write(terminal, f"{setup}\n".encode())
        read_until(terminal, "ready> ")
        os.write(terminal, f"{line}\t".encode())
        return read_until(terminal, expected)
    finally:
        os.close(terminal)
        os.waitpid(pid, 0)


def read_until(terminal, mark, limit_s=15.0):
    screen, deadline = "", time.monotonic() + limit_s
    while mark not in screen and time.monotonic() < deadline:
        if select.select([terminal], [], [], 0.2)[0]:
            with suppress(OSError):
                screen += os.read(terminal, 65536).decode(errors="replace")
        screen = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x09\x0b-\x1f]", "", screen)
    return screen


def test_completion_starts_no_daemon(home):
    assert in_bash(home, "show", "") == [""]
    assert not (home / "trainer").exists()


def test_completion_does_not_wait_for_a_daemon_that_hangs(shared):
    pid = shared.daemon_pid()
    os.kill(pid, signal.SIGSTOP)
    try:
        done = subprocess.run(
            [BIN / "mosaic", "__complete", "bash", "show", ""],
            capture_output=True,
            env=env_of(shared.root.path),
            timeout=60,
        )
    finally:
        os.kill(pid, signal.SIGCONT)

    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
