"""The conformance lab: a sound worker passes, and the card of a broken one names its fault and no other."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from lab import alive
from mosaic_sdk.lab.trial import Trial
from mosaic_sdk.testing import check_worker

REPO = Path(__file__).parents[2]
BROKEN = REPO / "tests" / "fixtures" / "broken_workers"
MOSAIC = Path(sys.executable).parent / "mosaic"

FAULTS = {  # module → the checks that must fail, and a part of what was observed
    "no_descriptor": (["descriptor"], "capabilities without a worker_type"),
    "no_started": (["lifecycle", "run failed"], "run_started is not the first"),
    "completes_when_it_fails": (["run failed"], "run_completed"),
    "exits_with_code_1": (["exit code"], "exit code 1"),
    "truncated_lines": (["whole lines"], "a line that is truncated or mixed"),
    "no_heartbeat": (["heartbeats"], "no heartbeat"),
    "ignores_sigterm": (["sigterm"], "it was still running 3 s after SIGTERM"),
    "ignores_the_seed": (["seed"], "reward 0 was"),
    "leaves_a_process": (["no leftovers"], "time.sleep(600)"),
    "leaves_shared_memory": (["no leftovers"], "/dev/shm/mosaic.fastlane"),
    "writes_outside": (["files inside"], "beside the run folder: results.csv; in TMPDIR: tmp"),
    "writes_home": (["files inside"], "in HOME: .acme/results.csv"),
    "trains_in_a_dry_run": (["dry run"], "60 lines of telemetry"),
    "wrong_answers": (["interactive"], "reset was answered with"),
    "no_episode_done": (["interactive"], "step 2, the last of its episode, was not answered with episode_done"),
    "no_action": (["agent"], "action_selected without an action"),
    "fails_at_stop": (["interactive", "agent"], "after stop: exit code 1"),
    "runs_without_an_environment": (["plain run refused"], 'events ["run_started"'),
    "runs_on_a_bad_config": (["bad config"], "exit code 1, after 1 lines of telemetry"),
}
NEVER = ["dry run", "exit code", "lifecycle", "telemetry", "heartbeats", "run failed", "sigterm"]


def card_of(module, **more):
    env = {"PYTHONPATH": str(BROKEN)}
    return check_worker(module, entry_point=f"{module}:get_worker_metadata", env=env, grace_s=3.0, **more)


def test_the_sound_worker_that_the_broken_ones_are_based_on_passes():
    card = card_of("sound")

    assert card.is_clean, str(card)


@pytest.mark.parametrize("module", FAULTS)
def test_the_card_of_a_broken_worker_names_its_fault(module):
    failed, words = FAULTS[module]

    card = card_of(module)

    assert card.failed == failed, str(card)
    seen = next(check for check in card.checks if check.name == failed[0])
    assert words in seen.seen
    assert seen.asks
    assert f"observed: {seen.seen}" in str(card)


def test_runs_that_are_forked_from_one_process_pass_too():
    card = card_of("sound", warm=["decimal"])

    assert card.is_clean, str(card)


@pytest.mark.parametrize(
    "module", ["exits_with_code_1", "ignores_sigterm", "ignores_the_seed", "leaves_a_process", "writes_home"]
)
def test_the_faults_of_forked_runs_are_found(module):
    card = card_of(module, warm=["decimal"])

    failed, words = FAULTS[module]
    assert card.failed == failed, str(card)
    assert words in str(card)


def test_a_forked_run_is_a_process_like_any_other(tmp_path):
    """Its library is imported already; folder, environment, arguments, session and output are its own."""
    (tmp_path / "shows.py").write_text(
        "import json, os, sys, tempfile\n"
        "assert 'decimal' in sys.modules and __name__ == '__main__'\n"
        "print(json.dumps([os.getcwd(), os.environ['MOSAIC_RUN_ID'], sys.argv[1:], os.getsid(0) == os.getpid(),\n"
        "    sys.path[0], tempfile.gettempdir()]))\n"
        "print('to stderr', file=sys.stderr)\n"
        "sys.exit(7)\n"
    )
    (tmp_path / "uses_temporary_files.py").write_text("import tempfile; tempfile.gettempdir()\n")
    env = {"PYTHONPATH": str(tmp_path)}
    with Trial("shows", {}, env=env) as place:
        warm = place.warm_python(sys.executable, ["decimal", "uses_temporary_files"])
        with Trial("shows", {}, env=env, warm=warm) as forked:
            forked.run(60)
            seen = json.loads(forked.stdout)
            ended, words = forked.ended, forked.last_words
            ground = forked.ground
        warm.close()

    assert (ended, words) == ("exit code 7", "to stderr")
    assert seen == [ground.run, forked.run_id, ["--config", ground.config_file], True, ground.run, f"{ground.path}/tmp"]


def test_a_library_that_cannot_be_imported_for_forked_runs_is_named():
    with pytest.raises(ChildProcessError, match="No module named 'no_such_library'"):
        card_of("sound", warm=["no_such_library"])


def test_a_check_that_had_nothing_to_check_is_not_passed():
    """A worker that never starts also refuses a bad config, prints no truncated line and leaves nothing behind."""
    card = card_of("never_starts")

    outcomes = {check.name: check.outcome for check in card.checks}
    assert card.failed == NEVER, str(card)
    assert {name for name, outcome in outcomes.items() if outcome == "ok"} == {"descriptor"}
    assert "bad config (the worker never ran, so there is nothing to check: it fails with a good config too)" in str(
        card
    )


def test_whole_lines_are_not_checked_without_lines():
    card = card_of("no_telemetry")

    outcomes = {check.name: check.outcome for check in card.checks}
    assert (outcomes["exit code"], outcomes["bad config"], outcomes["telemetry"]) == ("ok", "ok", "failed")
    assert outcomes["whole lines"] == "skipped"
    assert "whole lines (it printed no telemetry line)" in str(card)


def test_a_worker_that_follows_the_interactive_protocol_passes():
    card = card_of("plays")

    assert card.is_clean, str(card)
    assert [check.outcome for check in card.checks if check.name in ("interactive", "agent")] == ["ok", "ok"]


def test_a_worker_that_writes_into_its_own_package_fails(tmp_path):
    shutil.copytree(BROKEN / "writes_into_its_package", tmp_path / "writes_into_its_package")
    env = {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(BROKEN)])}

    card = check_worker(
        "writes_into_its_package.cli", entry_point="writes_into_its_package:get_worker_metadata", env=env, grace_s=3.0
    )

    assert card.failed == ["files inside"]
    assert "in its own package: results.csv" in str(card)


def test_a_cache_in_the_users_home_is_noted_but_is_not_a_fault():
    card = card_of("keeps_a_cache")

    assert card.is_clean, str(card)
    assert "files inside (it keeps a cache: .cache/acme/model.bin)" in str(card)


def test_compilation_caches_of_libraries_are_not_a_fault():
    card = card_of("keeps_a_compile_cache")

    assert card.is_clean, str(card)


def test_a_worker_under_test_has_its_own_home_and_working_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    question = "import os, json; print(json.dumps([os.environ['PWD'], os.getcwd(), os.path.expanduser('~')]))"

    with Trial("unused", {}, program=("-c", question)) as trial:
        printed = json.loads(trial.run(60).stdout)
        ground = trial.ground.path
    with Trial("unused", {}, env={"HOME": str(tmp_path)}, program=("-c", question)) as trial:
        own_home = json.loads(trial.run(60).stdout)[2]

    assert printed == [f"{ground}/run", f"{ground}/run", f"{ground}/home"]
    assert own_home == str(tmp_path)


def test_a_broken_worker_leaves_nothing_behind_after_its_check():
    seen = [check.seen for check in card_of("leaves_a_process").checks if check.name == "no leftovers"]
    seen += [check.seen for check in card_of("leaves_shared_memory").checks if check.name == "no leftovers"]

    pids, segments = re.findall(r"process (\d+)", seen[0]), re.findall(r"/dev/shm/\S+[^;\s]", seen[1])

    assert pids
    assert segments
    assert not [pid for pid in pids if alive(int(pid))]
    assert not [path for path in segments if os.path.exists(path)]


def test_a_new_worker_passes_unchanged_and_its_own_tests_pass(home, tmp_path):
    env = {**os.environ, "MOSAIC_HOME": str(home)}

    def mosaic(*arguments):
        return subprocess.run([MOSAIC, *arguments], env=env, cwd=tmp_path, capture_output=True, text=True)

    written = mosaic("worker", "new", "acme")
    installed = mosaic("worker", "install", "./acme_worker")
    tested = mosaic("worker", "test", "acme", "--json")
    again = mosaic("worker", "new", "acme")

    assert (written.returncode, installed.returncode) == (0, 0), installed.stderr
    card = json.loads(tested.stdout)
    assert card["is_clean"], tested.stdout
    assert (again.returncode, "already exists" in again.stderr) == (1, True)
    own = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"],
        cwd=tmp_path / "acme_worker",
        env={**env, "PYTHONPATH": str(tmp_path / "acme_worker")},
        capture_output=True,
        text=True,
    )
    assert own.returncode == 0, own.stdout


def test_a_worker_written_for_the_public_mosaic_passes(tmp_path):
    shutil.copytree(REPO / "tests/fixtures/my_worker/my_worker", tmp_path / "my_worker")
    path = os.pathsep.join([str(tmp_path), str(REPO / "sdk/gym_gui/src")])

    card = check_worker(
        "my_worker.cli", entry_point="my_worker:get_worker_metadata", env={"PYTHONPATH": path}, grace_s=3.0
    )

    assert card.is_clean, str(card)
    skipped = [check.name for check in card.checks if check.outcome == "skipped"]
    assert {"dry run", "run failed", "interactive"} <= set(skipped) <= {*skipped, "sigterm"}
