"""Which build of torch an environment gets: the CPU's, or one of those for a GPU."""

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
        raise InstallFailed(f"there is no build '{asked}' of torch. There are: cpu, cuda, auto, and by name cu128 …")
    if asked == "cuda" and not driver.exists():
        # The choice would fall on the CPU's build, which is not what was asked for.
        raise InstallFailed(
            "this machine has no NVIDIA driver, so nobody can tell which CUDA build it needs. Name one: --torch cu128"
        )


def arguments_for(asked: str, environ: Mapping[str, str], planned: Callable[[], str]) -> tuple[str, ...]:
    """What uv is told. A wheel of that build in a folder the user named needs no index of PyTorch's.

    `planned` tells which version of torch uv would take by itself, "" for none. It is asked before anything is
    downloaded: another build would be gigabytes that are thrown away.
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
    """The torch that came to lie in the environment is the one that was asked for."""
    if asked and not version:
        progress.note(f"The worker needs no torch; --torch {asked} changes nothing.")
    elif asked and not is_build(asked, installed_build(version, packages)):
        raise InstallFailed(f"torch {version} is not the build '{asked}'. Leave --torch out to take it as it is")


def is_build(asked: str, build: str) -> bool:
    return asked == "auto" or (bool(build) and build.startswith("cu" if asked == "cuda" else asked))


def installed_build(version: str, packages: Path) -> str:
    """`cpu`, `cu128`, `rocm6.4` …; empty when nobody can tell."""
    try:
        return _label(version) or _build_in((packages / _VERSION_FILE).read_text())
    except OSError:
        return ""


def _local_builds(environ: Mapping[str, str]) -> dict[str, str]:
    """Version → build of the wheels in folders that the user named."""
    places = [place.removeprefix("file://") for place in re.split(r"[\s,]+", environ.get("UV_FIND_LINKS", ""))]
    wheels = [wheel for place in places if os.path.isabs(place) for wheel in sorted(Path(place).glob("torch-*.whl"))]
    return {match[1]: _label(match[1]) or _build_of(wheel) for wheel in wheels if (match := _WHEEL.match(wheel.name))}


def _build_of(wheel: Path) -> str:
    """Of a wheel without a label in its name, from inside."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            return _build_in(archive.read(_VERSION_FILE).decode(errors="replace"))
    except (OSError, KeyError, zipfile.BadZipFile):
        return ""


def _label(version: str) -> str:
    return version.partition("+")[2]


def _build_in(text: str) -> str:
    """From torch/version.py, which says what `torch.version.cuda` is."""
    found: dict[str, str] = dict(re.findall(r"^(cuda|hip)\b[^=\n]*= *(.+?) *$", text, re.M))
    if "cuda" not in found:
        return ""
    told = {name: value.strip("'\"") for name, value in found.items() if value != "None"}
    if "cuda" in told:
        return "cu" + told["cuda"].replace(".", "")
    return "rocm" + ".".join(told["hip"].split(".")[:2]) if "hip" in told else "cpu"
