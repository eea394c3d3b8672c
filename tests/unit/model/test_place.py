"""A root knows where it was made."""

import os
import subprocess
import sys

import pytest

from mosaic.model.errors import BadRoot, WrongPlace
from mosaic.model.place import Place, Shift, recorded_place, refuse_shifted, shift_of
from mosaic.model.root import check_root
from mosaic.model.rundir import StateRoot


@pytest.fixture
def root(tmp_path):
    root = StateRoot(tmp_path / "made")
    check_root(root)
    root.registry.touch()
    return root


def copied(root, target):
    subprocess.run(["cp", "-a", root.path, target], check=True)
    return StateRoot(target)


def test_a_new_root_records_its_place(root):
    assert recorded_place(root) == Place(str(root.path), root.path.stat().st_ino)
    assert shift_of(root) is None


def test_a_root_of_an_older_version_is_recorded_at_the_next_start(root):
    root.place.unlink()

    refuse_shifted(root)
    check_root(root)

    assert recorded_place(root) == Place.of(root)


def test_a_copy_names_the_original_and_what_to_do(root, tmp_path):
    copy = copied(root, tmp_path / "copy")

    assert shift_of(copy) is Shift.COPIED
    with pytest.raises(WrongPlace, match=f"{copy.path} is a copy of {root.path}.*mosaic root adopt --copy"):
        check_root(copy)


def test_a_copy_whose_original_is_gone_is_still_a_copy(root, tmp_path):
    copy = copied(root, tmp_path / "copy")
    root.path.rename(tmp_path / "elsewhere")

    assert shift_of(copy) is Shift.COPIED


def test_a_moved_root_names_both_places(root, tmp_path):
    moved = StateRoot(root.path.rename(tmp_path / "moved"))

    assert shift_of(moved) is Shift.MOVED
    with pytest.raises(WrongPlace, match=f"{moved.path} was moved here from {root.path}.*mosaic root adopt --moved"):
        refuse_shifted(moved)


def test_a_moved_root_whose_old_path_has_a_new_root_is_moved(root, tmp_path):
    moved = StateRoot(root.path.rename(tmp_path / "moved"))
    check_root(root)
    root.registry.touch()

    assert shift_of(moved) is Shift.MOVED
    assert shift_of(root) is None


def test_a_folder_that_was_restored_at_the_same_path_is_refused(root, tmp_path):
    root.path.rename(tmp_path / "backup")
    copied(StateRoot(tmp_path / "backup"), root.path)

    with pytest.raises(WrongPlace, match=r"restored or copied one.*mosaic root adopt --copy"):
        refuse_shifted(root)


def test_a_root_that_was_moved_away_and_back_is_at_its_place(root, tmp_path):
    root.path.rename(tmp_path / "away").rename(root.path)

    assert shift_of(root) is None


def test_a_copy_that_never_had_a_run_is_accepted_and_recorded(root, tmp_path):
    # As in a container image with installed workers.
    root.registry.unlink()
    copy = copied(root, tmp_path / "copy")

    check_root(copy)

    assert recorded_place(copy) == Place.of(copy)


def test_a_copy_with_run_folders_but_no_registry_is_refused(root, tmp_path):
    root.registry.unlink()
    root.run("evals", "01JCQ000000000000000000000").make()

    with pytest.raises(WrongPlace):
        check_root(copied(root, tmp_path / "copy"))


def test_a_symbolic_link_leads_to_the_same_place(root, tmp_path):
    (tmp_path / "link").symlink_to(root.path)

    assert shift_of(StateRoot(tmp_path / "link")) is None


BIND = """
mkdir "$2" && mount --bind "$1" "$2" || exit 77
exec "$3" -c "
import sys
from mosaic.model.place import shift_of
from mosaic.model.rundir import StateRoot
print(shift_of(StateRoot(sys.argv[1])))
" "$2"
"""


def test_a_bind_mount_shows_the_same_place(root, tmp_path):
    command = [
        "unshare",
        "--map-root-user",
        "--mount",
        "sh",
        "-c",
        BIND,
        "sh",
        root.path,
        tmp_path / "b",
        sys.executable,
    ]

    done = subprocess.run(command, capture_output=True, text=True)

    if done.returncode in (1, 77):
        pytest.skip(f"no mount namespaces here: {done.stderr}")
    assert done.stdout == "None\n", done.stderr


@pytest.mark.parametrize("content", [b"", b"\xff\x00", b"[]", b"{}", b'{"path": 3, "inode": 1}', b"x" * 100_000])
def test_a_damaged_record_is_written_again(root, content):
    root.place.write_bytes(content)

    check_root(root)

    assert recorded_place(root) == Place.of(root)


@pytest.mark.parametrize("name", ["place", "machine_id"])
@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/zero"), os.mkdir])
def test_something_else_in_place_of_a_record_is_replaced_or_named(root, name, make):
    path = getattr(root, name)
    path.unlink()
    make(path)

    if name == "place" and not path.is_dir():
        check_root(root)
        assert recorded_place(root) == Place.of(root)
    else:
        with pytest.raises(BadRoot, match=f"{path} cannot be"):
            check_root(root)


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"x" * 100_000])
def test_a_machine_mark_that_is_no_text_is_named(root, content):
    root.machine_id.write_bytes(content)

    with pytest.raises(BadRoot, match=f"{root.machine_id} cannot be read.*delete that file"):
        check_root(root)
