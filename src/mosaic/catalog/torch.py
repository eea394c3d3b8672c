"""Which build of torch an environment gets: the one for CPUs, or one for GPUs."""

import os
import re
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

from mosaic.catalog.progress import Progress
from mosaic.catalog.uv import InstallFailed

_BUILDS = re.compile(r"cpu|cuda|auto|cu\d{2,3}|rocm\d[\d.]*|xpu")
_DRIVER = Path("/proc/driver/nvidia/version")
_VERSION_FILE = "torch/version.py"
_WHEEL = re.compile(r"torch-([^-]+)-")


def refuse_unknown_build(asked: str, driver: Path = _DRIVER) -> None:
    if asked and not _BUILDS.fullmatch(asked):
        raise InstallFailed(
            f"'{asked}' is not a build of torch. Choose from: cpu, cuda, auto, or a CUDA version such as cu128"
        )
    if asked == "cuda" and not driver.exists():
        # uv would choose the CPU build, which is not what was requested.
        raise InstallFailed(
            "this machine has no NVIDIA driver, so the right CUDA build is unknown. Name one: --torch cu128"
        )


def arguments_for(asked: str, environ: Mapping[str, str], planned: Callable[[], str]) -> tuple[str, ...]:
    """The arguments for uv. PyTorch's index is not needed if a folder that the user named has a wheel of that build.

    `planned` returns the version of torch that uv would choose without them, "" for none. It is called before anything
    is downloaded: the wrong build would waste gigabytes.
    """
    if not asked:
        return ()
    here = _local_builds(environ)
    if any(is_build(asked, build) for build in here.values()):
        version = planned()
        if not version or is_build(asked, here.get(version) or _label(version)):
            return ()
    return ("--torch-backend", "auto" if asked == "cuda" else asked)


def check_build(asked: str, version: str, packages: Path, progress: Progress) -> None:
    """Check that the torch in the environment is the requested build."""
    if asked and not version:
        progress.note(f"The worker needs no torch; --torch {asked} changes nothing.")
    elif asked and not is_build(asked, installed_build(version, packages)):
        raise InstallFailed(f"torch {version} is not the build '{asked}'. Omit --torch to accept it")


def is_build(asked: str, build: str) -> bool:
    return asked == "auto" or (bool(build) and build.startswith("cu" if asked == "cuda" else asked))


def installed_build(version: str, packages: Path) -> str:
    """`cpu`, `cu128`, `rocm6.4` …; empty if it is unknown."""
    try:
        return _label(version) or _build_in((packages / _VERSION_FILE).read_text())
    except OSError:
        return ""


def _local_builds(environ: Mapping[str, str]) -> dict[str, str]:
    """Version → build of the wheels in the folders that the user named."""
    places = [place.removeprefix("file://") for place in re.split(r"[\s,]+", environ.get("UV_FIND_LINKS", ""))]
    wheels = [wheel for place in places if os.path.isabs(place) for wheel in sorted(Path(place).glob("torch-*.whl"))]
    return {match[1]: _label(match[1]) or _build_of(wheel) for wheel in wheels if (match := _WHEEL.match(wheel.name))}


def _build_of(wheel: Path) -> str:
    """The build of a wheel without a label in its name, from its contents."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            return _build_in(archive.read(_VERSION_FILE).decode(errors="replace"))
    except (OSError, KeyError, zipfile.BadZipFile):
        return ""


def _label(version: str) -> str:
    return version.partition("+")[2]


def _build_in(text: str) -> str:
    """The build that the text of torch/version.py names."""
    found: dict[str, str] = dict(re.findall(r"^(cuda|hip)\b[^=\n]*= *(.+?) *$", text, re.M))
    if "cuda" not in found:
        return ""
    stated = {name: value.strip("'\"") for name, value in found.items() if value != "None"}
    if "cuda" in stated:
        return "cu" + stated["cuda"].replace(".", "")
    return "rocm" + ".".join(stated["hip"].split(".")[:2]) if "hip" in stated else "cpu"
