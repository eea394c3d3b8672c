"""The parts of the holder that can be tested without a holder."""

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hold_run import eventually

from mosaic.hold import kernel, spool
from mosaic.hold.ending import AUTOPSY_S, FORCE_S, Ending, Step
from mosaic.hold.init import GO
from mosaic.hold.launch import BadLaunch, read_launch
from mosaic.hold.spawn import Command
from mosaic.hold.spool import RESERVE_BYTES, RETRY_S, Drain, SpoolFile
from mosaic.hold.tree import NAMESPACE, SUBREAPER, USER_NAMESPACE, CannotHold, Means, start_tree, strongest_first
from mosaic.model.rundir import RunDir

# Ending


def steps_until(ending: Ending, end: float) -> list[tuple[float, Step]]:
    """Every step with the time at which it becomes due."""
    steps = []
    while (at := ending.next_at) is not None and at <= end:
        steps += [(at, step) for step in ending.due(at)]
    return steps


def test_a_cancel_terminates_then_kills_then_gives_up() -> None:
    ending = Ending(grace_s=10, unkillable_s=60)

    ending.begin("cancel", 100)

    assert steps_until(ending, 1000) == [
        (100, Step.TERMINATE),
        (110, Step.KILL),
        (110 + FORCE_S, Step.FORCE),
        (170, Step.GIVE_UP),
    ]


def test_a_hang_starts_with_an_autopsy() -> None:
    ending = Ending(grace_s=10, unkillable_s=60)

    ending.begin("hang", 100)

    assert steps_until(ending, 105) == [(100, Step.AUTOPSY), (100 + AUTOPSY_S, Step.TERMINATE)]


def test_the_time_limit_starts_an_end_automatically() -> None:
    ending = Ending(grace_s=10, unkillable_s=60)

    ending.limit(100, 3600)

    assert ending.next_at == 3700
    assert ending.due(3699) == []
    assert ending.due(3700) == [Step.TERMINATE]
    assert ending.cause == "time limit"


def test_the_first_cause_wins() -> None:
    ending = Ending(grace_s=10, unkillable_s=60)
    ending.begin("time limit", 100)
    ending.due(100)

    ending.begin("cancel", 105)

    assert ending.cause == "time limit"
    assert ending.next_at == 110


def test_after_a_worker_exited_there_is_no_cause_but_its_tree_is_still_swept() -> None:
    ending = Ending(grace_s=10, unkillable_s=60)
    ending.limit(100, 3600)

    ending.worker_ended(200)
    ending.begin("cancel", 201)

    assert ending.cause is None
    assert [step for _, step in steps_until(ending, 1000)] == [Step.KILL, Step.FORCE, Step.GIVE_UP]


def test_without_a_limit_nothing_is_ever_due() -> None:
    ending = Ending(grace_s=10, unkillable_s=60)

    ending.limit(100, None)

    assert ending.next_at is None
    assert ending.due(1e12) == []


# launch.json

LAUNCH: dict[str, Any] = {"run_id": "r", "attempt": 1, "argv": ["true"], "env": {"A": "b"}, "cwd": "/"}


def test_missing_fields_of_a_launch_get_defaults() -> None:
    launch = read_launch(LAUNCH)

    assert (launch.time_limit_s, launch.grace_s, launch.pipe, launch.hold) == (None, 10.0, False, "auto")
    assert (launch.tailer_argv, launch.unkillable_s) == ([], 60.0)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("run_id", 5),
        ("attempt", "1"),
        ("argv", []),
        ("argv", ["a", 1]),
        ("argv", ["a\0b"]),
        ("env", {"A": 1}),
        ("env", {"A=B": "c"}),
        ("cwd", ""),
        ("time_limit_s", float("nan")),
        ("grace_s", -1),
        ("hold", "tightly"),
    ],
)
def test_an_invalid_field_is_named(field: str, value: object) -> None:
    with pytest.raises(BadLaunch, match=field):
        read_launch({**LAUNCH, field: value})


def test_a_secret_in_the_environment_is_not_in_the_message() -> None:
    with pytest.raises(BadLaunch) as caught:
        read_launch({**LAUNCH, "env": {"KEY": ["secret"]}})

    assert "secret" not in str(caught.value)


# Means to hold the tree


def test_the_strongest_means_are_tried_first() -> None:
    assert strongest_first("auto", uid=0) == [NAMESPACE, USER_NAMESPACE, SUBREAPER]
    assert strongest_first("auto", uid=1000) == [USER_NAMESPACE, SUBREAPER]
    assert strongest_first("subreaper", uid=0) == [SUBREAPER]


def test_the_next_means_is_tried_when_one_is_refused(tmp_path: Path) -> None:
    output = os.open(tmp_path / "out", os.O_WRONLY | os.O_CREAT)
    worker = Command(["echo", "hello"], {"PATH": os.environ["PATH"]}, "/", output, output)
    impossible = Means("impossible namespace", flags=1, proof="")
    messages: list[str] = []

    tree = start_tree([impossible, SUBREAPER], RunDir(tmp_path), worker, sweep_s=1, say=messages.append)
    tree.request(GO)
    eventually(tree.reap_root, "the end of the tree")

    assert tree.means is SUBREAPER
    assert "impossible namespace: unshare: Invalid argument" in messages[0]
    assert (tmp_path / "out").read_text() == "hello\n"
    assert [report["status"] for report in tree.read_reports()] == [0]


def test_a_machine_without_any_means_is_an_error(tmp_path: Path) -> None:
    worker = Command(["true"], {}, "/", 1, 2)

    with pytest.raises(CannotHold, match="no means"):
        start_tree(
            [Means("impossible", flags=1, proof="")], RunDir("/nowhere/runs/one"), worker, sweep_s=1, say=lambda _: None
        )


# The spool


def test_a_spool_file_is_appended_to_and_protected(tmp_path: Path) -> None:
    first = SpoolFile(tmp_path / "log")
    os.write(first.fd, b"one ")
    second = SpoolFile(tmp_path / "log")
    os.write(second.fd, b"two")

    assert (tmp_path / "log").read_bytes() == b"one two"
    assert (tmp_path / "log").stat().st_mode & 0o777 == 0o400
    assert not os.get_inheritable(first.fd)


def test_a_spool_that_is_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "log").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(OSError, match="symbolic links"):
        SpoolFile(tmp_path / "log")


def test_the_reserve_is_beyond_the_end_and_is_released(tmp_path: Path) -> None:
    file = SpoolFile(tmp_path / "log")
    os.write(file.fd, b"text")
    try:
        kernel.reserve(file.fd, 0, 4096)
    except OSError:
        pytest.skip("this file system has no reserve")

    file.reserve()
    reserved = os.fstat(file.fd).st_blocks * 512
    file.release()

    assert reserved >= RESERVE_BYTES
    assert os.fstat(file.fd).st_blocks * 512 <= 64 << 10
    assert (tmp_path / "log").read_bytes() == b"text"


def test_the_reserve_moves_ahead_only_when_half_of_it_is_used(tmp_path: Path) -> None:
    file = SpoolFile(tmp_path / "log")
    file.reserve()
    before = os.fstat(file.fd).st_blocks

    os.write(file.fd, b"little")
    file.reserve()
    assert os.fstat(file.fd).st_blocks == before

    os.write(file.fd, bytes(RESERVE_BYTES * 3 // 4))
    file.reserve()
    assert os.fstat(file.fd).st_blocks > before or before == 0


def test_a_full_disk_makes_the_drain_wait_and_lose_nothing(tmp_path: Path) -> None:
    full = SimpleNamespace(fd=os.open("/dev/full", os.O_WRONLY))
    drain = Drain(cast(SpoolFile, full))
    os.write(drain.sink, b"line\n")

    drain.pump(now=100)
    assert drain.retry_at == 100 + RETRY_S
    assert not drain.wants_more

    full.fd = SpoolFile(tmp_path / "log").fd  # space was freed
    os.write(drain.sink, b"next\n")
    os.close(drain.sink)
    drain.pump(now=101)

    assert drain.is_empty
    assert drain.retry_at is None
    assert (tmp_path / "log").read_bytes() == b"line\nnext\n"


def test_endless_output_does_not_block_the_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool, "_CHUNK", 4)
    monkeypatch.setattr(spool, "_CHUNKS_AT_ONCE", 2)
    drain = Drain(SpoolFile(tmp_path / "log"))
    os.write(drain.sink, b"a line of more than two chunks")

    drain.pump(now=0)

    assert (tmp_path / "log").read_bytes() == b"a line o"  # what was read is written
    assert drain.wants_more
