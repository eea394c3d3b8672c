"""`mosaic daemon install`: the unit is valid, no other unit is overwritten, and stopping the service ends no run."""

import json
import os
import shlex
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from lab import alive, wait_until

from mosaic.cli.unit import unit_text
from mosaic.model.errors import MosaicError
from mosaic.model.states import RunState

needs_systemd = pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is not installed")


@pytest.fixture
def config(tmp_path):
    return {"XDG_CONFIG_HOME": str(tmp_path)}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "systemd" / "user" / "mosaic.service"


def command_of(unit, key):
    """The arguments that systemd reads from a line of the unit."""
    line = next(line for line in unit.splitlines() if line.startswith(f"{key}="))
    return [word.replace("%%", "%").replace("$$", "$") for word in shlex.split(line.partition("=")[2])]


@needs_systemd
@pytest.mark.parametrize("root", ["/home/ada/.local/state/mosaic", '/odd path/with "quotes", 100% and $HOME\\'])
def test_systemd_accepts_the_unit(tmp_path, root):
    file = tmp_path / "mosaic.service"
    file.write_text(unit_text(shutil.which("python3"), Path(root)))

    done = subprocess.run(
        ["systemd-analyze", "verify", "--user", file],
        env={**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
    )

    assert (done.returncode, done.stderr) == (0, "")


def test_the_unit_runs_this_mosaic_with_this_state_folder(mosaic, home, config, path):
    printed = mosaic("daemon", "install", "--print", **config)
    assert not path.exists()

    output = mosaic("daemon", "install", **config)

    assert path.read_text() == printed
    assert f"Wrote {path}." in output
    assert "systemctl --user enable --now mosaic" in output
    assert "loginctl enable-linger" in output
    assert command_of(printed, "Environment") == [f"MOSAIC_HOME={home}"]
    assert command_of(printed, "ExecStart")[-3:] == ["--root", str(home), "--from-settings"]


def test_a_state_folder_with_special_characters_reaches_the_daemon_unchanged():
    root = '/odd path/with "quotes", 100% and $HOME\\'

    assert command_of(unit_text("/usr/bin/python3", Path(root)), "ExecStart")[4] == root


@pytest.mark.parametrize("root", ["/two\nExecStartPre=/bin/lines", "/not-unicode-\udcff"])
def test_a_folder_that_a_unit_cannot_contain_is_refused(root):
    with pytest.raises(MosaicError, match="has characters that a systemd unit cannot contain"):
        unit_text("/usr/bin/python3", Path(root))


def test_install_updates_its_own_unit_and_no_other(mosaic, config, path):
    path.parent.mkdir(parents=True)
    path.write_text("[Service]\nExecStart=/bin/true\n")

    refused = mosaic("daemon", "install", code=1, **config)
    kept = mosaic("daemon", "uninstall", code=1, **config)

    assert "was not written by mosaic" in refused
    assert "was not written by mosaic" in kept
    assert path.read_text() == "[Service]\nExecStart=/bin/true\n"
    path.unlink()
    mosaic("daemon", "install", **config)
    mosaic("daemon", "install", MOSAIC_HOME=str(path.parent), **config)
    assert f'--root "{path.parent}"' in path.read_text()


def test_uninstall_removes_what_install_and_enable_left(mosaic, config, path):
    mosaic("daemon", "install", **config)
    wanted = path.parent / "default.target.wants" / path.name
    wanted.parent.mkdir()
    wanted.symlink_to(path)

    output = mosaic("daemon", "uninstall", **config)
    again = mosaic("daemon", "uninstall", **config)

    assert f"Removed {path}." in output
    assert f"There is no {path}." in again
    assert not os.path.lexists(wanted)


def test_a_stop_of_the_service_ends_the_daemon_and_leaves_its_runs(mosaic, lab, home, config):
    unit = mosaic("daemon", "install", "--print", **config)
    env = {**os.environ, "MOSAIC_HOME": str(home)}
    run = lab.submit(steps=1_000_000, rate=50)
    lab.wait_for(run, RunState.EXECUTING)
    holder = int(lab.rundir(run).owner_lock.read_text())

    # The service takes over from the daemon that the lab started.
    subprocess.run(command_of(unit, "ExecStartPre"), env=env, cwd="/", check=True, capture_output=True)
    service = subprocess.Popen(command_of(unit, "ExecStart"), env=env, cwd="/")
    try:
        wait_until(lambda: status(mosaic).get("pid") == service.pid, words="the service to answer")
        # Afterwards systemd sends SIGTERM to the main process, and because of KillMode=process to no other.
        subprocess.run(command_of(unit, "ExecStop"), env=env, cwd="/", check=True, capture_output=True)
        service.terminate()
        code = service.wait(30)
    finally:
        service.kill()
        service.wait()

    assert code in (0, -signal.SIGTERM)
    assert alive(holder)
    # Otherwise the tailer of the run would start a daemon after 30 s.
    assert json.loads((home / "trainer" / "daemon.json").read_text())["stopped_on_purpose"] is True


def status(mosaic):
    try:
        return json.loads(mosaic("daemon", "status", "--json"))
    except AssertionError:
        return {}  # no daemon answers yet
