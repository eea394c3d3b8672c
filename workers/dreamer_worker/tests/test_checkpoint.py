"""Checkpoints: all parts are of the same epoch."""

import json
import os
import pickle
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from dreamer_worker.agent.spaces import Space
from dreamer_worker.agent_process import Saver, run_agent, save_last
from dreamer_worker.buffer import Buffer
from dreamer_worker.checkpoint import (
    Claim,
    Counters,
    Epochs,
    read_arrays,
    write_arrays,
)
from dreamer_worker.config import DreamerConfig
from dreamer_worker.envs import observe
from dreamer_worker.factories import make_streams
from dreamer_worker.life import Life
from dreamer_worker.limiter import SamplesPerInsert
from dreamer_worker.parallel import resume
from dreamer_worker.random_agent import RandomAgent
from dreamer_worker.replay import Replay, ReplayService, Vault
from dreamer_worker.rpc import Client, Server, free_address
from mosaic_sdk.checkpoints import CheckpointError
from mosaic_sdk.files import write_json

SPACES = {"number": ("<i8", ()), "is_first": ("|b1", ())}


def make_replay():
    limiter = SamplesPerInsert(0.5, tolerance=1e9, min_inserts=10)
    return Replay(lambda spaces: Buffer(spaces, 4, 10_000, block_rows=10), limiter)


def service_of(replay, server, epochs, **more):
    return ReplayService(replay, make_streams(replay), server, Vault(epochs), **more)


def play(replay, begin, end):
    for number in range(begin, end):
        rows = {"number": np.asarray([number]), "is_first": np.asarray([False])}
        replay.insert(rows, ["env"], [number])


@pytest.fixture
def epochs(tmp_path, monkeypatch):
    monkeypatch.delenv("MOSAIC_CHECKPOINT_DIR", raising=False)
    folder = tmp_path / "epochs"
    folder.mkdir()
    return Epochs(folder)


def save(epochs, epoch, value=1, replay=None, vault=None):
    folder = epochs.begin(epoch)
    write_arrays(folder / "agent.npz", {"weights": np.full(1000, value)})
    if replay:
        vault.write(replay, replay.snapshot(), epoch)
    epochs.commit(epoch, {"env_steps": epoch * 10})


def test_arrays_are_read_as_they_were_written(tmp_path):
    arrays = {"a/b": np.arange(6).reshape(2, 3), "file": np.float16(3.5), "empty": np.zeros((0, 4))}

    write_arrays(tmp_path / "x.npz", arrays)

    read = read_arrays(tmp_path / "x.npz")
    assert all(
        read[key].dtype == np.asarray(value).dtype and (read[key] == value).all() for key, value in arrays.items()
    )
    assert [path.name for path in tmp_path.iterdir()] == ["x.npz"]


def test_nothing_in_a_checkpoint_is_executed(tmp_path):
    with pytest.raises(ValueError, match=r"[Oo]bject arrays"):
        write_arrays(tmp_path / "x.npz", {"a": np.asarray([object()])})
    (tmp_path / "x.npz").write_bytes(pickle.dumps({"a": 1}))

    with pytest.raises(CheckpointError, match="damaged"):
        read_arrays(tmp_path / "x.npz")


def test_an_epoch_counts_only_when_it_is_committed(epochs):
    save(epochs, 1)
    folder = epochs.begin(2)
    write_arrays(folder / "agent.npz", {"weights": np.zeros(3)})

    assert epochs.newest() == 1
    assert epochs.next_number() == 3


@pytest.mark.parametrize("harm", ["flip a byte", "cut", "remove", "commit is not JSON"])
def test_a_damaged_epoch_is_replaced_by_the_previous_one(epochs, harm):
    save(epochs, 1)
    save(epochs, 2)
    part = epochs.path(2) / "agent.npz"
    data = part.read_bytes()

    if harm == "flip a byte":
        part.write_bytes(data[:500] + bytes([data[500] ^ 1]) + data[501:])
    elif harm == "cut":
        part.write_bytes(data[:-1])
    elif harm == "remove":
        part.unlink()
    else:
        (epochs.path(2) / "commit.json").write_text('{"version": 1,')

    assert epochs.newest() == 1
    assert epochs.read(1)["counters"]["env_steps"] == 10


def test_the_newest_two_are_kept(epochs):
    for number in range(1, 6):
        save(epochs, number)

    assert epochs.committed() == [5, 4]


def test_uncommitted_epochs_do_not_count_among_them(epochs):
    for number in (1, 2):
        save(epochs, number)
    epochs.begin(3)

    save(epochs, 4)

    assert epochs.committed() == [4, 2]
    assert not epochs.path(3).exists()


def test_a_resumed_run_puts_damaged_epochs_aside(epochs, tmp_path):
    for number in (1, 2):
        save(epochs, number)
    (epochs.path(2) / "agent.npz").unlink()
    config = DreamerConfig(run_id="T", logdir=str(tmp_path))

    epochs.folder.rename(tmp_path / "checkpoints")
    epochs = Epochs(tmp_path / "checkpoints")
    assert resume(config) == 1
    save(epochs, epochs.next_number(), value=5)

    assert epochs.committed() == [2, 1]
    assert not epochs.damage(2)
    assert (epochs.folder / "damaged-00000002").exists()


def test_replay_and_limiter_are_restored_as_they_were(epochs):
    replay, vault = make_replay(), Vault(epochs)
    play(replay, 0, 57)
    replay.sample(7)
    save(epochs, 1, replay=replay, vault=vault)
    play(replay, 57, 90)

    restored = make_replay()
    Vault(epochs).restore(restored, 1)

    assert restored.buffers["train"].steps == 57
    assert len(restored.buffers["train"]) == 54
    assert restored.limiter.save() == {"inserts": 57, "samples": 7, "available": 0.5 * 47 - 7}


def test_steps_are_written_once_and_removed_when_no_epoch_lists_them(epochs):
    replay, vault = make_replay(), Vault(epochs)
    play(replay, 0, 25)
    save(epochs, 1, replay=replay, vault=vault)
    first = {path.name: path.stat().st_mtime_ns for path in vault.folder.iterdir()}
    play(replay, 25, 45)
    for number in (2, 3):
        save(epochs, number, replay=replay, vault=vault)
        vault.sweep(number)

    later = {path.name: path.stat().st_mtime_ns for path in vault.folder.iterdir()}
    assert len(first) == 3
    assert len(later) == 5
    assert len(first.items() & later.items()) == 2  # the two that were full; the third has grown and is gone


def test_a_run_may_start_from_another_runs_checkpoint(epochs, tmp_path):
    replay, vault = make_replay(), Vault(epochs)
    play(replay, 0, 25)
    save(epochs, 1, replay=replay, vault=vault)
    config = DreamerConfig(run_id="T", logdir=str(tmp_path / "new"), checkpoint=str(epochs.folder))
    (tmp_path / "new").mkdir()

    assert resume(config) == 1

    restored = make_replay()
    Vault(Epochs(config.checkpoint_dir)).restore(restored, 1)
    assert restored.buffers["train"].steps == 25
    assert Counters(tmp_path / "new" / "counters.bin")["env_steps"] == 10


def test_a_missing_block_is_damage(epochs):
    replay, vault = make_replay(), Vault(epochs)
    play(replay, 0, 25)
    save(epochs, 1, replay=replay, vault=vault)
    play(replay, 25, 45)
    save(epochs, 2, replay=replay, vault=vault)

    max(vault.folder.iterdir()).unlink()

    assert epochs.newest() == 1


def test_blocks_from_before_and_after_a_restart_are_never_mixed_up(epochs):
    replay, vault = make_replay(), Vault(epochs)
    play(replay, 0, 12)
    save(epochs, 1, replay=replay, vault=vault)
    play(replay, 12, 16)
    vault.write(replay, replay.snapshot(), 2)  # and then it is killed: epoch 2 is never committed

    other, other_vault = make_replay(), Vault(epochs)
    other_vault.restore(other, 1)
    play(other, 1012, 1016)
    save(epochs, 2, replay=other, vault=other_vault)
    restored = make_replay()
    Vault(epochs).restore(restored, 2)

    numbers = restored.buffers["train"].sample(200)["number"]
    assert set(np.unique(numbers)) == {*range(12), *range(1012, 1016)}


def test_a_snapshot_is_the_moment_it_was_taken_however_late_it_is_written(epochs, secret):
    server = Server("0", secret)
    service = service_of(make_replay(), server, epochs)
    play(service.replay, 0, 30)
    epochs.begin(1)

    service.prepare()
    service.snapshot(1)
    play(service.replay, 30, 60)
    service.write(1)
    epochs.commit(1, {})

    again = service_of(make_replay(), Server("0", secret), epochs)
    assert again.restore() == 1
    assert again.replay.buffers["train"].steps == 30
    assert again.replay.limiter.inserts == 30
    with pytest.raises(ValueError, match="no snapshot of epoch 9"):
        service.write(9)
    for part in (server, again.server):
        part.close()


def test_a_checkpoint_that_is_given_up_leaves_the_ratio_in_force(epochs, secret):
    replay = Replay(lambda spaces: Buffer(spaces, 4, 10_000, block_rows=10), SamplesPerInsert(0.5, 5, 10))
    service = service_of(replay, Server("0", secret), epochs)
    play(replay, 0, 15)
    assert not replay.limiter.insert(timeout_s=0)

    service.prepare()
    assert replay.limiter.insert(timeout_s=0)
    service.release()

    assert not replay.limiter.insert(timeout_s=0)
    service.server.close()


class ActorWithPendingSteps:
    """An actor with pending steps that no replay has accepted yet."""

    def __init__(self, meanwhile):
        self.turn = threading.Lock()
        self._meanwhile = meanwhile

    def drain(self, timeout_s):
        replay = self._meanwhile()
        return replay.limiter.insert(timeout_s=timeout_s)


class Idle:
    """A learner between two updates, or a logger's part."""

    turn = threading.Lock()


def blocked_service(address, secret, epochs):
    """A replay that admits no inserts for now."""
    replay = Replay(lambda spaces: Buffer(spaces, 4, 10_000, block_rows=10), SamplesPerInsert(0.5, 5, 10))
    play(replay, 0, 15)
    service = service_of(replay, Server(address, secret, patience_s=30), epochs)
    service.server.start()
    return service


def test_a_replay_that_is_killed_during_a_checkpoint_is_asked_again(tmp_path, epochs, secret):
    services = [blocked_service("0", secret, epochs)]

    def kill_first():
        if len(services) == 1:
            services[0].server.close()
            services.append(blocked_service(services[0].server.address, secret, epochs))
        return services[-1].replay

    logger = Server("0", secret).start()
    for name in ("snapshot", "write", "saved"):
        logger.bind(name, lambda *args: None)
    addresses = {"replay_addr": services[0].server.address, "logger_addr": logger.address}
    config = DreamerConfig(run_id="T", logdir=str(tmp_path), secret=secret, **addresses)
    agent = RandomAgent({}, {})
    saver = Saver(agent, ActorWithPendingSteps(kill_first), Idle(), config, Counters(tmp_path / "counters.bin"))

    epoch = saver.save(limit_s=60)

    assert Epochs(config.checkpoint_dir).newest() == epoch == 1
    assert not services[-1].replay.limiter.insert(timeout_s=0)  # the ratio is in force again
    saver.close()
    for server in (logger, services[-1].server):
        server.close()


def test_an_agent_that_was_killed_during_a_checkpoint_leaves_the_ratio_in_force(epochs, secret):
    service = blocked_service("0", secret, epochs)
    client = Client(service.server.address, secret)
    client.ask("begin", 1, timeout_s=30)
    client.ask("prepare", timeout_s=30)
    assert service.replay.limiter.insert(timeout_s=0)

    client.ask("begin", 1, timeout_s=30)  # the next one

    assert not service.replay.limiter.insert(timeout_s=0)
    client.close()
    service.server.close()


def test_counters_survive_their_writer_and_never_go_back(tmp_path):
    counters = Counters(tmp_path / "counters.bin")
    counters.raise_to("env_steps", 10)
    counters.raise_to("env_steps", 4)

    other = Counters(tmp_path / "counters.bin")

    assert other["env_steps"] == 10
    assert other.raise_to("env_steps", 11) == 11
    assert counters["env_steps"] == 11


def test_json_is_written_atomically(tmp_path):
    write_json(tmp_path / "x.json", {"a": 1})
    write_json(tmp_path / "x.json", {"a": 2})

    assert json.loads((tmp_path / "x.json").read_text()) == {"a": 2}
    assert len(list(tmp_path.iterdir())) == 1


def test_a_folder_has_one_writer_at_a_time(tmp_path):
    script = "import sys, signal; from dreamer_worker.checkpoint import Claim; c = Claim(sys.argv[1]).take()"
    command = [sys.executable, "-c", f"{script}; print('mine', flush=True); signal.pause()", str(tmp_path)]
    owner = subprocess.Popen(command, stdout=subprocess.PIPE)
    try:
        owner.stdout.readline()
        with pytest.raises(CheckpointError, match="Another run is writing to"):
            Claim(tmp_path).take(limit_s=0)
    finally:
        owner.kill()
        owner.wait()
        owner.stdout.close()

    Claim(tmp_path).take(limit_s=0).release()


def test_every_launch_has_a_number_of_its_own(tmp_path, epochs):
    config = DreamerConfig(run_id="T", logdir=str(tmp_path))
    counters = Counters(tmp_path / "counters.bin")

    for launch in (1, 2):
        counters.raise_to("env_steps", 50)
        resume(config)
        assert (counters["launches"], counters["env_steps"]) == (launch, 0)


def test_a_replay_exits_without_an_answer_when_another_launch_asks(secret, epochs):
    left = threading.Event()
    service = service_of(make_replay(), Server("0", secret), epochs, on_outdated=left.set)
    client = Client(service.server.start().address, secret)

    for _ in range(2):  # an agent that was killed asks again
        client.ask("begin", 7, timeout_s=30)
    unanswered = client.call("begin", 8)

    assert left.wait(30)
    assert not unanswered.done()
    client.close()
    service.server.close()


def test_a_replay_restarted_during_a_launch_exits_when_the_next_one_asks(secret, epochs):
    left = threading.Event()
    service = service_of(make_replay(), Server("0", secret), epochs, on_outdated=left.set)
    client = Client(service.server.start().address, secret)

    play(service.replay, 0, 5)  # of the launch in which it was restarted, which it does not know
    client.call("begin", 2)

    assert left.wait(30)
    client.close()
    service.server.close()


class Failing:
    """A saver whose first attempts fail: the replay was killed just then."""

    def __init__(self, failures):
        self.failures, self.limits = failures, []

    def save(self, limit_s):
        self.limits.append(limit_s)
        return None if len(self.limits) <= self.failures else 1


class Resting:
    def rests(self, timeout_s):
        return True


@pytest.mark.parametrize(("is_stopped", "tries"), [(False, [120, 120]), (True, [5])], ids=["done", "stopped"])
def test_the_last_checkpoint_is_retried_unless_the_run_is_stopped(is_stopped, tries):
    life, saver = Life(), Failing(failures=1)
    if is_stopped:
        life.stop()

    save_last(saver, Resting(), life)

    assert saver.limits == tries


def test_a_failed_write_on_a_full_disk_leaves_no_file(tmp_path, full_disk):
    with full_disk(5000):
        with pytest.raises(OSError, match="File too large"):
            write_arrays(tmp_path / "x.npz", {"small": np.zeros(10), "large": np.zeros(10_000), "more": np.zeros(10)})
        with pytest.raises(OSError, match="File too large"):
            write_json(tmp_path / "x.json", {"text": "x" * 10_000})

    assert not list(tmp_path.iterdir())


def test_counters_reserve_their_space_on_disk_first(tmp_path):
    """A hole that no longer fits on the disk would be a SIGBUS in the middle of the run."""
    Counters(tmp_path / "counters.bin")

    with open(tmp_path / "counters.bin", "rb") as file:
        assert os.lseek(file.fileno(), 0, os.SEEK_DATA) == 0


class Ready:
    """An actor and a learner between two steps."""

    def __init__(self):
        self.turn = threading.Lock()

    def drain(self, timeout_s):
        return True


class Large(RandomAgent):
    def save(self):
        return {"weights": np.zeros(10_000)}


@pytest.fixture
def saver(tmp_path, epochs, secret):
    """Saves a small run: a replay of 15 steps, and a logger without data."""
    service = blocked_service("0", secret, Epochs(tmp_path / "checkpoints"))
    logger = Server("0", secret).start()
    for name in ("snapshot", "write", "saved"):
        logger.bind(name, lambda *args: None)
    addresses = {"replay_addr": service.server.address, "logger_addr": logger.address}
    config = DreamerConfig(run_id="T", logdir=str(tmp_path), secret=secret, **addresses)
    saver = Saver(Large({}, {}), Ready(), Ready(), config, Counters(tmp_path / "counters.bin"))
    yield saver
    for part in (saver, logger, service.server):
        part.close()


def test_a_checkpoint_on_a_full_disk_leaves_the_previous_one_in_force_and_no_files(saver, full_disk):
    assert saver.save(limit_s=60) == 1

    with full_disk(5000):
        assert [saver.save(limit_s=60) for _ in range(3)] == [None] * 3

    assert saver.epochs.newest() == 1
    assert [path.name for path in saver.epochs.folder.glob("epoch-*")] == ["epoch-00000001"]
    assert saver.save(limit_s=60) == 5  # numbers are not reused: a part may still be writing


def test_a_committed_checkpoint_is_not_removed(saver, monkeypatch):
    commit = saver.epochs.commit

    def fail(*args):
        commit(*args)
        raise OSError("after that")

    monkeypatch.setattr(saver.epochs, "commit", fail)

    assert saver.save(limit_s=60) is None
    assert saver.epochs.newest() == 1


def test_a_block_that_a_killed_replay_left_half_written_is_removed(epochs):
    replay, vault = make_replay(), Vault(epochs)
    play(replay, 0, 25)
    save(epochs, 1, replay=replay, vault=vault)
    rubbish = vault.folder / ".train-000000002-5.npz.123.tmp"
    rubbish.touch()

    vault.sweep(1)

    assert not rubbish.exists()
    assert not epochs.damage(1)


def test_a_run_that_was_killed_while_copying_a_checkpoint_copies_it_again(epochs, tmp_path):
    replay, vault = make_replay(), Vault(epochs)
    play(replay, 0, 25)
    save(epochs, 1, replay=replay, vault=vault)
    config = DreamerConfig(run_id="T", logdir=str(tmp_path / "new"), checkpoint=str(epochs.folder))
    (tmp_path / "new" / "checkpoints" / "epoch-00000001").mkdir(parents=True)
    (tmp_path / "new" / "checkpoints" / "epoch-00000001" / "commit.json").touch()

    assert resume(config) == 1


class Slow(RandomAgent):
    """An agent that takes a while to load."""

    gate = threading.Event()

    def load(self, saved):
        self.gate.wait(60)
        super().load(saved)


def test_nothing_is_played_before_the_agent_is_restored(tmp_path, epochs, secret):
    sink = Server("0", secret).start()
    for name in ("begin", "insert", "steps", "prepare", "snapshot", "write", "saved", "release", "metrics"):
        sink.bind(name, lambda *args: None)
    addresses = {"replay_addr": sink.address, "logger_addr": sink.address, "actor_addr": free_address()}
    config = DreamerConfig(run_id="T", logdir=str(tmp_path), secret=secret, envs=1, steps=100, **addresses)
    folder = Epochs(config.checkpoint_dir).begin(1)
    write_arrays(folder / "agent.npz", {"updates": np.asarray(7)})
    Epochs(config.checkpoint_dir).commit(1, {})
    life, agent = Life(), Slow({"x": Space("float32", (3,))}, {"action": Space("int32", (), 0, 4)})
    thread = threading.Thread(target=run_agent, args=(life, lambda: agent, config), daemon=True)
    thread.start()
    env = Client(config.actor_addr, secret, max_inflight=1)

    action = env.call("act", 0, observe({"x": np.zeros(3, np.float32)}, first=True))
    with pytest.raises(TimeoutError):
        action.result(0.5)
    agent.gate.set()

    action.result(30)
    assert agent.updates == 7
    life.stop()
    thread.join(60)
    assert not thread.is_alive()
    for part in (env, sink):
        part.close()


OLD = Path(__file__).parent / "old_run"  # saved before commit.json had the settings


def test_a_checkpoint_of_an_older_version_is_continued_and_played(run_of, tmp_path):
    shutil.copytree(OLD, tmp_path / "old")
    source = Epochs(tmp_path / "old" / "checkpoints")
    assert source.newest() == 1
    assert "settings" not in source.read(1)

    run = run_of(script="train", steps=80, checkpoint=str(tmp_path / "old"))
    assert run.start().wait() == 0, run.stderr
    best = run_of(script="eval", episodes=1, checkpoint=str(tmp_path / "old" / "checkpoints" / "best" / "agent.npz"))
    assert best.start().wait() == 0, best.stderr

    assert "The run continues from a checkpoint at step 60" in run.stderr
    assert run.counters["env_steps"] == 80
    commit = Epochs(run.folder / "checkpoints").read(2)
    assert (commit["worker"], commit["step"], commit["settings"]["env"]) == ("dreamer", 80, "dummy_grid")


def test_an_epoch_that_is_copied_elsewhere_takes_its_settings_along(run_of, tmp_path):
    run = run_of(script="train", steps=60, envs=3)
    assert run.start().wait() == 0, run.stderr
    shutil.copytree(run.folder / "checkpoints" / "epoch-00000001", tmp_path / "alone")

    config = DreamerConfig.from_dict({"run_id": "T", "script": "eval", "checkpoint": str(tmp_path / "alone")})

    assert (config.env, config.envs, config.random_agent) == ("dummy_grid", 3, True)


def test_an_epoch_of_another_worker_or_of_a_newer_format_is_not_used(epochs):
    for epoch, change in enumerate(({"worker": "cleanrl"}, {"format": 99}, {"version": 99}), 1):
        save(epochs, epoch)
        path = epochs.path(epoch) / "commit.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **change}))

        assert epochs.damage(epoch) != "", change

    assert epochs.newest() is None
