"""The checkpoints of a replay that is a part of its run."""

import hashlib

import numpy as np
import pytest
from dreamer_worker import far_vault
from dreamer_worker.buffer import Buffer
from dreamer_worker.checkpoint import Epochs, write_arrays
from dreamer_worker.far_vault import FarVault, Keeper
from dreamer_worker.limiter import SamplesPerInsert
from dreamer_worker.replay import Replay
from dreamer_worker.rpc import Client, RpcError, Server


class Place:
    """The run's checkpoints folder behind a meeting, and parts that save there."""

    def __init__(self, folder):
        self.folder = folder
        self.epochs = Epochs(folder / "run")
        self.epochs.folder.mkdir()
        self.server = Server("0", "secret")
        self.keeper = Keeper(self.epochs)
        self.keeper.serve_at(self.server)
        self.client = Client(self.server.start().address, "secret")

    def part(self, name):
        """A new part; its replay is the run's from now on."""
        self.keeper.take_from(name)
        return FarVault(self.folder / name, self.client, name)

    def save(self, epoch, replay, vault):
        folder = self.epochs.begin(epoch)
        write_arrays(folder / "agent.npz", {"weights": np.ones(3)})
        vault.write(replay, replay.snapshot(), epoch)
        vault.sweep(epoch)
        self.epochs.commit(epoch, {"env_steps": epoch})


@pytest.fixture
def place(tmp_path):
    found = Place(tmp_path)
    yield found
    found.client.close()
    found.server.close()


def make_replay():
    limiter = SamplesPerInsert(0.5, tolerance=1e9, min_inserts=10)
    return Replay(lambda spaces: Buffer(spaces, 4, 10_000, block_rows=10), limiter)


def play(replay, begin, end):
    for number in range(begin, end):
        rows = {"number": np.asarray([number]), "is_first": np.asarray([False])}
        replay.insert(rows, ["env"], [number])


def numbers_in(replay):
    return sorted({int(number) for _ in range(300) for number in replay.sample(4)["number"].flat})


def test_a_part_that_replaces_a_lost_one_has_the_steps_of_the_newest_checkpoint(place, monkeypatch):
    monkeypatch.setattr(far_vault, "PIECE", 100)  # many pieces for each file
    lost, replay = place.part("lost"), make_replay()
    assert lost.newest() is None
    play(replay, 0, 35)
    place.save(1, replay, lost)
    play(replay, 35, 52)
    place.save(2, replay, lost)
    play(replay, 52, 60)  # lost with the part

    vault, found = place.part("new"), make_replay()
    vault.restore(found, vault.newest())
    restored = numbers_in(found)
    play(found, 52, 70)
    place.save(3, found, vault)

    assert restored == list(range(52))
    assert place.epochs.damage(3) == place.epochs.damage(2) == ""
    assert found.limiter.save()["inserts"] == 70


def test_a_block_is_sent_once_and_not_kept_by_the_part(place, monkeypatch):
    vault, replay = place.part("part"), make_replay()
    sent = []
    monkeypatch.setattr(vault, "_send", lambda name: (sent.append(name), FarVault._send(vault, name)))
    play(replay, 0, 20)

    place.save(1, replay, vault)
    play(replay, 20, 25)
    place.save(2, replay, vault)

    assert sorted(name for name in sent if name.startswith("blocks/")) == [
        "blocks/train-000000000-10.npz",
        "blocks/train-000000001-10.npz",
        "blocks/train-000000002-5.npz",
    ]
    assert [path for path in place.folder.joinpath("part").rglob("*") if path.is_file()] == []
    assert len(list(place.epochs.folder.joinpath("blocks").iterdir())) == 3


def test_an_epoch_that_was_given_up_is_not_restored(place):
    vault, replay = place.part("part"), make_replay()
    play(replay, 0, 20)
    place.save(1, replay, vault)
    play(replay, 20, 30)
    place.epochs.begin(2)
    vault.write(replay, replay.snapshot(), 2)  # and the agent is killed before it commits

    assert place.part("new").newest() == 1


@pytest.mark.parametrize("name", ["../outside.npz", "blocks/../../x.npz", "/etc/passwd", "epoch-00000001/agent.npz"])
def test_other_files_are_neither_read_nor_written(place, name):
    place.part("part")

    for call in (("vault_read", name, 0), ("vault_store", "part", name, 1, "", 0, b"x")):
        with pytest.raises(RpcError, match="is not a file of a replay"):
            place.client.ask(*call)


def test_a_file_that_arrived_damaged_is_not_kept(place):
    name, data = "blocks/train-000000000-10.npz", b"steps" * 100
    place.part("part")

    with pytest.raises(RpcError, match="arrived damaged"):
        place.client.ask("vault_store", "part", name, len(data), hashlib.sha256(b"other").hexdigest(), 0, data)

    assert list(place.epochs.folder.rglob("*.npz*")) == []


def test_a_replay_that_was_replaced_saves_nothing_any_more(place):
    lost, replay = place.part("lost"), make_replay()
    play(replay, 0, 20)
    place.save(1, replay, lost)
    place.part("new")
    place.epochs.begin(2)

    with pytest.raises(RpcError, match="has taken the place of this one"):
        lost.write(replay, replay.snapshot(), 2)
    with pytest.raises(RpcError, match="has taken the place of this one"):
        lost.sweep(2)

    assert list(place.epochs.path(2).iterdir()) == []
