import os
import subprocess
import sys

import pytest

from mosaic.model.errors import BadRoot
from mosaic.model.root import NETWORK_FILESYSTEMS, check_root, filesystem_of, machine_mark
from mosaic.model.rundir import StateRoot


@pytest.fixture
def root(tmp_path):
    return StateRoot(tmp_path / "deep" / "state")


@pytest.fixture
def mounts(tmp_path):
    def write(*lines):
        path = tmp_path / "mounts"
        path.write_text("".join(f"dev {line} rw 0 0\n" for line in lines))
        return path

    return write


def test_a_new_root_gets_folders_that_other_users_cannot_enter(root):
    check_root(root)

    folders = [root.path, *(path for path in root.path.rglob("*") if path.is_dir())]
    assert root.area("evals") in folders
    assert {oct(folder.stat().st_mode & 0o777) for folder in folders} == {"0o700"}


def test_a_root_is_accepted_again_by_its_own_machine(root):
    check_root(root)
    check_root(root)

    assert root.machine_id.read_text().strip() == machine_mark()


def test_another_machines_root_is_refused(root):
    check_root(root, machine="the other one")

    with pytest.raises(BadRoot, match=r"belongs to another machine.*MOSAIC_HOME"):
        check_root(root)

    assert root.machine_id.read_text().strip() == "the other one"


def test_access_of_other_users_to_the_owners_folder_is_removed(root):
    root.path.mkdir(parents=True)
    root.path.chmod(0o755)

    check_root(root)

    assert root.path.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("kind", sorted(NETWORK_FILESYSTEMS))
def test_a_network_file_system_is_refused_before_anything_is_written(root, mounts, kind):
    table = mounts("/ ext4", f"{root.path.parent.parent} {kind}")

    with pytest.raises(BadRoot, match=f"network file system \\({kind}\\).*MOSAIC_HOME"):
        check_root(root, mounts=table)

    assert not root.path.exists()


def test_the_innermost_and_last_mount_determines_the_file_system(tmp_path, mounts):
    home = tmp_path / "my home"
    escaped = str(home).replace(" ", "\\040")

    assert filesystem_of(home / "x", mounts("/ ext4")) == "ext4"
    assert filesystem_of(home / "x", mounts("/ ext4", f"{escaped} nfs", f"{tmp_path} xfs", "/elsewhere cifs")) == "nfs"
    assert filesystem_of(tmp_path / "x", mounts("/ ext4", f"{tmp_path} nfs", f"{tmp_path} tmpfs")) == "tmpfs"


def test_a_link_to_a_network_file_system_is_followed(tmp_path, mounts):
    (tmp_path / "net").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "net")
    table = mounts("/ ext4", f"{tmp_path}/net nfs4")

    with pytest.raises(BadRoot, match="nfs4"):
        check_root(StateRoot(tmp_path / "link" / "state"), mounts=table)


def test_a_file_in_place_of_the_folder_is_reported(tmp_path):
    (tmp_path / "state").write_text("")

    with pytest.raises(BadRoot, match=r"not a folder but a file.*MOSAIC_HOME"):
        check_root(StateRoot(tmp_path / "state" / "mosaic"))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_folder_of_another_user_is_refused_and_left_alone(root):
    root.path.mkdir(parents=True)
    os.chown(root.path, 12345, -1)

    with pytest.raises(BadRoot, match=r"belongs to user 12345, and you are.*MOSAIC_HOME"):
        check_root(root)

    assert list(root.path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_refused():
    # /proc is the one place where neither root nor an ordinary user can create a folder.
    with pytest.raises(BadRoot, match=r"cannot be created or written.*MOSAIC_HOME"):
        check_root(StateRoot("/proc/mosaic"))


READ_ONLY = """
mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" || exit 77
exec "$2" -c "
import sys
from mosaic.model.errors import BadRoot
from mosaic.model.root import check_root
from mosaic.model.rundir import StateRoot
try:
    check_root(StateRoot(sys.argv[1]))
except BadRoot as error:
    print(error)
" "$1"
"""


def test_a_read_only_root_is_refused(root):
    check_root(root)
    # A mount in a namespace of our own is read-only for root as well as for an ordinary user.
    command = [
        "unshare",
        "--user",
        "--map-root-user",
        "--mount",
        "sh",
        "-c",
        READ_ONLY,
        "sh",
        str(root.path),
        sys.executable,
    ]
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except FileNotFoundError:
        pytest.skip("no unshare here")
    if done.returncode != 0:
        pytest.skip(f"no namespaces here: {done.stderr}")

    assert f"{root.path} cannot be written (Read-only file system)" in done.stdout
    assert "Set MOSAIC_HOME" in done.stdout
