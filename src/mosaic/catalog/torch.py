"""Which build of torch an environment gets: the CPU's, or one of those for a GPU."""

import os
import re
from collections.abc import Mapping
from pathlib import Path

from mosaic.catalog.uv import InstallFailed, Uv

_BUILDS = re.compile(r"cpu|cuda|auto|cu\d{2,3}|rocm\d[\d.]*|xpu")
_DRIVER = Path("/proc/driver/nvidia/version")


def refuse_unknown_build(asked: str, driver: Path = _DRIVER) -> None:
    if asked and not _BUILDS.fullmatch(asked):
        raise InstallFailed(f"there is no build '{asked}' of torch. There are: cpu, cuda, auto, and by name cu128 …")
    if asked == "cuda" and not driver.exists():
        # The choice would fall on the CPU's build, which is not what was asked for.
        raise InstallFailed(
            "this machine has no NVIDIA driver, so nobody can tell which CUDA build it needs. Name one: --torch cu128"
        )


def arguments_for(asked: str, environ: Mapping[str, str]) -> tuple[str, ...]:
    """What uv is told. A wheel of that build in a folder the user named needs no index of PyTorch's."""
    if not asked or _wheels_of(asked, environ):
        return ()
    return ("--torch-backend", "auto" if asked == "cuda" else asked)


def check_build(asked: str, version: str, uv: Uv) -> None:
    """The torch that came to lie in the environment is the one that was asked for."""
    label = version.partition("+")[2]
    if asked and not version:
        uv.say(f"The worker needs no torch; --torch {asked} changes nothing.")
    elif asked and asked != "auto" and not label.startswith("cu" if asked == "cuda" else asked):
        raise InstallFailed(f"torch {version} is not the build '{asked}'. Leave --torch out to take it as it is")


def _wheels_of(asked: str, environ: Mapping[str, str]) -> list[Path]:
    places = [place.removeprefix("file://") for place in re.split(r"[\s,]+", environ.get("UV_FIND_LINKS", ""))]
    folders = [Path(place) for place in places if os.path.isabs(place)]
    label = "cu*" if asked == "cuda" else asked
    return [wheel for folder in folders for wheel in folder.glob(f"torch-*+{label}-*.whl")]
