"""max_concurrency holds over processes."""

import asyncio
import subprocess
import sys
import time

from mosaic_sdk.llm.slots import Slots

HOLD = """
import asyncio, sys
from mosaic_sdk.llm.slots import Slots
async def main():
    async with Slots(sys.argv[1], "gpt", 1).one(1e12):
        print("held", flush=True)
        sys.stdin.read()
asyncio.run(main())
"""


def test_a_slot_is_free_again_when_its_process_is_killed(tmp_path):
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout.readline() == "held\n"

        assert not _is_free(tmp_path, 1)
        assert _is_free(tmp_path, 2), "another slot"
        child.kill()
        child.wait()
        assert _is_free(tmp_path, 1)


def _is_free(folder, count):
    async def take():
        async with Slots(str(folder), "gpt", count).one(time.monotonic()):
            return True

    try:
        return asyncio.run(take())
    except TimeoutError:
        return False


def test_without_a_folder_there_is_no_limit_to_keep():
    async def take():
        async with Slots("", "gpt", 1).one(0), Slots("", "gpt", 1).one(0):
            return True

    assert asyncio.run(take())


def test_a_decision_that_gets_no_slot_in_time_is_no_bad_play(faults, faulty, run_dir):
    asked = faulty(max_concurrency=1, decision_timeout_s=0.2)
    command = [sys.executable, "-c", HOLD, str(run_dir / "operators")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout.readline() == "held\n"
        answer = asked.act()
        child.kill()

    assert (answer["kind"], faults.requests) == ("infrastructure", [])
    assert answer["report"]["infrastructure"] == {"timeout": 1}
