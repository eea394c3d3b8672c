"""Cancelling many runs: several at a time, because the daemon looks through its queue after every one."""

import asyncio

from mosaic.client.run_calls import CANCELLED_AT_ONCE, RunCalls


class Calls(RunCalls):
    def __init__(self):
        self.asked, self.now, self.most = [], 0, 0

    async def cancel_run(self, run_id, reason=""):
        self.asked.append((run_id, reason))
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(0)
        self.now -= 1
        return run_id


def test_many_runs_are_cancelled_in_order_and_several_at_a_time():
    calls, ids = Calls(), [f"run {number}" for number in range(2 * CANCELLED_AT_ONCE + 5)]

    cancelled = asyncio.run(calls.cancel_runs(ids, "enough"))

    assert cancelled == ids
    assert calls.asked == [(run_id, "enough") for run_id in ids]
    assert calls.most == CANCELLED_AT_ONCE
