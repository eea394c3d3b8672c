"""commands.jsonl, as the daemon writes it and as a worker may have changed it."""

import json
import os
import tracemalloc
from pathlib import Path

import pytest

from mosaic.daemon import command_log
from mosaic.daemon.command_log import MAX_COMMAND_BYTES, Command, CommandLog, read_command
from mosaic.model.errors import BadCommand, CommandTaken, NoCommands, RunIsOver, StoreUnavailable


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "commands.jsonl"
    path.touch()
    return path


def open_log(path: Path) -> CommandLog:
    return CommandLog(path, "01RUN")


def command(number: int, **values: object) -> Command:
    return Command(f"id-{number}", {"cmd": "step", **values})


def test_commands_are_numbered_lines(path: Path) -> None:
    log = open_log(path)

    assert [log.add(command(number, count=number)) for number in (1, 2)] == [(1, False), (2, False)]
    assert [json.loads(line) for line in path.read_text().splitlines()] == [
        {"seq": 1, "id": "id-1", "cmd": "step", "count": 1},
        {"seq": 2, "id": "id-2", "cmd": "step", "count": 2},
    ]


def test_the_next_daemon_continues_and_knows_every_id(path: Path) -> None:
    open_log(path).add(command(1, text="é\n\u2028"))

    log = open_log(path)

    assert log.add(command(1, text="é\n\u2028")) == (1, True)
    assert log.add(command(2)) == (2, False)
    assert path.read_bytes().count(b"\n") == 2


def test_an_id_stands_for_one_command(path: Path) -> None:
    open_log(path).add(command(1, count=1))

    with pytest.raises(CommandTaken, match="the command id 'id-1' belongs to command 1"):
        open_log(path).add(command(1, count=2))


def test_a_run_that_is_over_refuses_only_new_commands(path: Path) -> None:
    log = open_log(path)
    log.add(command(1))

    def refuse() -> None:
        raise RunIsOver("01RUN", "TERMINATED")

    with pytest.raises(RunIsOver):
        log.add(command(2), refuse)
    assert log.add(command(1), refuse) == (1, True)
    assert path.read_text().count("\n") == 1


def test_the_order_of_keys_does_not_make_another_command(path: Path) -> None:
    log = open_log(path)
    log.add(Command("a", {"cmd": "act", "lane": 1, "action": 2}))

    assert log.add(Command("a", {"action": 2, "cmd": "act", "lane": 1})) == (1, True)


@pytest.mark.parametrize("torn", [b"{", b'{"seq": 2, "id": "id-2", "cmd": "step"}', b"\0" * 100])
def test_half_a_line_of_a_crash_is_cut_off_before_the_next_append(path: Path, torn: bytes) -> None:
    open_log(path).add(command(1))
    with open(path, "ab") as file:
        file.write(torn)

    log = open_log(path)

    assert log.add(command(3)) == (2, False)
    assert [json.loads(line)["id"] for line in path.read_text().splitlines()] == ["id-1", "id-3"]


@pytest.mark.parametrize(
    "line", ["garbage", "{}", "[]", '{"seq": 3, "id": "x"}', '{"seq": 2, "id": "id-1"}', "[" * 9000]
)
def test_a_line_that_the_daemon_did_not_write_is_refused(path: Path, line: str) -> None:
    open_log(path).add(command(1))
    with open(path, "a") as file:
        file.write(line + "\n")

    with pytest.raises(NoCommands, match=r"can no longer be sent commands: commands\.jsonl in its control folder has "):
        open_log(path).add(command(2))


def test_a_file_that_changed_since_the_last_one_is_refused(path: Path) -> None:
    log = open_log(path)
    log.add(command(1))
    path.write_text("")

    with pytest.raises(NoCommands, match="was changed by another program"):
        log.add(command(2))
    assert path.read_text() == ""


def test_a_file_in_the_place_of_the_first_is_refused(path: Path) -> None:
    log = open_log(path)
    log.add(command(1))
    text = path.read_text()
    path.rename(f"{path}.old")
    path.write_text(text)

    with pytest.raises(NoCommands, match="was changed by another program"):
        log.add(command(2))


@pytest.mark.parametrize("planted", ["nothing", "link", "broken link", "fifo", "folder", "second name", "socket"])
def test_anything_but_the_file_of_the_submit_is_refused_at_once(path: Path, planted: str) -> None:
    path.unlink()
    elsewhere = path.parent / "elsewhere"
    elsewhere.touch()
    make = {
        "nothing": lambda: None,
        "link": lambda: path.symlink_to(elsewhere),
        "broken link": lambda: path.symlink_to(path.parent / "missing"),
        "fifo": lambda: os.mkfifo(path),
        "folder": path.mkdir,
        "second name": lambda: os.link(elsewhere, path),
        "socket": lambda: os.mknod(path, 0o140600),
    }
    make[planted]()

    with pytest.raises(NoCommands, match=r"can no longer be sent commands: commands\.jsonl in its control folder "):
        open_log(path).add(command(1))
    assert elsewhere.read_text() == ""
    assert not (path.parent / "missing").exists()


def test_a_file_of_another_user_is_refused(path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a file away")
    os.chown(path, 12345, -1)

    with pytest.raises(NoCommands, match="is not the file that MOSAIC made"):
        open_log(path).add(command(1))


def test_a_huge_file_is_refused_without_reading_it(path: Path) -> None:
    os.truncate(path, 1 << 40)

    with pytest.raises(NoCommands, match="has 1,099,511,627,776 bytes, which MOSAIC did not write"):
        open_log(path).add(command(1))


@pytest.mark.parametrize("text", [b"\n" * 10_000_000, b"[" + b"{}," * 1_000_000 + b"{}]\n"], ids=["lines", "one line"])
def test_a_file_that_would_fill_the_memory_is_refused(path: Path, text: bytes) -> None:
    path.write_bytes(text)

    tracemalloc.start()
    with pytest.raises(NoCommands, match=r"has more than 100,000 lines|has a line 1 that MOSAIC did not write"):
        open_log(path).add(command(1))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak < 3 * len(text)


def test_a_run_takes_a_limited_number_of_commands(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command_log, "MOST_COMMANDS", 2)
    log = open_log(path)
    log.add(command(1))
    log.add(command(2))

    with pytest.raises(NoCommands, match=r"has received the most that a run takes \(2 commands or 64 MiB\)"):
        log.add(command(3))
    assert log.add(command(2)) == (2, True)


def test_a_full_disk_leaves_no_part_of_a_line(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = open_log(path)
    log.add(command(1))
    real_write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: real_write(fd, data[:10]))

    with pytest.raises(StoreUnavailable, match="Free some disk space, then send it again with the same id"):
        log.add(command(2))
    monkeypatch.undo()

    assert log.add(command(2)) == (2, False)
    assert [json.loads(line)["seq"] for line in path.read_text().splitlines()] == [1, 2]


def test_a_command_whose_fsync_failed_is_answered_only_when_it_is_durable(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = open_log(path)
    synced: list[int] = []

    def fail(_: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(StoreUnavailable):
        log.add(command(1))
    with pytest.raises(StoreUnavailable):
        log.add(command(1))
    monkeypatch.setattr(os, "fsync", synced.append)

    assert log.add(command(1)) == (1, True)
    assert len(synced) == 1
    assert path.read_text().count("\n") == 1


@pytest.mark.parametrize(
    ("command_id", "text", "why"),
    [
        ("a", "", "The command is not valid JSON"),
        ("a", "{", "The command is not valid JSON"),
        ("a", '{"cmd": "step", "x": NaN}', "NaN is not a JSON value"),
        ("a", "[" * 60_000, "The command is not valid JSON"),
        ("a", "[]", "must be a JSON object"),
        ("a", '"pause"', "must be a JSON object"),
        ("a", "{}", "cmd: missing"),
        ("a", '{"cmd": 3}', "cmd: missing, or not a string"),
        ("a", '{"cmd": "step", "seq": 1}', "seq: is set by MOSAIC"),
        ("a", '{"cmd": "step", "id": 1}', "id: is set by MOSAIC"),
        ("a", json.dumps({"cmd": "x" * MAX_COMMAND_BYTES}), "the maximum is 65,536"),
        ("a", json.dumps({"cmd": "é" * 20_000}, ensure_ascii=False), "the maximum is 65,536"),
        ("", '{"cmd": "step"}', "command_id: must have 1 to 64"),
        ("a" * 65, '{"cmd": "step"}', "command_id: must have 1 to 64"),
        ("a\n", '{"cmd": "step"}', "command_id: must have 1 to 64"),
    ],
)
def test_a_bad_command_is_refused_in_words(command_id: str, text: str, why: str) -> None:
    with pytest.raises(BadCommand, match=why):
        read_command(command_id, text)
