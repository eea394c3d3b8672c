"""`mosaic run` until the end: its summary agrees with what is stored."""

import os
import re
import subprocess
import sys
from pathlib import Path

MOSAIC = Path(sys.executable).with_name("mosaic")


def command(lab, *words, **more):
    env = {**os.environ, "MOSAIC_HOME": str(lab.root.path), "NO_COLOR": "1"}
    return subprocess.Popen([MOSAIC, *words], env=env, stdout=subprocess.PIPE, text=True, **more)


def output_of(lab, *words):
    done = command(lab, *words)
    output, _ = done.communicate(timeout=60)
    assert done.returncode == 0
    return output


def test_the_summary_agrees_with_the_store(shared_lab):
    output = output_of(shared_lab, "run", "toy", "steps=120", "garbage_every=1", "--name", "checked")

    run = next(run for run in shared_lab.client.list_runs().runs if run.name == "checked")
    counts = {kind: len(shared_lab.events(run, kind)) for kind in ("step", "episode", "metric")}
    rejects = len(shared_lab.rejects(run))
    assert rejects > 0
    assert (
        f"120 env steps in {output.split('120 env steps in ')[1].split()[0]} · {counts['step']} step rows, " in output
    )
    assert f"{counts['episode']} episodes, {counts['metric']} metric rows stored · {rejects} lines rejected" in output


def test_the_summary_names_the_command_that_shows_rejected_lines(shared_lab):
    output = output_of(shared_lab, "run", "toy", "steps=40", "garbage_every=1", "text_every=10")

    words = re.search(r"see: mosaic (logs \S+ --rejects)", output)[1].split()
    seen = output_of(shared_lab, *words).splitlines()

    assert f"{len(seen)} lines rejected" in output
    assert all(line.startswith("[mosaic: ") for line in seen)


def test_a_restart_of_the_daemon_is_reported_and_waited_for(lab):
    following = command(lab, "run", "toy", "steps=1000000", "rate=50")
    output = read_until(following, "EXECUTING")

    lab.stop_daemon()
    output += read_until(following, "waiting for the daemon, which does not answer")
    lab.restart_daemon()
    run = lab.client.list_runs().runs[0]
    lab.client.cancel_run(run.run_id)
    output += following.communicate(timeout=60)[0]

    assert following.returncode == 1
    assert "CANCELLED" in output


def read_until(process, words):
    output = ""
    while words not in output:
        line = process.stdout.readline()
        assert line, f"no {words!r} in {output!r}"
        output += line
    return output
