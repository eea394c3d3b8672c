"""What goes wrong around a cluster while nothing dies: ports, disks, drained nodes, a slow squeue, a second daemon."""

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest
from lab import Lab, wait_until
from small_disk import fill, small_disk

from mosaic.cli.root import split_root
from mosaic.model.rundir import StateRoot
from mosaic.model.states import RunState

GRACE = {"grace_s": 2}


def wait_for_steps(lab, run, count=1):
    return lab.wait_until_run(run, lambda now: now.summary.steps >= count, f"{count} steps")


def steps_of(lab, run):
    return [event["step_index"] for event in lab.events(run, "step")]


@contextlib.contextmanager
def settings(lab, more):
    """The file of the cluster with these lines as well: it is read for every launch."""
    file = lab.root.clusters / "slurm.toml"
    before = file.read_text()
    file.write_text(before + more)
    try:
        yield
    finally:
        file.write_text(before)


def test_a_drained_node_finishes_its_run(slurm_lab, cluster):
    run = slurm_lab.submit(steps=60, rate=30, on="slurm", limits=GRACE)
    node = wait_for_steps(slurm_lab, run).node

    cluster.ask("scontrol", "update", f"NodeName={node}", "State=DRAIN", "Reason=test")
    try:
        over = slurm_lab.wait_until_over(run)
    finally:
        cluster.ask("scontrol", "update", f"NodeName={node}", "State=RESUME")

    assert (over.state, steps_of(slurm_lab, run)) == (RunState.TERMINATED, list(range(60)))


class Relay:
    """A port that leads to the daemon, and can be blocked: connections break, and new ones are refused."""

    def __init__(self):
        self._open = []
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.address = f"127.0.0.1:{probe.getsockname()[1]}"

    def unblock(self, target):
        host, port = self.address.split(":")
        listener = socket.create_server((host, int(port)))
        self._open.append(listener)
        threading.Thread(target=self._accept, args=(listener, target), daemon=True).start()

    def block(self):
        for one in self._open:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
        self._open.clear()

    def _accept(self, listener, target):
        host, port = target.split(":")
        with contextlib.suppress(OSError):
            while True:
                near = listener.accept()[0]
                far = socket.create_connection((host, int(port)))
                self._open += [near, far]
                for one, other in ((near, far), (far, near)):
                    threading.Thread(target=_copy, args=(one, other), daemon=True).start()


def _copy(source, sink):
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_WR)


def test_a_port_that_is_blocked_and_open_again_loses_and_doubles_nothing(slurm_lab):
    slurm_lab.wait_until_over(slurm_lab.submit(steps=1, on="slurm", limits=GRACE))  # since then the daemon listens
    from mosaic.model.durable import read_json

    target = read_json(slurm_lab.root.settings)["nodes"]
    relay = Relay()
    relay.unblock(target)
    with settings(slurm_lab, f'reach = "{relay.address}"\n'):
        run = slurm_lab.submit(steps=200, rate=50, on="slurm", limits=GRACE)
        wait_for_steps(slurm_lab, run)

    relay.block()
    tailer_log = slurm_lab.rundir(run).tailer_log
    wait_until(lambda: "UNAVAILABLE" in tailer_log.read_text(), 60, "a tailer that gets no answer")
    relay.unblock(target)
    over = slurm_lab.wait_until_over(run)
    relay.block()

    assert (over.state, over.telemetry) == (RunState.TERMINATED, "")
    assert steps_of(slurm_lab, run) == list(range(200))


def test_a_slow_squeue_is_asked_for_all_runs_at_once_and_ends_no_run(slurm_lab, cluster, tmp_path, monkeypatch):
    calls = tmp_path / "calls"
    wrapper = tmp_path / "bin" / "squeue"
    wrapper.parent.mkdir()
    real = shutil.which("squeue", path=cluster.environment["PATH"])
    wrapper.write_text(f'#!/bin/sh\necho x >> {calls}\nsleep 0.5\nexec {real} "$@"\n')
    wrapper.chmod(0o755)
    cluster.ask("scontrol", "update", "NodeName=nodeA,nodeB", "State=DRAIN", "Reason=test")
    slurm_lab.stop_daemon()
    monkeypatch.setenv("PATH", f"{wrapper.parent}:{os.environ['PATH']}")
    slurm_lab.restart_daemon()
    try:
        configs = [_config(n) for n in range(20)]
        runs = [slurm_lab.client.submit_run(config) for config in configs]
        wait_until(lambda: all(run.waiting_for.startswith("Slurm: ") for run in _live(slurm_lab)), 100, "a queue")
        asked = calls.read_text().count("x")
        for run in runs:
            slurm_lab.client.cancel_run(run.run_id)
        wait_until(lambda: not _live(slurm_lab), 100, "an end of all")
    finally:
        monkeypatch.undo()
        cluster.ask("scontrol", "update", "NodeName=nodeA,nodeB", "State=RESUME")
        slurm_lab.stop_daemon()
        slurm_lab.restart_daemon()

    assert asked < len(runs)  # and not once for each
    assert {slurm_lab.state(run) for run in runs} == {RunState.CANCELLED}
    waiting = cluster.ask("squeue", "-h", "-t", "PENDING", "-o", "%j %r %k")
    assert not [run.run_id for run in runs if run.run_id in waiting], waiting


def _config(number):
    worker = {"module": "toy_worker.cli", "config": {"steps": 1}}
    return {"metadata": {"worker": worker, "run_name": f"queued {number}"}, "payload": {"on": "slurm", "limits": GRACE}}


def _live(lab):
    return [run for run in lab.client.list_runs().runs if not run.state.is_over]


def test_a_job_that_appears_after_the_end_of_its_run_is_cancelled_by_the_next_daemon(slurm_lab, cluster):
    run = slurm_lab.submit(steps=1, on="slurm", limits=GRACE)
    slurm_lab.wait_until_over(run)
    slurm_lab.stop_daemon()

    # As when the answer to a submission was lost.
    late = cluster.ask("sbatch", "--parsable", "--hold", "-J", f"mosaic-{run.run_id}-2", "--wrap", "true")
    slurm_lab.restart_daemon()

    wait_until(lambda: cluster.jobs()[late] == "CANCELLED", 60, "a cancelled job")


def test_a_second_daemon_over_the_shared_root_is_refused(slurm_lab):
    run = slurm_lab.submit(steps=100, rate=50, on="slurm", limits=GRACE)
    wait_for_steps(slurm_lab, run)
    command = [sys.executable, "-m", "mosaic.daemon.server", "--root", str(slurm_lab.root.path)]

    here = subprocess.run(command, capture_output=True, text=True, timeout=60)
    machine = slurm_lab.root.machine_id.read_text()
    slurm_lab.root.machine_id.write_text("another machine\n")
    try:
        elsewhere = subprocess.run(command, capture_output=True, text=True, timeout=60)
    finally:
        slurm_lab.root.machine_id.write_text(machine)
    over = slurm_lab.wait_until_over(run)

    assert here.returncode == 3, here.stderr
    assert elsewhere.returncode == 1, elsewhere.stderr
    assert "another machine" in elsewhere.stderr or "MOSAIC_HOME" in elsewhere.stderr
    assert (over.state, steps_of(slurm_lab, run)) == (RunState.TERMINATED, list(range(100)))


@pytest.fixture
def small_lab(cluster):
    """A lab whose shared root is a file system of 24 MB, and whose databases are elsewhere."""
    home, own = (Path(tempfile.mkdtemp(prefix="mosaic-")) for _ in range(2))
    with small_disk(home):
        split_root(StateRoot(home), own)
        (home / "clusters").mkdir(mode=0o700)
        (home / "clusters" / "slurm.toml").write_text(f'conf = "{cluster.conf}"\nlisten = "127.0.0.1:0"\n')
        lab = Lab(home)
        yield lab
        lab.close()
    for folder in (home, own):
        shutil.rmtree(folder, ignore_errors=True)


def test_a_full_disk_under_a_run_on_a_node_is_a_named_gap_and_the_run_ends(small_lab):
    run = small_lab.submit(steps=1_500, rate=500, metrics_every=0, on="slurm", limits=GRACE)
    wait_for_steps(small_lab, run, 50)

    ballast = small_lab.root.path / "ballast"
    fill(ballast)
    wait_for_steps(small_lab, run, 500)
    ballast.unlink()
    over = small_lab.wait_until_over(run)

    steps = steps_of(small_lab, run)
    gaps = [event for event in small_lab.events(run, "lifecycle") if event["event"] == "telemetry_gap"]
    assert over.state is RunState.TERMINATED, over.reason
    assert steps == sorted(set(steps))
    assert len(steps) + sum(gap["payload"]["lines"] for gap in gaps) >= 1_500
