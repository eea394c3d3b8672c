"""What a run's node tells the daemon besides telemetry (CPU time, watched frames), and what it does on its own."""

import pytest
from lab import wait_until

from mosaic.model.durable import read_json
from mosaic.model.states import RunState

GRACE = {"grace_s": 2}


def wait_for_steps(lab, run, count=1):
    return lab.wait_until_run(run, lambda now: now.summary.steps >= count, f"{count} steps")


# ---- hangs


@pytest.mark.timeout(400)  # of the first test: Ray's start, which may take several tries
@pytest.mark.parametrize("place", ["slurm", "ray"])
@pytest.mark.parametrize(
    ("hang", "hang_s", "state"), [("hang_at", 90, RunState.FAULTED), ("busy_hang_at", 12, RunState.TERMINATED)]
)
def test_a_silent_worker_on_a_node_is_hung_only_if_it_uses_no_cpu(request, place, hang, hang_s, state):
    lab, limits = request.getfixturevalue(f"{place}_lab"), {"heartbeat_s": 4, **GRACE}

    run = lab.submit(steps=30, rate=20, heartbeat_s=0.2, hang_s=hang_s, **{hang: 20}, on=place, limits=limits)
    over = lab.wait_until_over(run)

    assert over.state is state, over.reason
    assert state is RunState.TERMINATED or over.reason.startswith("hang: no heartbeat for")


# ---- frames


@pytest.mark.timeout(400)
@pytest.mark.parametrize("place", ["slurm", "ray"])
def test_frames_of_a_run_on_a_node_come_through_its_link_and_only_while_somebody_watches(request, place):
    lab = request.getfixturevalue(f"{place}_lab")
    run = lab.submit(steps=100_000, rate=50, paint=True, on=place, limits=GRACE)
    wait_for_steps(lab, run)

    frames = []
    for frame in relayed(lab, run):
        frames.append(frame)
        if len(frames) == 5:
            break
    lab.client.cancel_run(run.run_id)
    lab.wait_until_over(run)

    numbers = [frame.number for frame in frames]
    assert numbers == sorted(set(numbers))
    assert all(frame.png.startswith(b"\x89PNG") for frame in frames)
    assert frames[-1].age_ns < 60e9


def relayed(lab, run):
    """The frames as a client on a third machine gets them."""
    import grpc
    from raw_client import owner_token

    from mosaic.wire import mosaic_pb2 as pb
    from mosaic.wire.mosaic_pb2_grpc import TrainerServiceStub

    address = read_json(lab.root.address)["addresses"][0]
    with grpc.insecure_channel(address) as channel:
        call = TrainerServiceStub(channel).StreamFrames(
            pb.StreamFramesRequest(run_id=run.run_id, hz=20, wait_s=30),
            metadata=[("authorization", f"Bearer {owner_token(lab)}")],
        )
        yield from call
        call.cancel()


# ---- commands


def test_a_command_reaches_a_worker_on_a_node(slurm_lab, tmp_path):
    script = tmp_path / "obeys.py"
    script.write_text("import sys\nprint('ready', flush=True)\nprint('got', sys.stdin.readline(), flush=True)\n")
    run = slurm_lab.submit_worker({"script": str(script), "commands": True}, on="slurm", limits=GRACE)
    slurm_lab.wait_for(run, RunState.READY, RunState.EXECUTING)

    slurm_lab.client.command_run(run.run_id, {"cmd": "go on"})
    over = slurm_lab.wait_until_over(run)

    assert over.state is RunState.TERMINATED
    assert b"go on" in slurm_lab.text(run)


# ---- lost contact


def test_a_node_that_lost_the_daemon_ends_its_run_if_its_cluster_says_so(slurm_lab):
    file = slurm_lab.root.clusters / "slurm.toml"
    before = file.read_text()
    file.write_text(before + "stop_after_lost_contact_s = 6\n")
    try:
        run = slurm_lab.submit(steps=100_000, rate=20, on="slurm", limits=GRACE)
        answered = wait_for_steps(slurm_lab, run, 140)  # for longer than that, with a daemon that answers
    finally:
        file.write_text(before)
    exit_file = slurm_lab.rundir(run).exit

    slurm_lab.stop_daemon()
    wait_until(exit_file.exists, 60, "the end of the run on its node")
    ended = read_json(exit_file)
    slurm_lab.restart_daemon()
    over = slurm_lab.wait_until_over(run)

    assert not answered.state.is_over
    assert ended["ended_by"] == "lost contact"
    assert over.state is RunState.FAULTED
    assert over.reason.startswith("lost contact: ")
    steps = [event["step_index"] for event in slurm_lab.events(run, "step")]
    assert steps == list(range(len(steps)))


def test_by_default_a_node_that_lost_the_daemon_goes_on(slurm_lab):
    run = slurm_lab.submit(steps=100, rate=20, on="slurm", limits=GRACE)
    wait_for_steps(slurm_lab, run)

    slurm_lab.stop_daemon()
    wait_until(slurm_lab.rundir(run).exit.exists, 60, "the end of the run on its node")
    slurm_lab.restart_daemon()
    over = slurm_lab.wait_until_over(run)

    assert over.state is RunState.TERMINATED
    assert len(slurm_lab.events(run, "step")) == 100
