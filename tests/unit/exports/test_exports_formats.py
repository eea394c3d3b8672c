"""The files of other programs, byte by byte. tests/observe reads them with these programs themselves."""

import struct
import sys
import zlib
from types import SimpleNamespace

import pytest

from mosaic.client.events import Episode, Metric
from mosaic.exports import parquet
from mosaic.exports.crc32c import crc32c, masked_crc32c
from mosaic.exports.protobuf import integer, single, varint
from mosaic.exports.stored import ENV_STEPS, EPISODES, Row, rows_of
from mosaic.exports.tensorboard import write_run
from mosaic.exports.wandb import _Log
from mosaic.imports.scan import Scan, open_source
from mosaic.model.errors import MosaicError


def test_the_checksum_is_castagnolis():
    # The check value of CRC-32C, and the examples of RFC 3720, B.4.
    assert crc32c([b"123456789", b"", bytes(32), b"\xff" * 32]).tolist() == [0xE3069283, 0, 0x8A9136AA, 0x62A8AB43]


def test_a_masked_checksum_is_rotated():
    (crc,) = crc32c([b"abc"]).tolist()

    (masked,) = masked_crc32c([b"abc"]).tolist()

    assert masked == ((crc >> 15 | crc << 17) + 0xA282EAD8) % 2**32


def test_numbers_are_encoded_as_protocol_buffers_do():
    assert varint(300) == b"\xac\x02"
    assert varint(-1) == b"\xff" * 9 + b"\x01"
    assert integer(2, 1) == b"\x10\x01"
    assert single(2, 1e300) == b"\x15" + struct.pack("<f", float("inf"))


@pytest.mark.parametrize("sizes", [(10,), (100_000,), (32_747, 5, 40_000), (32_754, 1), (32_747, 0, 32_761, 9)])
def test_records_of_any_size_can_be_read_back_from_blocks(tmp_path, sizes):
    records = [bytes([number + 1]) * size for number, size in enumerate(sizes)]

    with open(tmp_path / "log", "wb") as file:
        log = _Log(file)
        for record in records:
            log.write(record)

    assert read_log((tmp_path / "log").read_bytes()) == records


def read_log(data):
    """LevelDB's log format, as its documentation describes it."""
    place, found, parts = 7, [], []
    while place < len(data):
        room = 32768 - place % 32768
        if room < 7:
            assert data[place : place + room] == bytes(room)
            place += room
            continue
        checksum, length, kind = struct.unpack_from("<IHB", data, place)
        assert length + 7 <= room
        part = data[place + 7 : place + 7 + length]
        assert checksum == zlib.crc32(bytes([kind]) + part)
        parts.append(part)
        if kind in (1, 4):
            found.append(b"".join(parts))
            parts = []
        place += 7 + length
    return found


def episode(index, total, global_step=None, agent=""):
    return Episode(index, index, index, total, 5, 0, agent, True, False, b"", global_step)


def test_episodes_lie_on_one_axis_as_in_the_curves():
    rows = list(rows_of([episode(0, 1.0, 50), episode(1, 2.0), episode(2, 3.0, 90)]))

    assert [(row.step, row.axis) for row in rows] == [(50, ENV_STEPS), (50, ENV_STEPS), (90, ENV_STEPS)]


def test_episodes_without_env_steps_are_counted_and_evaluations_have_their_own_names():
    rows = list(rows_of([episode(3, 1.0), episode(0, 9.0, 70, "eval"), Metric(1, 1, 8, {"loss": 0.5}, b"")]))

    assert [(row.step, row.axis, sorted(row.values)) for row in rows] == [
        (3, EPISODES, ["episode/length", "episode/return"]),
        (70, ENV_STEPS, ["eval/length", "eval/return"]),
        (8, "steps", ["loss"]),
    ]


def test_without_pyarrow_the_error_names_the_command_that_installs_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)

    with pytest.raises(MosaicError, match=r"pip install 'mosaic-rl\[parquet\]'"):
        parquet.require_pyarrow()


def test_an_event_file_that_was_exported_can_be_imported(tmp_path):
    run = SimpleNamespace(run_id="R", created_at=1000.0, worker_name="toy", settings={"seed": 1})
    rows = [Row(1_000_000_000_000 + n, 10 * n, ENV_STEPS, {"loss": n / 2}) for n in range(3)]
    scan = Scan()

    assert write_run(tmp_path / "board", run, rows) == 3

    scan.add(tmp_path / "board")
    source = open_source(scan.found[0], {})
    blocks = list(source.blocks())
    assert [step for block in blocks for step in block.steps] == [0, 10, 20]
    assert [value for block in blocks for value in block.values] == [0.0, 0.5, 1.0]
    assert source.problems == []
