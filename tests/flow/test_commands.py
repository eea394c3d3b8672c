"""Commands: client → daemon → commands.jsonl → holder → the worker's stdin, with real processes."""

import asyncio
import json
import os
import threading

import grpc
import pytest
from lab import wait_until

from mosaic.client import AsyncTrainerClient, RunOptions, TrainerClient
from mosaic.model.durable import read_json
from mosaic.model.errors import BadCommand, CommandTaken, NoCommands, RunIsOver, UnknownRun
from mosaic.model.states import RunState
from mosaic.wire import mosaic_pb2 as pb
from mosaic.wire.mosaic_pb2_grpc import TrainerServiceStub

OBEDIENT = {"module": "toy_worker.cli", "commands": True, "config": {"extras": {"mode": "commands"}}}
STEP, FINISH = {"cmd": "step"}, {"cmd": "finish"}


def obey(lab, **more):
    return lab.submit_worker({**OBEDIENT, **more})


def done(lab, run):
    """The numbers of the commands that the worker has carried out, in its order; the run must be over."""
    return [event["payload"]["seq"] for event in lab.events(run, "lifecycle") if event["event"] == "command_done"]


def stepped(lab, run):
    return [event["command"] for event in lab.events(run, "step")]


@pytest.fixture
def lab(shared_lab):
    return shared_lab


def test_a_handle_sends_commands_and_the_worker_answers(lab):
    run = lab.client.run("toy", run_options=RunOptions(commands=True), mode="commands")

    numbers = [run.command({"cmd": "step", "count": 2}), run.command({"cmd": "jump"}), run.command(FINISH)]

    assert numbers == [1, 2, 3]
    assert run.wait(60).state is RunState.TERMINATED
    answers = [event.payload for event in run.events() if getattr(event, "event", "") == "command_done"]
    assert [(answer["seq"], answer["cmd"], answer["ok"]) for answer in answers] == [
        (1, "step", True),
        (2, "jump", False),
        (3, "finish", True),
    ]
    assert [event.extra["command"] for event in run.events() if event.type == "step"] == [1, 1]


def test_two_clients_at_once_get_distinct_numbers_and_all_arrive_in_order(lab):
    run = obey(lab)
    numbers = []

    def send():
        with TrainerClient.connect(lab.root) as client:
            for _ in range(100):
                numbers.append(client.command_run(run.run_id, STEP))

    threads = [threading.Thread(target=send) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lab.client.command_run(run.run_id, FINISH)
    lab.wait_until_over(run)

    assert sorted(numbers) == list(range(1, 301))
    assert stepped(lab, run) == list(range(1, 301))
    assert done(lab, run) == list(range(1, 302))


def test_the_same_id_is_one_command_even_when_two_calls_race_or_the_run_is_over(lab):
    run = obey(lab)
    numbers = []

    def send():
        with TrainerClient.connect(lab.root) as client:
            numbers.append(client.command_run(run.run_id, STEP, "only once"))

    threads = [threading.Thread(target=send) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with pytest.raises(CommandTaken, match="belongs to command 1"):
        lab.client.command_run(run.run_id, {"cmd": "step", "count": 9}, "only once")
    lab.client.command_run(run.run_id, FINISH)
    lab.wait_until_over(run)

    assert numbers == [1, 1, 1, 1]
    assert lab.client.command_run(run.run_id, STEP, "only once") == 1
    assert stepped(lab, run) == [1]
    with pytest.raises(RunIsOver, match="is TERMINATED: it takes no more commands"):
        lab.client.command_run(run.run_id, STEP)


def test_clients_that_go_away_in_the_middle_of_a_call_leave_the_numbers_whole(lab):
    run = obey(lab)

    async def send():
        async with await AsyncTrainerClient.connect(lab.root) as client:
            for _ in range(20):
                calls = [asyncio.ensure_future(client.command_run(run.run_id, STEP)) for _ in range(5)]
                await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
                for one in calls:
                    one.cancel()
            return await client.command_run(run.run_id, FINISH)

    last = asyncio.run(send())
    lab.wait_until_over(run)

    assert 20 < last <= 101
    assert done(lab, run) == list(range(1, last + 1))


def test_the_reply_says_whether_it_is_a_repetition(lab):
    run = obey(lab)
    request = pb.CommandRunRequest(run_id=run.run_id, command_id="a", command_json=json.dumps(FINISH))

    replies = [call(lab, request, owner_token(lab)) for _ in range(2)]

    assert [(reply.seq, reply.is_repeat) for reply in replies] == [(1, False), (1, True)]


def test_commands_sent_while_the_run_waits_are_delivered_when_it_starts(make_lab):
    lab = make_lab("--max-runs", "1")
    blocker = lab.submit(steps=1_000_000, rate=20)
    lab.wait_for(blocker, RunState.EXECUTING)
    run = obey(lab)

    for _ in range(3):
        lab.client.command_run(run.run_id, STEP)
    lab.client.command_run(run.run_id, FINISH)
    assert lab.state(run) is RunState.INIT
    lab.client.cancel_run(blocker.run_id)

    assert lab.wait_until_over(run).state is RunState.TERMINATED
    assert done(lab, run) == [1, 2, 3, 4]


def test_a_run_without_commands_refuses_them_in_words(lab):
    run = lab.submit(steps=1_000_000, rate=20)

    with pytest.raises(NoCommands, match=f"Run {run.run_id} does not take commands: its worker reads none from stdin"):
        lab.client.command_run(run.run_id, STEP)
    lab.client.cancel_run(run.run_id)


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ({"count": 1}, "cmd: missing"),
        ({"cmd": "x" * 70_000}, "the maximum is 65,536"),
        ({"cmd": "step", "seq": 7}, "seq: is set by MOSAIC"),
        ({"cmd": "step", "what": object()}, "cannot be written as a JSON object"),
    ],
)
def test_a_bad_command_is_refused_in_words(lab, command, why):
    run = obey(lab)

    with pytest.raises(BadCommand, match=why):
        lab.client.command_run(run.run_id, command)
    lab.client.cancel_run(run.run_id)


def test_a_run_that_does_not_exist_any_more_has_no_commands(lab):
    run = obey(lab)
    lab.client.command_run(run.run_id, FINISH, "x")
    lab.wait_until_over(run)
    lab.client.delete_run(run.run_id)

    with pytest.raises(UnknownRun):
        lab.client.command_run(run.run_id, FINISH, "x")


def test_a_worker_that_never_reads_disturbs_nobody(lab):
    # The toy worker trains and does not look at its stdin.
    run = lab.submit_worker({"module": "toy_worker.cli", "commands": True, "config": {"steps": 1_000_000, "rate": 20}})
    lab.wait_for(run, RunState.EXECUTING)

    for number in range(1, 11):
        assert lab.client.command_run(run.run_id, {"cmd": "step", "text": "x" * 60_000}) == number
    lab.client.cancel_run(run.run_id)

    assert lab.wait_until_over(run).state is RunState.CANCELLED
    assert read_json(lab.rundir(run).exit)["commands_unread"] == 10


DEAF = """
import os, time
while not os.path.exists("go"):
    time.sleep(0.01)
"""


def test_a_worker_that_ignores_its_commands_is_named_in_the_reason(lab, script):
    run = lab.submit_worker({"script": script("deaf.py", DEAF), "commands": True})
    for _ in range(2):
        lab.client.command_run(run.run_id, STEP)
    (lab.rundir(run).path / "go").touch()

    ended = lab.wait_until_over(run)

    assert (ended.state, ended.reason) == (
        RunState.TERMINATED,
        "finished with exit code 0; commands that its worker did not read: 2",
    )


WAIT = "import time; print('up', flush=True); time.sleep(600)"


@pytest.mark.parametrize(
    "plant",
    [
        lambda folder: None,
        lambda folder: folder.commands.symlink_to("launch.json"),
        lambda folder: os.mkfifo(folder.commands),
        lambda folder: folder.commands.mkdir(),
        lambda folder: os.link(folder.launch, folder.commands),
        lambda folder: folder.commands.write_text("garbage\n"),
        lambda folder: [folder.commands.touch(), os.truncate(folder.commands, 1 << 40)],
    ],
    ids=["nothing", "link", "FIFO", "folder", "hard link", "garbage", "huge"],
)
def test_a_file_that_is_not_ours_hangs_neither_the_daemon_nor_the_end_of_its_run(lab, script, plant):
    run = lab.submit_worker({"script": script("wait.py", WAIT), "commands": True})
    wait_until(lambda: b"up" in lab.text(run))
    os.rename(lab.rundir(run).commands, lab.rundir(run).control / "before")
    plant(lab.rundir(run))
    other = obey(lab)

    with pytest.raises(NoCommands, match="can no longer be sent commands"):
        lab.client.command_run(run.run_id, STEP)
    assert lab.client.command_run(other.run_id, FINISH) == 1
    lab.client.cancel_run(run.run_id)

    assert lab.wait_until_over(run).state is RunState.CANCELLED
    assert lab.wait_until_over(other).state is RunState.TERMINATED
    assert "nonce" in (read_json(lab.rundir(run).launch) or {}), "launch.json must be as the daemon wrote it"


def test_only_the_owner_may_send_commands(lab):
    run = obey(lab)
    lab.wait_for(run, RunState.READY, RunState.EXECUTING)
    launch = read_json(lab.rundir(run).launch)
    request = pb.CommandRunRequest(run_id=run.run_id, command_id="a", command_json=json.dumps(STEP))

    with grpc.insecure_channel(lab.client.target) as channel:
        register = pb.RegisterWorkerRequest(run_id=run.run_id, attempt=launch["attempt"], nonce=launch["nonce"])
        session = TrainerServiceStub(channel).RegisterWorker(register, timeout=10).session_token
    for token in ("", "wrong", session):
        with pytest.raises(grpc.RpcError) as refused:
            call(lab, request, token)
        assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED

    assert os.path.getsize(lab.rundir(run).commands) == 0
    lab.client.cancel_run(run.run_id)


def test_the_async_client_sends_commands(lab):
    run = obey(lab)

    async def send():
        async with await AsyncTrainerClient.connect(lab.root) as client:
            handle = await client.attach(run.run_id)
            numbers = [await handle.command(STEP), await client.command_run(run.run_id, FINISH)]
            return numbers, (await handle.wait(60)).state

    assert asyncio.run(send()) == ([1, 2], RunState.TERMINATED)


def test_the_command_line_sends_commands_and_waits_for_the_answer(lab, mosaic):
    home = {"MOSAIC_HOME": str(lab.root.path)}
    run = obey(lab)

    assert mosaic("command", run.run_id, "step", "count=2", "--wait", **home) == "Command 1 (step) is done.\n"
    answer = json.loads(mosaic("command", run.run_id, "step", "--id", "x", "--wait", "--json", **home))
    assert answer == {
        "run_id": run.run_id,
        "seq": 2,
        "done": {"seq": 2, "cmd": "step", "ok": True, "message": ""},
    }
    assert json.loads(mosaic("command", run.run_id, "step", "--id", "x", "--wait", "--json", **home)) == answer
    assert "count=5" in mosaic("command", run.run_id, "step", "many", code=2, **home)
    assert "cmd: given twice" in mosaic("command", run.run_id, "step", "cmd=x", code=2, **home)
    mosaic("command", run.run_id, "jump", "--wait", code=1, **home)
    assert mosaic("command", run.run_id, "finish", **home) == "Command 4 (finish) was sent.\n"
    lab.wait_until_over(run)
    assert "takes no more commands" in mosaic("command", run.run_id, "step", code=1, **home)


def test_a_worker_that_ends_without_an_answer_does_not_keep_the_command_line_waiting(lab, mosaic, script):
    run = lab.submit_worker({"script": script("deaf.py", "input()"), "commands": True})  # ends with the command

    said = mosaic("command", run.run_id, "step", "--wait", code=1, MOSAIC_HOME=str(lab.root.path))

    assert said == f"mosaic: Run {run.run_id} ended and did not report command 1 as done.\n"


def call(lab, request, token):
    with grpc.insecure_channel(lab.client.target) as channel:
        metadata = (("authorization", f"Bearer {token}"),)
        return TrainerServiceStub(channel).CommandRun(request, timeout=10, metadata=metadata)


def owner_token(lab):
    return lab.root.token.read_text().strip()
