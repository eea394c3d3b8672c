"""A run's file after kills, full disks, and other programs that use it."""

import json
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from ingest_batches import LINE, RUN, Spool, metric, step

from mosaic.ingest.store import RunStore
from mosaic.model.errors import StoreUnavailable

HERE = Path(__file__).parent


def child(code, *arguments, wrap=()):
    """A Python process that can import this folder's batches."""
    head = f"import sys; sys.path.insert(0, {str(HERE)!r})\nfrom ingest_batches import *\n"
    command = [*wrap, sys.executable, "-c", head + textwrap.dedent(code), *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


COMMITS_FOREVER = """
    import pathlib, random
    from mosaic.ingest import memory, store as module
    memory.SNAPSHOT_EVERY = 700
    module.CHECKPOINT_EVERY = 4 << 20
    store = module.RunStore(pathlib.Path(sys.argv[1]), RUN)
    chance = random.Random(int(sys.argv[2]))
    while True:
        cursor = store.cursor()
        spool = Spool()
        spool.offsets[0] = cursor.stdout_offset
        first = cursor.next_seq
        size = chance.randrange(1, 300)
        made = [step(i, i % 17 / 16) if i % 5 else metric(i, x=i / 3) for i in range(first, first + size)]
        store.commit(spool.batch(*made))
        print(flush=True)
"""


def derived_data_of(path):
    """Everything in the file that is derived from its rows."""
    store = RunStore(path, RUN)
    curves = [store.curve(name) for name in store.curve_names()]
    summary = store.summary()
    store.close()
    summary.steps_per_s = 0.0
    with sqlite3.connect(path) as db:
        return set(db.execute("SELECT * FROM rollups")), set(db.execute("SELECT * FROM chunks")), curves, summary


def test_after_kill_9_rows_offset_and_rollups_agree(tmp_path, path):
    chance = random.Random(5)
    for round_ in range(5):
        process = child(COMMITS_FOREVER, path, round_)
        for _ in range(chance.randrange(5, 40)):
            assert process.stdout.readline() == "\n"
        process.send_signal(signal.SIGKILL)
        process.wait(30)
        process.stdout.close()

    store = RunStore(path, RUN)
    cursor = store.cursor()
    events = store.tail(cursor.next_seq).events
    assert [event.seq for event in events] == list(range(1, cursor.next_seq))
    assert cursor.stdout_offset == LINE * len(events)
    store.close()
    again = tmp_path / "again.sqlite"
    other = RunStore(again, RUN)
    other.commit(Spool().batch(*events))
    other.close()
    assert derived_data_of(path) == derived_data_of(again)


FILLS_THE_DISK = """
    import json, pathlib
    from mosaic.ingest.store import RunStore
    from mosaic.model.errors import StoreUnavailable
    folder = pathlib.Path(sys.argv[1])
    filler = folder / "filler"
    filler.write_bytes(b"x" * 300_000)
    store, spool, errors = RunStore(folder / "telemetry.sqlite", RUN), Spool(), []
    request = spool.batch(*(step(i, 0.5, extra=b"e" * 100) for i in range(50)))
    while not errors:
        try:
            store.commit(request)
            request = spool.batch(*(step(i, 0.5, extra=b"e" * 100) for i in range(50)))
        except StoreUnavailable as error:
            errors.append(str(error))
    stored = store.cursor().stdout_offset
    seqs = [event.seq for event in store.tail(100_000).events]
    filler.unlink()
    after = store.commit(request).next_offset
    print(json.dumps([errors, request.start, request.end, stored, len(seqs), after, len(store.tail(100_000).events)]))
"""

ON_A_SMALL_DISK = 'mount -t tmpfs -o size=1m mosaic-test "$0" && exec "$@"'


def small_disk(folder):
    """A prefix that runs a command with its own small tmpfs on `folder`, gone with the process."""
    prefix = ["unshare", "-rm", "sh", "-c", ON_A_SMALL_DISK, str(folder)]
    if not shutil.which("unshare") or subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this machine allows no mount in a namespace")
    return prefix


def test_a_full_disk_rolls_the_batch_back_and_the_store_continues_when_there_is_space(tmp_path):
    process = child(FILLS_THE_DISK, tmp_path, wrap=small_disk(tmp_path))

    out, _ = process.communicate(timeout=60)

    errors, start, end, stored, events, after, events_after = json.loads(out)
    assert errors[0].startswith("disk full: ")
    assert (stored, events * LINE) == (start, start)
    assert (after, events_after * LINE) == (end, end)
    assert start > 0


def test_a_write_error_rolls_the_batch_back_and_the_store_continues(path):
    code = """
        import json, pathlib, resource, signal
        from mosaic.ingest.store import RunStore
        from mosaic.model.errors import StoreUnavailable
        store, spool = RunStore(pathlib.Path(sys.argv[1]), RUN), Spool()
        store.commit(spool.batch(step(1, 0.5), metric(1, x=1.0)))
        request = spool.batch(*(step(i, 0.5, extra=b"e" * 1000) for i in range(2, 500)), metric(500, y=1.0))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, limits[1]))
        try:
            store.commit(request)
        except StoreUnavailable as error:
            problem = str(error)
        names = store.curve_names()
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        store.commit(request)
        print(json.dumps([problem, names, store.curve_names(), store.cursor().next_seq]))
    """

    out, _ = child(code, path).communicate(timeout=60)

    problem, names, names_after, next_seq = json.loads(out)
    assert "cannot be used now" in problem
    assert (names, names_after) == (["step/reward", "x"], ["step/reward", "x", "y"])
    assert next_seq == 502


def test_a_lock_of_another_program_is_waited_for_and_then_reported(path, store, spool):
    store.commit(spool.batch(step(1)))
    store.close()
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    request = spool.batch(metric(2, x=1.0))

    with pytest.raises(StoreUnavailable, match="locked"):
        store.commit(request)
    other.close()

    assert store.commit(request).last_seq == 2
