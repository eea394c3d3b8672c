"""Stale pins: a lock file lists packages that require versions they do not need, and their complaints are ignored."""

from pathlib import Path

import pytest

from mosaic.catalog.progress import Progress
from mosaic.catalog.sources import stale_pins
from mosaic.catalog.uv import InstallFailed, Uv

COMPLAINT = "The package `{}` requires `numpy<1`, but `1.26.4` is installed"


def fake_uv(folder: Path, *lines: str, code: int = 0) -> Uv:
    """A fake uv that prints these lines and exits with this code."""
    output = "\n".join(f"echo '{line}'" for line in lines)
    path = folder / "uv"
    path.write_text(f"#!/bin/sh\n{output}\nexit {code}\n")
    path.chmod(0o700)
    return Uv(path, Progress())


def test_a_lock_file_lists_stale_pins_in_a_comment(tmp_path):
    lock = tmp_path / "default.txt"
    lock.write_text("# stale pins: cleanrl Procgen_Mirror\nnumpy==1.26.4\n")

    assert stale_pins(lock) == {"cleanrl", "procgen-mirror"}


def test_only_complaints_of_listed_packages_are_ignored(tmp_path):
    uv = fake_uv(tmp_path, "Checked 3 packages", COMPLAINT.format("cleanrl"), COMPLAINT.format("scipy"), code=1)

    uv.check(Path("python"), {"cleanrl", "scipy"})
    with pytest.raises(InstallFailed, match="`scipy` requires `numpy<1`") as refused:
        uv.check(Path("python"), {"cleanrl"})

    assert "`cleanrl` requires" not in str(refused.value)


def test_an_ignored_complaint_is_not_shown(tmp_path):
    uv, shown = fake_uv(tmp_path, COMPLAINT.format("cleanrl"), COMPLAINT.format("scipy"), code=1), []
    uv.progress.note = shown.append

    uv.check(Path("python"), {"cleanrl", "scipy"})
    assert shown == []
    with pytest.raises(InstallFailed):
        uv.check(Path("python"), {"cleanrl"})

    assert shown == [COMPLAINT.format("scipy")]


def test_a_check_that_fails_for_another_reason_is_a_failure(tmp_path):
    with pytest.raises(InstallFailed, match="no such folder"):
        fake_uv(tmp_path, "error: no such folder", code=2).check(Path("python"), {"cleanrl"})


def test_an_environment_without_complaints_is_fine(tmp_path):
    fake_uv(tmp_path, "Checked 3 packages").check(Path("python"), ())
