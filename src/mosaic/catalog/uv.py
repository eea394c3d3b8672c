"""uv, which makes environments: where it is, what it is told, and what its complaints mean."""

import importlib.util
import os
import re
import shutil
import subprocess
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path

import mosaic
from mosaic.model.errors import MosaicError

Say = Callable[[str], None]

# Ours would make uv install into MOSAIC's own environment, or look into somebody's modules.
_NOT_PASSED_ON = ("VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONPATH", "PYTHONHOME", "UV_PYTHON", "UV_PROJECT_ENVIRONMENT")
# What pip was told serves uv too.
_FROM_PIP = {
    "UV_FIND_LINKS": "PIP_FIND_LINKS",
    "UV_DEFAULT_INDEX": "PIP_INDEX_URL",
    "UV_EXTRA_INDEX_URL": "PIP_EXTRA_INDEX_URL",
    "SSL_CERT_FILE": "PIP_CERT",
}
_KEPT_LINES = 60
_NO_NETWORK = re.compile(
    r"failed to fetch|error sending request|dns error|connection refused|could not connect|timed out|"
    r"network (is )?unreachable|network was disabled|temporary failure in name resolution",
    re.I,
)
_TOLD = (  # what uv says → what it means for the person who asked
    (re.compile(r"no interpreter found|no virtual environment or system python", re.I), "there is no such Python here"),
    (
        re.compile(r"not found in the package registry|not found in the provided package locations", re.I),
        "no such package",
    ),
    (
        re.compile(r"hash mismatch|hashes? .*(required|missing)", re.I),
        "a package does not have the hash its lock file names",
    ),
    (re.compile(r"no solution found|unsatisfiable|conflict", re.I), "its requirements cannot be met together"),
    (re.compile(r"failed to build", re.I), "a package cannot be built"),
    (re.compile(r"no space left", re.I), "the disk is full"),
)


class InstallFailed(MosaicError):
    """An environment that could not be made; what was there before is as it was."""


def find_uv() -> Path:
    """The checkout's, that of the `uv` package, or the one on the PATH."""
    tools = Path(mosaic.__file__).parents[2] / ".tools" / "bin" / "uv"
    if os.access(tools, os.X_OK):
        return tools
    if importlib.util.find_spec("uv"):
        from uv import find_uv_bin  # type: ignore[import-not-found, unused-ignore]

        return Path(find_uv_bin())
    found = shutil.which("uv")
    if not found:
        raise InstallFailed("uv, which makes worker environments, is not here. Install it with: pip install uv")
    return Path(found)


class Uv:
    """Runs uv, hands on what it says line by line, and turns its failure into one sentence."""

    def __init__(self, path: Path, say: Say, environ: Mapping[str, str] | None = None) -> None:
        self._path = path
        self.say = say
        self._env = uv_environment(os.environ if environ is None else environ)

    def run(self, *arguments: str) -> None:
        command = [str(self._path), "--no-progress", "--color", "never", *arguments]
        last: deque[str] = deque(maxlen=_KEPT_LINES)
        # From /, so that no uv.toml or .python-version of the folder the user stands in has a say.
        with subprocess.Popen(
            command,
            cwd="/",
            env=self._env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        ) as child:
            try:
                for line in child.stdout or ():
                    last.append(line.rstrip())
                    self.say(line.rstrip())
            except BaseException:
                child.kill()
                raise
        if child.returncode:
            raise InstallFailed(told(list(last)))


def uv_environment(environ: Mapping[str, str]) -> dict[str, str]:
    env = {name: value for name, value in environ.items() if name not in _NOT_PASSED_ON}
    for ours, pips in _FROM_PIP.items():
        if environ.get(pips):
            env.setdefault(ours, environ[pips])
    env["UV_PYTHON_DOWNLOADS"] = "never"
    return env


def told(lines: list[str]) -> str:
    """The reason in our words, and uv's own last words for whoever wants to know more."""
    text = "\n".join(lines)
    words = " ".join(re.sub(r"^[\s×╰─▶│├·]+", "", line) for line in _complaint(lines)).strip()
    if _NO_NETWORK.search(text):
        return (
            f"the package index cannot be reached ({words}). "
            "Check the network, or name a folder of wheels in PIP_FIND_LINKS"
        )
    for pattern, meaning in _TOLD:
        if pattern.search(text):
            return f"{meaning} ({words})"
    return words or "uv failed without a word"


def _complaint(lines: list[str]) -> list[str]:
    """From uv's cross or `error:` on; all of it when there is neither."""
    starts = [number for number, line in enumerate(lines) if re.match(r"\s*(×|error:)", line)]
    return [line for line in lines[starts[0] if starts else 0 :] if line.strip()]
