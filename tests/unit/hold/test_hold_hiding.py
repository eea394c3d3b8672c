"""What a worker sees and can write of trainer/, in its mount namespace."""

import json
import os
import subprocess
from typing import Any

import pytest
from hold_run import HeldRun

# Tries everything on the state root that a worker must not do, and prints what worked.
ATTACK = """
import ctypes, json, os, subprocess, sys
control, own, other, trainer = sys.argv[2:]
libc = ctypes.CDLL(None, use_errno=True)
done = []

def tried(name, action):
    try:
        if action() not in (None, -1, False):
            done.append(name)
    except OSError:
        pass

def written(path):
    return lambda: open(path, "w").write("forged")

def exposed():
    return os.path.exists(control + "/launch.json") or os.path.exists(trainer + "/daemon.token")

def in_new_user_namespace(action):
    def child():
        pid = os.fork()
        if pid == 0:
            os._exit(1 if libc.unshare(0x10000000 | 0x20000) == 0 and action() else 0)
        return os.waitpid(pid, 0)[1] != 0
    return child

def unmounted():
    while libc.umount2(trainer.encode(), 2) == 0:
        pass
    return exposed()

def bound_without_submounts():
    libc.mount(trainer.encode(), b"/mnt", None, ctypes.c_ulong(0x1000), None)
    return os.path.exists("/mnt/control/01RUN") or os.path.exists("/mnt/daemon.token")

def remounted():
    libc.mount(None, trainer.encode(), None, ctypes.c_ulong(0x20 | 0x1000), None)
    libc.mount(None, (trainer + "/runs").encode(), None, ctypes.c_ulong(0x20 | 0x1000), None)
    try:
        open(other + "/file", "w").close()
        return True
    except OSError:
        return False

for name in ("launch.json", "owner.lock", "started.json", "exit.json"):
    tried("read " + name, lambda: open(control + "/" + name).read() is not None)
    tried("write " + name, written(control + "/" + name))
tried("make control", lambda: os.makedirs(control) is None)
tried("read token", lambda: open(trainer + "/daemon.token").read())
tried("write registry", written(trainer + "/registry.db"))
tried("write config", written(trainer + "/configs/worker-01RUN.json"))
tried("write other", written(other + "/exit.json"))
tried("delete other", lambda: os.unlink(other + "/checkpoints/one.pt") or True)
tried("rename own", lambda: os.rename(own, own + "-away") or True)
tried("chmod trainer", lambda: os.chmod(trainer, 0o777) or True)
tried("unmount", unmounted)
tried("remount", remounted)
for action in (unmounted, bound_without_submounts, remounted):
    tried("new namespace: " + action.__name__, in_new_user_namespace(action))
for pid in filter(str.isdigit, os.listdir("/proc")):
    for way in ("root", "cwd"):
        tried(f"/proc/{way}", lambda: os.path.exists(f"/proc/{pid}/{way}{control}/launch.json"))
    fds = f"/proc/{pid}/fd"
    tried(fds, lambda: any("control" in os.readlink(f"{fds}/{fd}") for fd in os.listdir(fds)))
tried("mount namespace of pid 1", lambda: libc.setns(os.open("/proc/1/ns/mnt", 0), 0x20000) == 0 and exposed())
kept = [open(trainer + "/configs/worker-01RUN.json").read(), open(other + "/checkpoints/one.pt").read()]
open("own.txt", "w").write("mine")
open("sub.tmp", "w").close()
os.rename("sub.tmp", own + "/checkpoints/renamed")
print(json.dumps({"done": done, "kept": kept}))
"""


@pytest.fixture
def furnished(hold_run_of_any_user: HeldRun) -> HeldRun:
    """A state root with another run, configs, a token and a registry."""
    run = hold_run_of_any_user
    trainer = run.dir.path.parent.parent
    other = trainer / "runs" / "01OTHER"
    (other / "checkpoints").mkdir(parents=True)
    (other / "checkpoints" / "one.pt").write_text("weights")
    (trainer / "configs").mkdir()
    (trainer / "configs" / "worker-01RUN.json").write_text("config")
    (trainer / "daemon.token").write_text("secret")
    (trainer / "registry.db").write_text("rows")
    run.own()
    return run


def namespaces_work(run: HeldRun) -> bool:
    command = ["unshare", "-pfm", "--mount-proc", *([] if run.uid is None and os.geteuid() == 0 else ["-U"]), "true"]
    return subprocess.run(command, capture_output=True, user=run.uid).returncode == 0


def attack(run: HeldRun) -> dict[str, Any]:
    trainer = run.dir.path.parent.parent
    places = [str(place) for place in (run.dir.control, run.dir.path, trainer / "runs" / "01OTHER", trainer)]
    end = run.run([*run.script(ATTACK), *places])
    assert end["exit_code"] == 0, run.stderr
    found: dict[str, Any] = json.loads(run.stdout)
    return found


def test_a_worker_neither_sees_nor_writes_what_daemon_and_holder_believe(furnished: HeldRun) -> None:
    if not namespaces_work(furnished):
        pytest.skip("pid namespaces are refused here")

    found = attack(furnished)

    assert furnished.started["held_by"] == "pid namespace, control files hidden"
    assert found["done"] == []
    assert found["kept"] == ["config", "weights"]
    assert (furnished.dir.path / "own.txt").read_text() == "mine"


def test_without_a_namespace_the_run_starts_and_says_that_nothing_is_hidden(furnished: HeldRun) -> None:
    token = str(furnished.dir.path.parent.parent / "daemon.token")

    furnished.run(furnished.script(f"print(open({token!r}).read())"), hold="subreaper")

    assert furnished.started["held_by"] == "subreaper (best effort), control files not hidden"
    assert furnished.stdout == "secret\n"


def test_a_run_of_an_older_version_says_that_its_files_are_not_hidden(furnished: HeldRun) -> None:
    for path in furnished.dir.control.iterdir():
        path.unlink()
    furnished.dir.control.rmdir()
    furnished.dir.control.symlink_to(furnished.dir.path)

    furnished.run(furnished.script("print('ran')"))

    assert "control files not hidden (the run is from an older version)" in furnished.started["held_by"]
    assert furnished.stdout == "ran\n"
