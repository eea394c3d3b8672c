"""Packages that ask for versions they do not need: a lock file names them, and only they are not asked."""

from pathlib import Path

import pytest

from mosaic.catalog.progress import Progress
from mosaic.catalog.sources import stale_pins
from mosaic.catalog.uv import InstallFailed, Uv

COMPLAINT = "The package `{}` requires `numpy<1`, but `1.26.4` is installed"


def uv_that_says(folder: Path, *lines: str, code: int = 0) -> Uv:
    """A uv of which only the answer is known."""
    output = "\n".join(f"echo '{line}'" for line in lines)
    path = folder / "uv"
    path.write_text(f"#!/bin/sh\n{output}\nexit {code}\n")
    path.chmod(0o700)
    return Uv(path, Progress())


def test_a_lock_file_names_them_in_a_comment(tmp_path):
    lock = tmp_path / "default.txt"
    lock.write_text("# stale pins: cleanrl Procgen_Mirror\nnumpy==1.26.4\n")

    assert stale_pins(lock) == {"cleanrl", "procgen-mirror"}


def test_their_complaints_are_passed_over_and_no_others(tmp_path):
    uv = uv_that_says(tmp_path, "Checked 3 packages", COMPLAINT.format("cleanrl"), COMPLAINT.format("scipy"), code=1)

    uv.check(Path("python"), {"cleanrl", "scipy"})
    with pytest.raises(InstallFailed, match="`scipy` requires `numpy<1`") as refused:
        uv.check(Path("python"), {"cleanrl"})

    assert "`cleanrl` requires" not in str(refused.value)


def test_a_complaint_that_is_passed_over_is_not_shown_either(tmp_path):
    uv, shown = uv_that_says(tmp_path, COMPLAINT.format("cleanrl"), COMPLAINT.format("scipy"), code=1), []
    uv.progress.note = shown.append

    uv.check(Path("python"), {"cleanrl", "scipy"})
    assert shown == []
    with pytest.raises(InstallFailed):
        uv.check(Path("python"), {"cleanrl"})

    assert shown == [COMPLAINT.format("scipy")]


def test_a_check_that_fails_for_another_reason_is_a_failure(tmp_path):
    with pytest.raises(InstallFailed, match="no such folder"):
        uv_that_says(tmp_path, "error: no such folder", code=2).check(Path("python"), {"cleanrl"})


def test_an_environment_without_complaints_is_fine(tmp_path):
    uv_that_says(tmp_path, "Checked 3 packages").check(Path("python"), ())
