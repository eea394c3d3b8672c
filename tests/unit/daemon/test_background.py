"""Tasks that nobody waits for."""

import asyncio
import logging

from mosaic.daemon.server import in_background


def test_the_error_of_a_task_in_the_background_is_logged_while_the_daemon_runs(caplog):
    async def fail():
        raise OSError("a full disk")

    async def scene():
        task = in_background(fail())
        await asyncio.wait([task])
        await asyncio.sleep(0)
        return [record.exc_info[1] for record in caplog.records if record.levelno == logging.ERROR], task

    found, _ = asyncio.run(scene())

    assert [str(error) for error in found] == ["a full disk"]


def test_a_task_that_is_cancelled_has_no_error(caplog):
    async def scene():
        task = in_background(asyncio.sleep(60))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])

    asyncio.run(scene())

    assert not caplog.records
