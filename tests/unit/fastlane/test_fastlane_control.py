import contextlib
import errno
import os
import signal
import sys
from multiprocessing import shared_memory

import numpy as np
import pytest
from lanes import GYM_GUI, SDK, segments, wait_until
from mosaic_sdk.fastlane import FastLaneConfig, FastLaneError, FastLaneReader, FastLaneWriter, create_fastlane_name
from mosaic_sdk.fastlane.control import remove_dead
from mosaic_sdk.fastlane.grid import Grid

SMALL = FastLaneConfig(width=6, height=4)
FRAME = np.arange(72, dtype=np.uint8).reshape(4, 6, 3)


def page_of(run_id):
    return f"/dev/shm/mosaic.fastlane.{run_id}"


def test_a_second_writer_is_refused_while_the_first_lives(run_id):
    first = FastLaneWriter.create(run_id, SMALL)

    with pytest.raises(FileExistsError):
        FastLaneWriter.create(run_id, SMALL)

    first.close()
    first.unlink()
    FastLaneWriter.create(run_id, SMALL).unlink()


def test_unlink_removes_everything_and_fails_if_it_is_gone(run_id):
    writer = FastLaneWriter.create(run_id, SMALL)
    FastLaneReader.attach(run_id)
    writer.publish(FRAME)

    writer.close()
    writer.unlink()

    assert segments(run_id) == []
    with pytest.raises(FileNotFoundError):
        writer.unlink()


def test_unlinking_a_page_that_was_already_removed_fails(run_id):
    writer = FastLaneWriter.create(run_id, SMALL)
    os.unlink(page_of(run_id))

    with pytest.raises(FileNotFoundError):
        writer.unlink()


def test_there_is_nothing_to_attach_to_before_a_writer(run_id):
    with pytest.raises(FileNotFoundError):
        FastLaneReader.attach(run_id)


@pytest.mark.parametrize("name", ["", "a/b", "..", "a.1", "a\n"])
def test_a_run_id_cannot_refer_to_another_file(name):
    with pytest.raises(ValueError, match="cannot name a FastLane"):
        create_fastlane_name(name)


def test_a_page_can_be_opened_as_in_the_public_mosaic_once_it_is_free(run_id):
    FastLaneWriter.create(run_id, SMALL).page.forget()  # as after a kill: the page is there, its lock is not
    shm = shared_memory.SharedMemory(name=create_fastlane_name(run_id), create=False)

    writer = FastLaneWriter(shm, SMALL)

    FastLaneReader.attach(run_id)
    assert writer.publish(FRAME.tobytes())
    with pytest.raises(FileExistsError):
        FastLaneWriter(shm, SMALL)
    shm.close()
    shm.unlink()


def test_other_machines_are_refused_with_a_sentence(run_id, monkeypatch):
    monkeypatch.setattr(os, "uname", lambda: os.uname_result(("Linux", "pi", "6", "1", "aarch64")))

    with pytest.raises(FastLaneError, match="this machine is aarch64"):
        FastLaneWriter.create(run_id, SMALL)


def test_a_page_that_was_unlinked_is_recreated_while_it_is_watched(run_id, monkeypatch):
    monkeypatch.setattr("mosaic_sdk.fastlane.writer._CHECK_NS", 0)
    writer = FastLaneWriter.create(run_id, SMALL)
    reader = FastLaneReader.attach(run_id, lease_s=1000)
    writer.publish(FRAME)
    before = segments(run_id)
    for name in before:
        os.unlink(f"/dev/shm/{name}")

    writer.publish(FRAME + 1)

    assert np.array_equal(reader.latest_frame().pixels, FRAME + 1)
    assert np.array_equal(FastLaneReader.attach(run_id).latest_frame().pixels, FRAME + 1)
    assert (len(segments(run_id)), writer.is_watched) == (len(before), True)
    with pytest.raises(FileExistsError):
        FastLaneWriter.create(run_id, SMALL)


def test_a_reader_follows_from_one_writer_to_the_next(run_id):
    first = FastLaneWriter.create(run_id, SMALL)
    reader = FastLaneReader.attach(run_id)
    first.close()
    first.unlink()
    assert reader.is_over

    second = FastLaneWriter.create(run_id, SMALL)
    reader.latest_frame()
    second.publish(FRAME)

    assert (reader.latest_frame().number, reader.is_over) == (1, False)


def test_a_reader_that_saw_the_frames_of_one_writer_sees_those_of_the_next(run_id):
    first = FastLaneWriter.create(run_id, SMALL)
    reader = FastLaneReader.attach(run_id)
    first.publish(FRAME)
    assert reader.latest_frame().width == 6
    first.close()
    first.unlink()

    second = FastLaneWriter.create(run_id, FastLaneConfig(width=4, height=6))
    before = reader.latest_frame()
    second.publish(FRAME.reshape(6, 4, 3))

    assert (before.width, reader.latest_frame().width) == (6, 4)


def test_a_forked_child_neither_writes_nor_removes_nor_keeps_the_lock(run_id):
    writer = FastLaneWriter.create(run_id, SMALL)
    FastLaneReader.attach(run_id, lease_s=1000)
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            is_copied = writer.publish(FRAME)
            writer.close()
            os.write(write, b"copied" if is_copied else b"silent")
            signal.pause()
        finally:
            os._exit(0)

    try:
        printed = os.read(read, 6)
        writer.page.forget()  # as a kill of the parent would
        FastLaneWriter.create(run_id, SMALL)
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)

    assert printed == b"silent"


LEAVE = """
import os, sys, time, numpy as np
from mosaic_sdk.fastlane import FastLaneConfig, FastLaneReader, FastLaneWriter
writer = FastLaneWriter.create(sys.argv[1], FastLaneConfig(6, 4))
reader = FastLaneReader.attach(sys.argv[1])
assert writer.publish(bytes(72))
print("ready", flush=True)
sys.stdin.readline()
if sys.argv[2] == "error": raise RuntimeError("as it happens")
"""


@pytest.mark.parametrize("end", ["exit", "error", "SIGTERM"])
def test_nothing_is_left_after_the_writers_end(run_id, scripts, end):
    process = scripts.start(LEAVE, run_id, end)
    assert process.stdout.readline() == "ready\n"
    assert len(segments(run_id)) == 2

    if end == "SIGTERM":
        process.send_signal(signal.SIGTERM)
    _, err = process.communicate("\n")

    assert process.returncode == {"exit": 0, "error": 1, "SIGTERM": -signal.SIGTERM}[end], err
    assert segments(run_id) == []


def test_what_a_killed_writer_left_is_removed_and_what_lives_is_not(run_id, scripts):
    killed = scripts.start(LEAVE, run_id, "exit")
    assert killed.stdout.readline() == "ready\n"
    other = FastLaneWriter.create(f"{run_id}-lives", SMALL)
    killed.kill()
    killed.wait()
    before = segments(f"{run_id}-lives")

    removed = remove_dead(run_id)

    assert removed == [f"mosaic.fastlane.{run_id}"]
    assert segments(run_id) == before == [f"mosaic.fastlane.{run_id}-lives"]
    assert remove_dead(f"{run_id}-lives") == []
    other.unlink()


def test_frames_whose_page_was_removed_are_found_by_the_janitor(run_id, scripts):
    killed = scripts.start(LEAVE, run_id, "exit")
    assert killed.stdout.readline() == "ready\n"
    killed.kill()
    killed.wait()
    os.unlink(page_of(run_id))

    remove_dead(run_id)

    assert segments(run_id) == []


def test_a_new_writer_takes_over_from_a_killed_one(run_id, scripts):
    killed = scripts.start(LEAVE, run_id, "exit")
    assert killed.stdout.readline() == "ready\n"
    reader = FastLaneReader.attach(run_id)
    killed.kill()
    killed.wait()

    writer = FastLaneWriter.create(run_id, SMALL)
    writer.publish(FRAME)

    assert np.array_equal(reader.latest_frame().pixels, FRAME)
    writer.unlink()
    assert segments(run_id) == []


STORM = """
import os, random, signal, sys, time
import numpy as np
from mosaic_sdk.fastlane import FastLaneConfig, FastLaneReader, FastLaneWriter
from mosaic_sdk.fastlane.control import tile_name
def write(run_id):
    writer = FastLaneWriter.create(run_id, FastLaneConfig(64, 64))
    tile = FastLaneWriter.of_lane(tile_name(run_id, 1), FastLaneConfig(8, 8))
    frame = np.zeros((64, 64, 3), np.uint8)
    while True: writer.publish(frame)
def read(run_id):
    while True:
        try: reader = FastLaneReader.attach(run_id)
        except FileNotFoundError: continue
        for _ in range(1000): reader.latest_frame()
def start(action, run_id):
    pid = os.fork()
    if pid == 0:
        try:
            os.nice(10)
            action(run_id)
        finally: os._exit(1)
    return pid
for wave in range(int(sys.argv[2])):
    runs = [f"{sys.argv[1]}-{wave}-{number}" for number in range(5)]
    pids = [start(action, run) for run in runs for action in (write, read)]
    while not all(os.path.exists(f"/dev/shm/mosaic.fastlane.{run}") for run in runs): time.sleep(0.001)
    random.shuffle(pids)
    for pid in pids: os.kill(pid, signal.SIGKILL)
    for pid in pids: assert os.waitpid(pid, 0)[1] == signal.SIGKILL
"""


@pytest.mark.parametrize("waves", [4, pytest.param(20, marks=pytest.mark.slow)], ids=["40 killed", "200 killed"])
def test_many_kills_leave_dev_shm_as_it_was(run_id, scripts, waves):
    scripts.run(STORM, run_id, str(waves), timeout_s=110)
    left = segments(run_id)
    assert len(left) >= 5 * waves

    for name in left:
        remove_dead(name.split(".")[2])

    assert segments(run_id) == []


def test_a_reader_of_a_killed_writer_follows_to_the_next_one(run_id, scripts):
    killed = scripts.start(LEAVE, run_id, "exit")
    assert killed.stdout.readline() == "ready\n"
    reader = FastLaneReader.attach(run_id, lease_s=1000)
    killed.kill()
    killed.wait()

    writer = FastLaneWriter.create(run_id, SMALL)

    assert writer.is_watched
    reader.close()
    writer.unlink()


TILE = """
import sys, numpy as np
from mosaic_sdk.fastlane.grid import claim_tile
tile = claim_tile(sys.argv[1], 1, 4)
print(tile.page.lane[-2:], flush=True)
while True: tile.publish(np.full((4, 6, 3), int(sys.argv[2]), np.uint8))
"""


def test_the_tile_of_a_killed_process_is_taken_by_the_next(run_id, scripts, monkeypatch):
    monkeypatch.setattr("mosaic_sdk.fastlane.grid._SEARCH_NS", 0)
    own, grid = np.zeros((4, 6, 3), np.uint8), Grid(run_id, 4)
    first = scripts.start(TILE, run_id, "5")
    assert first.stdout.readline() == "t1\n"
    wait_until(lambda: grid.compose(own)[0, 6, 0] == 5)

    first.kill()
    first.wait()
    second = scripts.start(TILE, run_id, "9")

    assert second.stdout.readline() == "t1\n"
    wait_until(lambda: grid.compose(own)[0, 6, 0] == 9)
    grid.close()


SPOILS = {
    "cut short": lambda path: os.truncate(path, 0),
    "cut in the middle": lambda path: os.truncate(path, 4200),
    "garbage": lambda path: os.pwrite(os.open(path, os.O_RDWR), os.urandom(os.stat(path).st_size), 0),
    "removed": os.unlink,
}


@pytest.mark.parametrize("spoil", SPOILS)
def test_a_reader_survives_files_that_another_program_damaged(run_id, spoil):
    writer = FastLaneWriter.create(run_id, SMALL)
    reader = FastLaneReader.attach(run_id, lease_s=1000)
    writer.publish(FRAME)
    seen = reader.latest_frame()

    for name in segments(run_id):
        SPOILS[spoil](f"/dev/shm/{name}")

    assert reader.latest_frame() is not None
    assert np.array_equal(seen.pixels, FRAME)
    with contextlib.suppress(FileNotFoundError):
        FastLaneReader.attach(run_id).latest_frame()


@pytest.mark.parametrize("spoil", SPOILS)
@pytest.mark.parametrize("part", ["page", "frames"])
def test_a_writer_recreates_what_another_program_damaged(run_id, spoil, part):
    writer = FastLaneWriter.create(run_id, SMALL)
    FastLaneReader.attach(run_id, lease_s=1000)
    writer.publish(FRAME)
    SPOILS[spoil](f"{page_of(run_id)}.1" if part == "frames" else page_of(run_id))

    writer.repair()

    reader = FastLaneReader.attach(run_id, lease_s=1000)
    assert writer.publish(FRAME + 1)
    assert np.array_equal(reader.latest_frame().pixels, FRAME + 1)


def test_a_full_dev_shm_is_an_error_that_leaves_nothing(run_id, monkeypatch):
    writer = FastLaneWriter.create(run_id, SMALL)
    FastLaneReader.attach(run_id)

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(OSError, match="No space left"):
        writer.publish(FRAME)
    assert segments(run_id) == [f"mosaic.fastlane.{run_id}"]

    monkeypatch.undo()
    assert writer.publish(FRAME)


def test_the_janitor_needs_no_numpy(scripts):
    scripts.run("import sys; sys.modules['numpy'] = None\nfrom mosaic_sdk.fastlane.control import remove_dead")


def test_the_import_paths_of_the_public_mosaic_work(scripts):
    names = "FastLaneWriter, FastLaneConfig, FastLaneMetrics, FastLaneReader"
    script = f"from gym_gui.fastlane import {names}\nfrom gym_gui.fastlane.buffer import create_fastlane_name\n"

    out, _ = scripts.run(script + "print(create_fastlane_name('x'))", path=(SDK, GYM_GUI, *sys.path))

    assert out == "mosaic.fastlane.x\n"
