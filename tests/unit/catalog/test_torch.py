import zipfile

import pytest

from mosaic.catalog.progress import Progress
from mosaic.catalog.torch import arguments_for, check_build, installed_build, is_build, refuse_unknown_build
from mosaic.catalog.uv import InstallFailed


class Notes(Progress):
    def __init__(self):
        self.notes = []

    def note(self, words):
        self.notes.append(words)


def planned(version):
    return lambda: version


def not_called():
    raise AssertionError("uv was asked for its plan, which takes a while")


def write_wheel(folder, version, cuda="None", hip="None"):
    with zipfile.ZipFile(folder / f"torch-{version}-py3-none-any.whl", "w") as wheel:
        wheel.writestr("torch/version.py", f"__version__ = '{version}'\ncuda: Optional[str] = {cuda}\nhip = {hip}\n")


def test_a_build_of_torch_is_requested_from_pytorchs_own_index():
    assert arguments_for("", {}, not_called) == ()
    assert arguments_for("cpu", {}, not_called) == ("--torch-backend", "cpu")
    assert arguments_for("cu128", {"UV_FIND_LINKS": "/nowhere"}, not_called) == ("--torch-backend", "cu128")
    assert arguments_for("cuda", {}, not_called) == ("--torch-backend", "auto")


def test_no_index_is_needed_for_a_build_that_is_in_the_users_folder(tmp_path):
    write_wheel(tmp_path, "2.13.0+cpu")
    links = {"UV_FIND_LINKS": f"https://example.org/wheels {tmp_path}"}

    assert arguments_for("cpu", links, planned("2.13.0+cpu")) == ()
    assert arguments_for("cu128", links, not_called) == ("--torch-backend", "cu128")


@pytest.mark.parametrize(("cuda", "hip", "build"), [("None", "None", "cpu"), ("'12.8'", "None", "cu128")])
def test_a_wheel_without_a_label_is_opened_to_see_its_build(tmp_path, cuda, hip, build):
    write_wheel(tmp_path, "2.13.0", cuda, hip)
    links = {"UV_FIND_LINKS": str(tmp_path)}

    assert arguments_for(build, links, planned("2.13.0")) == ()


def test_a_local_wheel_of_the_wrong_version_does_not_change_the_build(tmp_path):
    write_wheel(tmp_path, "2.12.0+cpu")
    write_wheel(tmp_path, "2.13.0", "'13.0'")
    links = {"UV_FIND_LINKS": str(tmp_path)}

    # Without these arguments, uv would take these from the package index, where they are gigabytes for CUDA.
    assert arguments_for("cpu", links, planned("2.14.0")) == ("--torch-backend", "cpu")
    assert arguments_for("cpu", links, planned("2.13.0")) == ("--torch-backend", "cpu")


def test_a_worker_without_torch_does_not_need_its_index(tmp_path):
    write_wheel(tmp_path, "2.12.0+cpu")

    assert arguments_for("cpu", {"UV_FIND_LINKS": str(tmp_path)}, planned("")) == ()


def test_a_file_that_is_not_a_wheel_is_skipped(tmp_path):
    (tmp_path / "torch-2.13.0-py3-none-any.whl").write_text("not a zip")

    assert arguments_for("cpu", {"UV_FIND_LINKS": str(tmp_path)}, not_called) == ("--torch-backend", "cpu")


def test_a_build_that_does_not_exist_is_refused_before_anything_is_created(tmp_path):
    for build in ("", "cpu", "auto", "cu128", "rocm6.4"):
        refuse_unknown_build(build)
    with pytest.raises(InstallFailed, match="'gpu' is not a build of torch"):
        refuse_unknown_build("gpu")
    with pytest.raises(InstallFailed, match="no NVIDIA driver"):
        refuse_unknown_build("cuda", driver=tmp_path / "none")


@pytest.mark.parametrize(("asked", "version"), [("cpu", "2.13.0"), ("cpu", "2.13.0+cu128"), ("cuda", "2.13.0+cpu")])
def test_another_build_than_the_one_asked_for_is_refused(tmp_path, asked, version):
    with pytest.raises(InstallFailed, match="is not the build"):
        check_build(asked, version, tmp_path, Progress())


def test_the_requested_build_is_accepted_and_a_useless_request_is_reported(tmp_path):
    progress = Notes()

    for asked, version in (("cpu", "2.13.0+cpu"), ("cuda", "2.13.0+cu128"), ("auto", "2.13.0"), ("", "2.13.0")):
        check_build(asked, version, tmp_path, progress)
    check_build("cpu", "", tmp_path, progress)

    assert progress.notes == ["The worker needs no torch; --torch cpu changes nothing."]


@pytest.mark.parametrize(
    ("text", "build"),
    [
        ("cuda: Optional[str] = None\nhip: Optional[str] = None\n", "cpu"),
        ("cuda = '12.8'\n", "cu128"),
        ("cuda: Optional[str] = None\nhip: Optional[str] = '6.4.43482'\n", "rocm6.4"),
        ("debug = False\n", ""),
    ],
)
def test_the_build_of_an_installed_torch_without_a_label_is_found(tmp_path, text, build):
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "version.py").write_text(text)

    assert installed_build("2.13.0", tmp_path) == build
    assert installed_build("2.13.0+xpu", tmp_path) == "xpu"


def test_an_unknown_build_is_empty(tmp_path):
    assert not is_build("cpu", installed_build("2.13.0", tmp_path))
    assert is_build("auto", "")
