"""Races: problems that only occur when two things happen at the same moment."""

import asyncio
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor

from lab import wait_until
from watch import state_of

from mosaic.client.asynchronous import AsyncTrainerClient
from mosaic.model.states import RunState
from mosaic.model.ulid import new_ulid

S = RunState


def config(gpus=0, **keys):
    metadata = {"worker": {"module": "toy_worker.cli", "config": keys}}
    return {"metadata": metadata, "payload": {"resources": {"gpus": {"requested": gpus, "mandatory": gpus > 0}}}}


def test_a_cancel_during_its_claim_does_not_end_the_daemon(lab):
    daemon = lab.daemon_pid()

    async def submit_and_cancel(client, delay_s):
        run = await client.submit_run(config(steps=20))
        await asyncio.sleep(delay_s)  # each a little later, so that one of them arrives during the claim
        await client.cancel_run(run.run_id)
        return run

    async def many():
        async with await AsyncTrainerClient.connect(lab.root) as client:
            return await asyncio.gather(*(submit_and_cancel(client, n * 0.0007) for n in range(12)))

    runs = asyncio.run(many()) + asyncio.run(many())

    assert {lab.wait_until_over(run).state for run in runs} <= {S.CANCELLED, S.TERMINATED}
    assert lab.daemon_pid() == daemon


def test_two_hundred_clients_at_once_are_all_answered(lab):
    run = lab.submit(steps=200, rate=200)

    async def watch():
        async with await AsyncTrainerClient.connect(lab.root) as client:
            return [event.seq async for event in client.stream_events(run.run_id)]

    async def many():
        return await asyncio.gather(*(watch() for _ in range(200)))

    seen = asyncio.run(many())

    assert seen[0] == list(range(1, len(seen[0]) + 1))
    assert all(one == seen[0] for one in seen)


def test_many_submits_at_once_with_one_key_make_one_run(lab):
    async def many():
        async with await AsyncTrainerClient.connect(lab.root) as client:
            return await asyncio.gather(*(client.submit_run(config(steps=10), "the same") for _ in range(20)))

    runs = asyncio.run(many())

    assert len({run.run_id for run in runs}) == 1
    assert lab.client.list_runs().total == 1
    assert len(list(lab.root.area("runs").iterdir())) == 1


def test_many_submits_at_once_with_one_key_and_one_id_make_one_run(lab):
    asked = config(steps=10)
    asked["metadata"]["run_id"] = new_ulid()

    async def many():
        async with await AsyncTrainerClient.connect(lab.root) as client:
            return await asyncio.gather(*(client.submit_run(asked, "the same") for _ in range(20)))

    assert {run.run_id for run in asyncio.run(many())} == {asked["metadata"]["run_id"]}


def test_a_cancel_that_is_acknowledged_while_a_run_is_being_closed_counts(lab, monkeypatch):
    lab.stop_daemon()
    monkeypatch.setenv("MOSAIC_FAILPOINTS", "finish.drained:stop")
    lab.restart_daemon()
    daemon = lab.daemon_pid()
    run = lab.submit(steps=20, exit_code=3)
    wait_until(lambda: state_of(daemon) == "T", words="the daemon to stop in the middle of the closing")

    with ThreadPoolExecutor() as pool:
        asked = pool.submit(lab.client.cancel_run, run.run_id)
        time.sleep(0.3)  # the cancel is queued; if it arrived later, the test would pass without testing the race
        os.kill(daemon, signal.SIGCONT)
        answer = asked.result()

    end = lab.wait_until_over(run).state
    assert end is (answer.state if answer.state.is_over else S.CANCELLED)
