"""Changes of many runs at once, without a window."""

import asyncio

import pytest

from mosaic.gui.runs.commands import CALLS_AT_ONCE, cancel_all, delete_all
from mosaic.model.errors import MosaicError, NoDaemon

RUNS = [f"run {number}" for number in range(2 * CALLS_AT_ONCE + 5)]


class Client:
    """Answers when as many calls are open as there will be at the same time."""

    def __init__(self, failing=(), error=MosaicError):
        self.failing = failing
        self.error = error
        self.open = self.most = 0
        self.asked = []

    async def cancel_run(self, run_id):
        self.asked.append(run_id)
        self.open += 1
        self.most = max(self.most, self.open)
        await asyncio.sleep(0)
        self.open -= 1
        if run_id in self.failing:
            raise self.error(f"{run_id} is over")

    async def delete_run(self, run_id):
        await self.cancel_run(run_id)
        return 10


def test_many_runs_are_cancelled_several_at_a_time():
    client = Client(failing=(RUNS[3], RUNS[-1]))

    failures = asyncio.run(cancel_all(client, RUNS))

    assert failures == [f"{RUNS[3]} is over", f"{RUNS[-1]} is over"]
    assert (client.asked, client.most) == (RUNS, CALLS_AT_ONCE)


def test_what_could_not_be_deleted_does_not_keep_the_rest():
    client = Client(failing=(RUNS[0],))

    freed, failures = asyncio.run(delete_all(client, RUNS))

    assert (freed, failures) == (10 * (len(RUNS) - 1), [f"{RUNS[0]} is over"])
    assert client.most == CALLS_AT_ONCE


@pytest.mark.parametrize("change", [cancel_all, delete_all])
def test_a_lost_daemon_is_no_matter_of_one_run(change):
    client = Client(failing=(RUNS[2],), error=NoDaemon)

    with pytest.raises(NoDaemon):
        asyncio.run(change(client, RUNS))

    assert len(client.asked) == CALLS_AT_ONCE
