"""The checkpoint of a run that is used: the newest one that exists and is intact."""

import json
import zipfile

import pytest

from mosaic.model.rundir import RunDir
from mosaic.submit.checkpoints import Checkpoint, Nothing, best, damage, known, newest, payload_of


@pytest.fixture
def rundir(tmp_path):
    rundir = RunDir(tmp_path / "run")
    rundir.make()
    return rundir


def put(rundir, name, data=b'{"step": 1}'):
    path = rundir.checkpoints / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return str(path)


def put_folder(rundir, name, **parts):
    for part, data in parts.items():
        put(rundir, f"{name}/{part}", data)
    sizes = {part: {"bytes": len(data)} for part, data in parts.items()}
    put(rundir, f"{name}/commit.json", json.dumps({"parts": sizes}).encode())
    return str(rundir.checkpoints / name)


def cut_zip(tmp_path):
    with zipfile.ZipFile(tmp_path / "whole.zip", "w") as archive:
        archive.writestr("weights", b"x" * 4000)
    return (tmp_path / "whole.zip").read_bytes()[:2000]


def test_the_newest_is_chosen_whether_its_path_is_relative_or_absolute(rundir):
    put(rundir, "one.json")
    two = put(rundir, "two.json")

    saved = [{"path": "checkpoints/two.json", "step": 200}, {"path": str(rundir.checkpoints / "one.json"), "step": 100}]

    assert newest(rundir, saved) == Checkpoint(two, 200)
    assert newest(rundir, saved[1:]).step == 100


def test_damaged_checkpoints_are_skipped_with_a_note(rundir, tmp_path):
    good = put(rundir, "good.pt", b"\x80\x02weights")
    put(rundir, "empty.pt", b"")
    put(rundir, "zeros.pt", bytes(600))
    put(rundir, "cut.pt", cut_zip(tmp_path))
    put(rundir, "half.json", b'{"step": ')
    (tmp_path / "elsewhere.pt").write_bytes(b"x")

    names = ("checkpoints/gone.pt", "checkpoints/empty.pt", "checkpoints/zeros.pt", "checkpoints/cut.pt")
    paths = (*names, "checkpoints/half.json", str(tmp_path / "elsewhere.pt"), good)
    found = newest(rundir, [{"path": path, "step": 1} for path in paths])

    assert found.path == good
    assert found.notes == (
        "gone.pt no longer exists",
        "empty.pt is empty",
        "zeros.pt contains only zeros",
        "cut.pt is truncated",
        "half.json is not valid JSON",
        "elsewhere.pt is outside the run's folder",
    )


def test_a_folder_is_checked_against_its_commit_json(rundir):
    whole = put_folder(rundir, "epoch-1", **{"agent.npz": b"12345"})
    hurt = put_folder(rundir, "epoch-2", **{"agent.npz": b"12345"})
    put(rundir, "epoch-2/agent.npz", b"123")

    assert damage(rundir, whole) == ""
    assert damage(rundir, hurt) == "is damaged (agent.npz is missing or has another size)"
    assert newest(rundir, [{"path": hurt}, {"path": whole}]).path == whole

    put(rundir, "epoch-2/commit.json", b'{"parts": 3}')
    assert damage(rundir, hurt) == "is damaged (commit.json cannot be read)"


def test_a_link_out_of_the_folder_is_not_followed(rundir, tmp_path):
    (tmp_path / "secret").write_text("x")
    (rundir.checkpoints / "link.pt").symlink_to(tmp_path / "secret")

    assert damage(rundir, "checkpoints/link.pt") == "is outside the run's folder"


def test_the_best_one_is_not_the_newest(rundir):
    put(rundir, "best/state.json")

    assert newest(rundir, [{"path": "checkpoints/best/state.json", "step": 5, "best": True}]) == Nothing()


@pytest.mark.parametrize("named", ["state.json", "checkpoints/best/state.json"])
def test_best_json_names_a_file_beside_it_or_in_the_run(rundir, named):
    state = put(rundir, "best/state.json")
    put(rundir, "best/best.json", json.dumps({"path": named, "step": 40, "score": 1.5, "version": 1}).encode())

    assert best(rundir) == Checkpoint(state, 40)


@pytest.mark.parametrize("data", [b"", b"[1]", b'"text"', b"9" * 5000, b"null"])
def test_a_payload_that_is_not_an_object_is_read_as_empty(data):
    assert payload_of(data) == {}


def test_invalid_paths_are_ignored(rundir):
    good = put(rundir, "good.json")

    found = newest(rundir, [{"path": "a\0b"}, {"path": 7}, {}, {"path": good, "step": True}])

    assert found == Checkpoint(good)
    assert known(rundir, good, [{"path": "a\0b"}]) == Checkpoint(good)


@pytest.mark.parametrize(
    "text", [b"", b"[]", b'{"path": 3}', b'{"path": "a\\u0000b"}', b'{"path": "../../../../etc/passwd"}']
)
def test_a_best_json_that_names_no_file_of_the_run_is_ignored(rundir, text):
    put(rundir, "best/best.json", text)

    assert isinstance(best(rundir), Nothing)


def test_the_step_of_a_path_is_the_one_that_the_run_reported(rundir):
    path = put(rundir, "one.json")

    assert known(rundir, path, [{"path": "checkpoints/one.json", "step": 7}]).step == 7
    assert known(rundir, path, []).step is None


@pytest.mark.parametrize("step", [-1, 2**63, 10**30, True, 1.5, "7"])
def test_a_step_too_large_for_a_database_is_ignored(rundir, step):
    put(rundir, "one.json")

    assert newest(rundir, [{"path": "checkpoints/one.json", "step": step}]).step is None
