"""`mosaic run` to its end, as a person at a terminal sees it: what it says is what the store holds."""

import os
import re
import subprocess
import sys
from pathlib import Path

MOSAIC = Path(sys.executable).with_name("mosaic")


def command(lab, *words, **more):
    env = {**os.environ, "MOSAIC_HOME": str(lab.root.path), "NO_COLOR": "1"}
    return subprocess.Popen([MOSAIC, *words], env=env, stdout=subprocess.PIPE, text=True, **more)


def told_by(lab, *words):
    done = command(lab, *words)
    told, _ = done.communicate(timeout=60)
    assert done.returncode == 0
    return told


def test_the_last_words_are_true(shared_lab):
    told = told_by(shared_lab, "run", "toy", "steps=120", "garbage_every=1", "--name", "true words")

    run = next(run for run in shared_lab.client.list_runs().runs if run.name == "true words")
    counts = {kind: len(shared_lab.events(run, kind)) for kind in ("step", "episode", "metric")}
    rejects = len(shared_lab.rejects(run))
    assert rejects > 0
    assert f"120 env steps in {told.split('120 env steps in ')[1].split()[0]} · {counts['step']} step rows, " in told
    assert f"{counts['episode']} episodes, {counts['metric']} metric rows stored · {rejects} lines rejected" in told


def test_the_rejected_lines_can_be_seen_where_the_last_words_say(shared_lab):
    told = told_by(shared_lab, "run", "toy", "steps=40", "garbage_every=1", "text_every=10")

    words = re.search(r"see: mosaic (logs \S+ --rejects)", told)[1].split()
    seen = told_by(shared_lab, *words).splitlines()

    assert f"{len(seen)} lines rejected" in told
    assert all(line.startswith("[mosaic: ") for line in seen)


def test_a_restart_of_the_daemon_is_said_and_waited_for(lab):
    following = command(lab, "run", "toy", "steps=1000000", "rate=50")
    said = read_until(following, "EXECUTING")

    lab.stop_daemon()
    said += read_until(following, "no daemon answers; waiting for one")
    lab.restart_daemon()
    run = lab.client.list_runs().runs[0]
    lab.client.cancel_run(run.run_id)
    said += following.communicate(timeout=60)[0]

    assert following.returncode == 1
    assert "CANCELLED" in said


def read_until(process, words):
    said = ""
    while words not in said:
        line = process.stdout.readline()
        assert line, f"no {words!r} in {said!r}"
        said += line
    return said
