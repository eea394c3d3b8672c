"""Event files: what tensorboardX writes is read without TensorBoard, and a damaged file costs only its damaged part."""

import os
import struct

import pytest
from tensorboardX import SummaryWriter

from mosaic.imports.crc32c import checksum
from mosaic.imports.scan import Scan, open_source

TABLE = (
    "|param|value|\n|-|-|\n|exp_name|ppo|\n|env_id|CartPole-v1|\n|seed|3|\n|learning_rate|0.00025|\n|anneal_lr|True|"
)


def write(folder, steps, first=0):
    with SummaryWriter(str(folder), flush_secs=1) as writer:
        for step in range(first, first + steps):
            writer.add_scalar("charts/episodic_return", step * 1.5, step)
            writer.add_scalar("charts/episodic_length", step + 1, step)
            writer.add_scalar("losses/value_loss", float("nan") if step == 3 else 1 / (step + 1), step)


def read(path, cursor=None):
    scan = Scan()
    scan.add(path)
    source = open_source(scan.found[0], cursor or {})
    blocks = list(source.blocks())
    return source, blocks


def points(blocks, wanted):
    found = []
    for block in blocks:
        at = 0
        for step, number in zip(block.steps, block.sets, strict=True):
            for name in block.name_sets[number]:
                if name == wanted:
                    found.append((step, block.values[at]))
                at += 1
    return found


def event_file(folder):
    return next(folder.glob("*tfevents*"))


def test_the_checksum_is_that_of_the_castagnoli_polynomial():
    assert checksum(b"123456789") == 0xE3069283


def test_scalars_are_read_with_their_steps_and_values(tmp_path):
    write(tmp_path, 200)

    source, blocks = read(tmp_path)

    assert points(blocks, "charts/episodic_return") == [(step, step * 1.5) for step in range(200)]
    assert str(points(blocks, "losses/value_loss")[3][1]) == "nan"
    assert not source.problems


def test_values_of_one_step_are_one_event(tmp_path):
    write(tmp_path, 10)

    _, blocks = read(tmp_path)

    assert sum(len(block.sets) for block in blocks) == 10


def test_a_return_and_its_length_are_an_episode(tmp_path):
    write(tmp_path, 5)

    _, blocks = read(tmp_path)

    episodes = [episode for block in blocks for episode in block.episodes]
    assert [(one.total_reward, one.steps, one.global_step) for one in episodes] == [
        (step * 1.5, step + 1, step) for step in range(5)
    ]


def test_the_table_of_hyperparameters_becomes_settings(tmp_path):
    with SummaryWriter(str(tmp_path)) as writer:
        writer.add_text("hyperparameters", TABLE)
        writer.add_scalar("x", 1.0, 1)

    source, _ = read(tmp_path)

    assert source.about.settings["learning_rate"] == 0.00025
    assert source.about.settings["anneal_lr"] is True
    assert [source.about.settings[key] for key in ("algo", "env_id", "seed")] == ["ppo", "CartPole-v1", 3]


def test_another_name_of_an_experiment_is_not_taken_for_an_algorithm(tmp_path):
    with SummaryWriter(str(tmp_path)) as writer:
        writer.add_text("hyperparameters", TABLE.replace("|ppo|", "|my idea|"))
        writer.add_scalar("x", 1.0, 1)

    source, _ = read(tmp_path)

    assert "algo" not in source.about.settings


def test_tensors_and_long_steps_are_read_too(tmp_path):
    with SummaryWriter(str(tmp_path)) as writer:
        writer.add_scalar("big", 2.5, 10**12)
        writer.add_scalar("negative", 1.5, -7)
        writer.add_histogram("weights", [1.0, 2.0, 3.0], 1)

    _, blocks = read(tmp_path)

    assert points(blocks, "big") == [(10**12, 2.5)]
    assert points(blocks, "negative") == [(-7, 1.5)]
    assert points(blocks, "weights") == []


def test_only_what_is_new_is_read_again(tmp_path):
    write(tmp_path, 50)
    before, _ = read(tmp_path)
    cursor = before.cursor()
    file = event_file(tmp_path)
    with SummaryWriter(str(tmp_path / "more")) as writer:
        writer.add_scalar("charts/episodic_return", 1000.0, 50)
    data = event_file(tmp_path / "more").read_bytes()
    version = 12 + struct.unpack_from("<Q", data)[0] + 4
    with file.open("ab") as out:
        out.write(data[version:])
    event_file(tmp_path / "more").unlink()

    _, blocks = read(tmp_path, cursor)

    assert points(blocks, "charts/episodic_return") == [(50, 1000.0)]
    assert sum(map(len, blocks)) == 1


def test_an_episode_that_is_cut_between_two_imports_is_not_lost(tmp_path):
    write(tmp_path, 1)
    file = event_file(tmp_path)
    whole = file.read_bytes()
    at = [0]
    while at[-1] < len(whole):
        at.append(at[-1] + 16 + struct.unpack_from("<Q", whole, at[-1])[0])
    file.write_bytes(whole[: at[2]])  # the version and the return
    before, first = read(tmp_path)
    file.write_bytes(whole)

    _, second = read(tmp_path, before.cursor())

    assert [len(block.episodes) for block in first] == [0]
    assert [(one.total_reward, one.steps) for block in second for one in block.episodes] == [(0.0, 1)]


def test_a_truncated_file_is_named_and_read_up_to_its_end(tmp_path):
    write(tmp_path, 20)
    file = event_file(tmp_path)
    os.truncate(file, file.stat().st_size - 5)

    source, blocks = read(tmp_path)

    assert len(points(blocks, "losses/value_loss")) == 19
    assert f"{file}: it ends inside a record" in source.problems[0]


def test_a_damaged_record_is_left_out_and_the_others_are_read(tmp_path):
    write(tmp_path, 20)
    file = event_file(tmp_path)
    data = bytearray(file.read_bytes())
    data[data.index(b"charts/episodic_return")] ^= 1
    file.write_bytes(data)

    source, blocks = read(tmp_path)

    assert len(points(blocks, "charts/episodic_return")) == 19
    assert source.problems == [f"{file}: 1 damaged record was left out"]


def test_a_damaged_length_ends_the_file(tmp_path):
    write(tmp_path, 20)
    file = event_file(tmp_path)
    data = bytearray(file.read_bytes())
    second = 16 + struct.unpack_from("<Q", data)[0]
    data[second] ^= 1
    file.write_bytes(data)

    source, blocks = read(tmp_path)

    assert sum(map(len, blocks)) == 0
    assert f"it is damaged at byte {second}" in source.problems[0]


def test_a_file_that_was_replaced_is_named(tmp_path):
    write(tmp_path, 5)
    before, _ = read(tmp_path)
    file = event_file(tmp_path)
    file.write_bytes(file.read_bytes()[:10] + b"another file altogether")

    source, blocks = read(tmp_path, before.cursor())

    assert not sum(map(len, blocks))
    assert "replaced or truncated" in source.problems[0]


def test_a_file_that_lost_its_end_is_named(tmp_path):
    write(tmp_path, 5)
    before, _ = read(tmp_path)
    os.truncate(event_file(tmp_path), event_file(tmp_path).stat().st_size - 10)

    source, blocks = read(tmp_path, before.cursor())

    assert not sum(map(len, blocks))
    assert "replaced or truncated" in source.problems[0]


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/etc/passwd")])
def test_a_fifo_or_a_link_in_place_of_an_event_file_is_not_read(tmp_path, make):
    write(tmp_path, 3)
    make(tmp_path / "events.out.tfevents.1.x")

    _, blocks = read(tmp_path)

    assert len(points(blocks, "losses/value_loss")) == 3
