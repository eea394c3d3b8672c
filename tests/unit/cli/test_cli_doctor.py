"""The checks of the doctor, in state roots made for the test: problems are found, and fixed only if that is safe."""

import fcntl
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from mosaic_sdk.fastlane import control

from mosaic.cli import doctor_checks, garbage, orphans
from mosaic.cli.doctor import apply_fix
from mosaic.cli.doctor_checks import Installation, run_checks, try_hole
from mosaic.cli.garbage import YOUNG_S, find_leftovers
from mosaic.cli.main import build_parser
from mosaic.cli.orphans import find_orphans
from mosaic.model.durable import write_json
from mosaic.model.file_locks import is_locked, lock_holder
from mosaic.model.rundir import AREAS
from mosaic.model.states import RunState
from mosaic.present.folder_size import usage_of
from mosaic.wire import mosaic_pb2 as pb

OVER = "01JCQ5W2ZK8M3N4P5Q6R7S8T9V"
LIVE = "01JCQ5W2ZK8M3N4P5Q6R7S8T9W"
STATES = {OVER: RunState.TERMINATED, LIVE: RunState.EXECUTING}


@pytest.fixture
def shm(tmp_path):
    folder = tmp_path / "shm"
    folder.mkdir()
    return folder


def healthy(**fields):
    from mosaic import __version__

    return pb.Health(**{"healthy": True, "version": __version__, **fields})


def findings(installation, check):
    return list(check(installation))


def test_a_healthy_root_has_no_problems(root, shm, monkeypatch):
    monkeypatch.setattr(control, "FOLDER", str(shm))
    monkeypatch.setattr(doctor_checks, "ROOT_NEEDS_BYTES", 0)
    monkeypatch.setattr(doctor_checks, "SHM_NEEDS_BYTES", 0)
    monkeypatch.setattr(doctor_checks, "try_hole", lambda _: "")

    assert list(run_checks(Installation(root, healthy(), STATES, shm=shm))) == []


def test_a_root_that_others_can_access_is_made_private(root):
    root.path.chmod(0o755)
    (found,) = findings(Installation(root), doctor_checks.check_root)

    assert apply_fix(found) == "done"
    assert root.path.stat().st_mode & 0o777 == 0o700
    assert findings(Installation(root), doctor_checks.check_root) == []


def test_a_token_that_others_can_read_is_reported_but_not_changed(root):
    root.token.write_text("x")
    root.token.chmod(0o644)

    (found,) = findings(Installation(root), doctor_checks.check_token)

    assert found.fix is None
    assert apply_fix(found) == ""


def test_a_dead_daemons_files_are_removed(root):
    root.pid.write_text("999999\n")
    write_json(root.address, {"version": 1, "addresses": ["unix:/x"]})
    (found,) = findings(Installation(root), doctor_checks.check_daemon)

    assert "999999" in found.what
    assert apply_fix(found) == "done"
    assert not root.pid.exists()
    assert not root.address.exists()


def test_the_files_of_a_daemon_that_hangs_are_kept(root):
    root.pid.write_text("999999\n")
    with open(root.lock, "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        (found,) = findings(Installation(root), doctor_checks.check_daemon)

        assert f"(pid {os.getpid()})" in found.what
        assert found.fix is None


def test_the_files_of_a_daemon_that_started_meanwhile_are_kept(root):
    root.pid.write_text("999999\n")
    (found,) = findings(Installation(root), doctor_checks.check_daemon)
    with open(root.lock, "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)

        apply_fix(found)

    assert root.pid.exists()


def test_an_unhealthy_daemon_and_one_of_another_version_are_reported(root):
    installation = Installation(root, pb.Health(healthy=False, problem="a writer died", version="0.0.1"))

    output = [found.what for found in findings(installation, doctor_checks.check_daemon)]

    assert "a writer died" in output[0]
    assert "0.0.1" in output[1]


def test_a_new_root_has_no_dead_daemon(root):
    assert findings(Installation(root), doctor_checks.check_daemon) == []


def test_is_locked_distinguishes_a_held_lock_from_a_free_one(tmp_path):
    path = tmp_path / "lock"
    with open(path, "w") as lock:
        assert not is_locked(path)
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert is_locked(path)
        assert lock_holder(path) == os.getpid()
    assert not is_locked(path)
    assert lock_holder(path) == 0
    assert not is_locked(tmp_path / "nothing")


@pytest.fixture
def start():
    """Starts processes that wait; each prints a line once it runs, and all are killed after the test."""
    started = []

    def make(code="", environment=None, cwd=None, arguments=()):
        program = f"{code}\nprint(flush=True)\nimport time\ntime.sleep(600)"
        command = [sys.executable, "-c", program, *arguments]
        child = subprocess.Popen(command, env=environment, cwd=cwd, stdout=subprocess.PIPE)
        started.append(child)
        child.stdout.readline()
        return child

    yield make
    for child in started:
        child.kill()
        child.wait()
        child.stdout.close()


def run_environment(root, run_id):
    return {"MOSAIC_RUN_ID": run_id, "MOSAIC_RUN_DIR": str(root.area("runs") / run_id)}


def test_a_process_of_a_run_that_is_over_is_killed_and_a_live_runs_is_not(root, start):
    orphan = start(environment=run_environment(root, OVER))
    worker = start(environment=run_environment(root, LIVE))

    (found,) = findings(Installation(root, healthy(), STATES), doctor_checks.check_orphans)
    assert str(orphan.pid) in found.what
    apply_fix(found)

    assert orphan.wait(10) == -signal.SIGKILL
    assert worker.poll() is None


def test_a_resource_tracker_without_an_environment_is_known_by_its_folder(root, start):
    folder = root.run("evals", OVER)
    folder.make()
    tracker = start(environment={}, cwd=folder.videos, arguments=("multiprocessing.resource_tracker",))
    shell = start(environment={}, cwd=folder.path)

    found = [orphan.pid for orphan in find_orphans(root.trainer, lambda run_id: run_id == OVER)]

    assert tracker.pid in found
    assert shell.pid not in found


def test_processes_of_another_root_are_ignored(root, start, tmp_path):
    other = start(environment={"MOSAIC_RUN_ID": OVER, "MOSAIC_RUN_DIR": str(tmp_path / "x" / "runs" / OVER)})

    found = [orphan.pid for orphan in find_orphans(root.trainer, lambda _: True)]

    assert other.pid not in found


def test_without_a_daemon_exit_json_shows_that_a_run_is_over(root):
    over, live = root.run("runs", OVER), root.run("runs", LIVE)
    over.make()
    live.make()
    write_json(over.exit, {"version": 1})
    installation = Installation(root)

    assert installation.is_over(OVER)
    assert not installation.is_over(LIVE)
    assert not installation.is_over("01JCQ5W2ZK8M3N4P5Q6R7S8T9X")


@pytest.fixture
def lanes_in_shm(shm, monkeypatch):
    monkeypatch.setattr(control, "FOLDER", str(shm))
    return shm


def test_frames_of_dead_writers_are_removed_and_no_others(root, lanes_in_shm):
    unknown = "01JCQ5W2ZK8M3N4P5Q6R7S8T9Z"
    dead = [f"mosaic.fastlane.{OVER}", f"mosaic.fastlane.{OVER}.1", f"mosaic.fastlane.{OVER}.t2.1"]
    dead += [f"mosaic.fastlane.{unknown}"]
    others = [f"mosaic.fastlane.{LIVE}", f"mosaic.fastlane.{unknown[:-1]}A", "psm_other"]
    for name in dead + others:
        (lanes_in_shm / name).write_bytes(b"x")
    make_old(lanes_in_shm / f"mosaic.fastlane.{unknown}")

    for found in findings(Installation(root, healthy(), STATES), doctor_checks.check_segments):
        assert apply_fix(found) == "done"

    assert sorted(os.listdir(lanes_in_shm)) == sorted(others)


def test_frames_that_are_removed_meanwhile_are_not_a_problem(root, lanes_in_shm, monkeypatch):
    page = lanes_in_shm / f"mosaic.fastlane.{OVER}"
    page.write_bytes(b"x")

    def gone(path):
        page.unlink(missing_ok=True)
        return False

    monkeypatch.setattr(orphans, "is_locked", gone)

    assert findings(Installation(root, healthy(), STATES), doctor_checks.check_segments) == []


def test_frames_of_a_live_writer_are_kept(root, lanes_in_shm):
    page = lanes_in_shm / f"mosaic.fastlane.{OVER}"
    page.write_bytes(b"x")
    (found,) = findings(Installation(root, healthy(), STATES), doctor_checks.check_segments)

    with open(page, "rb") as writer:
        fcntl.flock(writer, fcntl.LOCK_EX)

        assert findings(Installation(root, healthy(), STATES), doctor_checks.check_segments) == []
        assert "the writer is running" in apply_fix(found)

    assert page.exists()


def test_a_full_disk_is_reported(root, shm, monkeypatch):
    monkeypatch.setattr(doctor_checks, "ROOT_NEEDS_BYTES", 1 << 62)
    monkeypatch.setattr(doctor_checks, "SHM_NEEDS_BYTES", 1 << 62)

    places = [found.what for found in findings(Installation(root, shm=shm), doctor_checks.check_room)]

    assert len(places) == 2
    assert str(root.path) in places[0]


def test_the_check_for_holes_leaves_no_files(root):
    before = set(os.listdir(root.path))

    try_hole(root.path)

    assert set(os.listdir(root.path)) == before


def test_a_filesystem_without_holes_is_reported():
    assert try_hole(Path("/proc")) != ""


def test_only_broken_environments_are_reported(root):
    for name in ("whole", "empty", "dangling", "crashing"):
        (root.envs / name / "bin").mkdir(parents=True)
    (root.envs / "whole/bin/python").symlink_to(sys.executable)
    (root.envs / "dangling/bin/python").symlink_to("/nowhere/python")
    crashing = root.envs / "crashing/bin/python"
    crashing.write_text("#!/bin/sh\nexit 9\n")
    crashing.chmod(0o755)

    output = [found.what for found in findings(Installation(root), doctor_checks.check_environments)]

    assert len(output) == 3
    assert "exits with code 9" in output[0]
    assert "/nowhere/python" in output[1]
    assert "missing" in output[2]


def make_old(path):
    os.utime(path, (1, 1))


@pytest.mark.parametrize("area", AREAS)
def test_gc_finds_folders_without_a_run_but_keeps_those_with_checkpoints(root, area):
    ids = [f"01JCQ5W2ZK8M3N4P5Q6R7S8T{pair}" for pair in ("A1", "A2", "A3", "A4")]
    known, stray, with_checkpoints, young = (root.run(area, run_id) for run_id in ids)
    for folder in (known, stray, with_checkpoints, young):
        folder.make()
    (with_checkpoints.checkpoints / "policy.pt").write_text("weights")
    for folder in (known, stray, with_checkpoints):
        make_old(folder.path)

    found, kept = find_leftovers(root, {known.run_id}, young.path.stat().st_mtime + YOUNG_S / 2, 0.0)

    assert [leftover.paths for leftover in found] == [(stray.path, stray.control)]
    assert str(with_checkpoints.path) in kept[0]


def test_gc_finds_config_files_without_a_run(root):
    mine, stray = root.config_file(LIVE), root.worker_file(OVER)
    for file in (mine, stray):
        file.write_text("{}")
        make_old(file)

    (found,), _ = find_leftovers(root, {LIVE}, 1 + 2 * YOUNG_S, 0.0)

    assert found.paths == (stray,)


def gc_args(*words):
    return build_parser(["garbage"]).parse_args(["gc", *words])


@pytest.mark.parametrize("origin", ["missing", "created later", "rebuilt later", "damaged"])
def test_gc_keeps_folders_that_are_older_than_the_registry_unless_asked(root, origin):
    stray = root.run("runs", "01JCQ5W2ZK8M3N4P5Q6R7S8TA1")
    stray.make()
    config = root.config_file(stray.run_id)
    config.write_text("{}")
    make_old(stray.path)
    make_old(config)
    root.control.mkdir(exist_ok=True)
    texts = {"created later": '{"created_at": 50}', "rebuilt later": '{"created_at": 0.5, "rebuilt_at": 50}'}
    if origin != "missing":
        root.registry_origin.write_text(texts.get(origin, "[]"))

    found, kept = garbage._leftovers(root, (), gc_args())
    asked, _ = garbage._leftovers(root, (), gc_args("--older-than-registry"))

    assert found == []
    assert "older than the registry" in kept[0]
    assert {path for leftover in asked for path in leftover.paths} == {stray.path, stray.control, config}


def test_gc_deletes_folders_that_are_younger_than_the_registry(root):
    stray = root.run("runs", "01JCQ5W2ZK8M3N4P5Q6R7S8TA1")
    stray.make()
    make_old(stray.path)
    root.control.mkdir(exist_ok=True)
    root.registry_origin.write_text('{"created_at": 0.5}')

    (found,), kept = garbage._leftovers(root, (), gc_args())

    assert (found.paths, kept) == ((stray.path, stray.control), [])


def test_gc_keeps_the_folder_of_a_live_holder_and_its_config_even_if_asked(root):
    live = root.run("runs", "01JCQ5W2ZK8M3N4P5Q6R7S8TA1")
    live.make()
    config = root.config_file(live.run_id)
    config.write_text("{}")
    with open(live.owner_lock, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        make_old(live.path)
        make_old(config)

        found, kept = garbage._leftovers(root, (), gc_args("--older-than-registry"))

    assert found == []
    assert "live" in kept[0]


def test_gc_keeps_the_config_of_a_folder_with_checkpoints(root):
    folder, config = root.run("runs", "01JCQ5W2ZK8M3N4P5Q6R7S8TA1"), root.config_file("01JCQ5W2ZK8M3N4P5Q6R7S8TA1")
    folder.make()
    (folder.checkpoints / "policy.pt").write_text("weights")
    config.write_text("{}")
    make_old(folder.path)
    make_old(config)

    found, _ = find_leftovers(root, set(), 1 + 2 * YOUNG_S, 0.0)

    assert found == []


def test_a_rebuilt_registry_is_reported_until_it_is_confirmed(root):
    root.control.mkdir(exist_ok=True)
    root.registry_origin.write_text('{"created_at": 9, "rebuilt_at": 9, "why": "it is missing", "runs": 3}')

    (finding,) = findings(Installation(root), doctor_checks.check_registry)
    finding.fix()

    assert "because it is missing; it has 3 runs" in finding.what
    assert findings(Installation(root), doctor_checks.check_registry) == []


def test_disk_usage_counts_blocks_not_lengths(root):
    run = root.run("runs", OVER)
    run.make()
    with open(run.stdout, "wb") as file:
        file.truncate(1 << 30)
    run.telemetry.write_bytes(b"x" * 10000)
    (run.checkpoints / "deep").mkdir()
    (run.checkpoints / "deep" / "policy.pt").write_bytes(b"x" * 10000)

    parts = usage_of(run.path)

    assert parts["logs"] < 1 << 20
    assert parts["telemetry"] >= 10000
    assert parts["checkpoints"] >= 10000
