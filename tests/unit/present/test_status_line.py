import dataclasses

from mosaic.client import Run
from mosaic.model.states import RunState
from mosaic.present.status_line import status_line
from mosaic.wire import mosaic_pb2 as pb

RUN = Run.from_wire(pb.RunInfo(run_id="01A", name="cartpole s1", state=pb.State.Value("EXECUTING")))


def run(run_id, state=RunState.EXECUTING, waiting_for="", name="cartpole s1"):
    return dataclasses.replace(RUN, run_id=run_id, state=state, waiting_for=waiting_for, name=name)


def runs(*items):
    return {item.run_id: item for item in items}


def test_a_busy_machine():
    health = pb.Health(healthy=True, gpus=[pb.Gpu(owner="01A")], disk_free_bytes=41_000_000_000)
    waiting = run("01C", RunState.INIT, "1 GPU: none is free")

    line = status_line("ok", "", health, runs(run("01A"), run("01B"), waiting, run("01D", RunState.TERMINATED)))

    assert line == "daemon ok · 2 running, 1 waiting for a GPU · GPU 0: cartpole s1 · disk 41.0 GB free"


def test_an_idle_machine_without_gpus():
    line = status_line("ok", "", pb.Health(healthy=True), {})

    assert line == "daemon ok · nothing running"


def test_runs_that_wait_for_different_things_are_only_counted():
    waiting = [run("01A", RunState.INIT, "1 GPU: none"), run("01B", RunState.INIT, "1 CPU: all in use")]

    assert status_line("ok", "", None, runs(*waiting)) == "daemon ok · 2 waiting"


def test_many_gpus_are_counted():
    gpus = [pb.Gpu(owner="01A"), pb.Gpu(), pb.Gpu(blocked="drained")]

    assert "1 of 3 GPUs in use" in status_line("ok", "", pb.Health(healthy=True, gpus=gpus), {})


def test_a_gpu_that_is_free_or_blocked():
    gpus = [pb.Gpu(), pb.Gpu(blocked="used by process 12 of another program")]

    line = status_line("ok", "", pb.Health(healthy=True, gpus=gpus), {})

    assert "GPU 0: free · GPU 1: used by process 12 of another program" in line


def test_a_lost_daemon_keeps_what_is_known_of_runs_and_drops_what_may_have_changed():
    health = pb.Health(healthy=True, disk_free_bytes=5)

    assert status_line("lost", "me@box", health, runs(run("01A"))) == "daemon on me@box not reachable · 1 running"


def test_a_daemon_that_is_connecting_knows_nothing():
    assert status_line("connecting", "", None, {}) == "daemon connecting…"


def test_an_unhealthy_daemon_says_why():
    line = status_line("ok", "", pb.Health(healthy=False, problem="The disk is full."), {})

    assert line.startswith("daemon: The disk is full · ")


def test_control_characters_of_a_name_are_not_shown():
    health = pb.Health(healthy=True, gpus=[pb.Gpu(owner="01A")])

    line = status_line("ok", "", health, runs(run("01A", name="a\x1b[31mb\x07")))

    assert "GPU 0: ab" in line
    assert "\x1b" not in line
