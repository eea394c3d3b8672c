import pytest

from mosaic.catalog.torch import arguments_for, check_build, refuse_unknown_build
from mosaic.catalog.uv import InstallFailed, Uv, find_uv


def test_a_build_of_torch_is_asked_of_pytorchs_own_index():
    assert arguments_for("", {}) == ()
    assert arguments_for("cpu", {}) == ("--torch-backend", "cpu")
    assert arguments_for("cu128", {"UV_FIND_LINKS": "/nowhere"}) == ("--torch-backend", "cu128")
    assert arguments_for("cuda", {}) == ("--torch-backend", "auto")


def test_a_wheel_of_that_build_in_a_folder_of_the_users_needs_no_index(tmp_path):
    (tmp_path / "torch-2.13.0+cpu-cp311-cp311-linux_x86_64.whl").touch()
    links = {"UV_FIND_LINKS": f"https://example.org/wheels {tmp_path}"}

    assert arguments_for("cpu", links) == ()
    assert arguments_for("cu128", links) == ("--torch-backend", "cu128")


def test_a_build_that_does_not_exist_is_refused_before_anything_is_made(tmp_path):
    for build in ("", "cpu", "auto", "cu128", "rocm6.4"):
        refuse_unknown_build(build)
    with pytest.raises(InstallFailed, match="there is no build 'gpu' of torch"):
        refuse_unknown_build("gpu")
    with pytest.raises(InstallFailed, match="no NVIDIA driver"):
        refuse_unknown_build("cuda", driver=tmp_path / "none")


@pytest.mark.parametrize(("asked", "version"), [("cpu", "2.13.0"), ("cpu", "2.13.0+cu128"), ("cuda", "2.13.0+cpu")])
def test_another_build_than_the_one_asked_for_is_refused(asked, version):
    with pytest.raises(InstallFailed, match="is not the build"):
        check_build(asked, version, Uv(find_uv(), print))


def test_the_build_that_was_asked_for_is_taken_and_a_wish_for_nothing_is_told():
    said = []
    uv = Uv(find_uv(), said.append)

    for asked, version in (("cpu", "2.13.0+cpu"), ("cuda", "2.13.0+cu128"), ("auto", "2.13.0"), ("", "2.13.0")):
        check_build(asked, version, uv)
    check_build("cpu", "", uv)

    assert said == ["The worker needs no torch; --torch cpu changes nothing."]
