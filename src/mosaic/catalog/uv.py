"""uv, which makes environments: where it is, what it is told, and what its complaints mean."""

import glob
import importlib.util
import os
import re
import shutil
import subprocess
from collections import deque
from collections.abc import Callable, Collection, Mapping
from itertools import takewhile
from pathlib import Path

import mosaic
from mosaic.catalog.progress import Narrator, Progress
from mosaic.model.errors import MosaicError

# Ours would make uv install into MOSAIC's own environment, or look into somebody's modules.
_NOT_PASSED_ON = ("VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONPATH", "PYTHONHOME", "UV_PYTHON", "UV_PROJECT_ENVIRONMENT")
# What pip was told serves uv too.
_FROM_PIP = {
    "UV_FIND_LINKS": "PIP_FIND_LINKS",
    "UV_DEFAULT_INDEX": "PIP_INDEX_URL",
    "UV_EXTRA_INDEX_URL": "PIP_EXTRA_INDEX_URL",
    "SSL_CERT_FILE": "PIP_CERT",
}
_KEPT_LINES = 1000  # the plan of a dry run has one per package
_SHOWN_LINES = 25
# What it prints when all is well, too.
_ROUTINE = re.compile(r"(Using Python|Resolved|Prepared|Installed|Checked|Audited|Building wheel)| [+~-] \S+==|hint:")
_WOULD_INSTALL = re.compile(r" \+ (\S+)==(\S+)")
# How `uv pip check` tells of a requirement that is not met.
_UNMET = re.compile(r"The package `([^`]+)` requires ")
_MOST_WORDS = 320
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
        "a package does not match its checksum",
    ),
    (re.compile(r"no solution found|unsatisfiable|conflict", re.I), "its requirements cannot be met together"),
    (re.compile(r"failed to build", re.I), "a package cannot be built"),
    (re.compile(r"no space left", re.I), "the disk is full"),
)


_BUILD_FAILED = re.compile(r"failed to build|build backend returned an error", re.I)
_EXCEPTION = re.compile(r"[A-Za-z_][\w.]*(Error|Exception|Exit|Interrupt)\b")


class InstallFailed(MosaicError):
    """An environment that could not be made; what was there before is as it was."""


class NoIndex(InstallFailed):
    """The package index cannot be reached: no fault of what was to be installed."""


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
    """Runs uv, and turns its failure into one sentence, above which stand its own last words."""

    def __init__(self, path: Path, progress: Progress, environ: Mapping[str, str] | None = None) -> None:
        self._path = path
        self.progress = progress
        self.environ = uv_environment(os.environ if environ is None else environ)

    def answer(self, *arguments: str) -> str:
        """What uv prints to a question; empty when it has no answer."""
        told = subprocess.run(
            self._command(*arguments),
            cwd="/",
            env=self.environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
        )
        return told.stdout.strip() if told.returncode == 0 else ""

    def run(self, *arguments: str) -> None:
        self._demand(*arguments, hear=lambda line: None)

    def install(self, *arguments: str, subject: str) -> None:
        """`uv pip install`, with its phases told. `subject` says which packages these are."""
        self.progress.phase(f"Resolving the packages {subject}")
        self._demand("pip", "install", *arguments, hear=Narrator(self.progress, subject).hear)

    def planned(self, *arguments: str) -> dict[str, str]:
        """Name → version of what `uv pip install` would take; empty when it would fail. Downloads metadata only."""
        _, lines = self._follow("pip", "install", "--dry-run", *arguments)
        return {match[1]: match[2] for line in lines if (match := _WOULD_INSTALL.match(line))}

    def check(self, python: Path, stale: Collection[str]) -> None:
        """Every requirement of every package is met, but those of the `stale` ones, whose complaints nobody needs."""
        code, lines = self._follow("pip", "check", "--python", str(python))
        unmet = [(match[1].lower(), line) for line in lines if (match := _UNMET.match(line))]
        missed = [line for name, line in unmet if name not in stale]
        if missed or (code and not unmet):
            self._show(missed or lines)
            raise InstallFailed(told(missed or lines))

    def _demand(self, *arguments: str, hear: Callable[[str], None]) -> None:
        code, lines = self._follow(*arguments, hear=hear)
        if code:
            self._show(lines)
            raise (NoIndex if any(map(_NO_NETWORK.search, _own_words(lines))) else InstallFailed)(told(lines))

    def _show(self, lines: list[str]) -> None:
        for line in [line for line in lines if line.strip() and not _ROUTINE.match(line)][-_SHOWN_LINES:]:
            self.progress.note(line)

    def _follow(self, *arguments: str, hear: Callable[[str], None] = lambda line: None) -> tuple[int, list[str]]:
        """Its exit code and its last lines; each is handed on as it comes."""
        last: deque[str] = deque(maxlen=_KEPT_LINES)
        # From /, so that no uv.toml or .python-version of the folder the user stands in has a say.
        with subprocess.Popen(
            self._command(*arguments),
            cwd="/",
            env=self.environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        ) as child:
            try:
                for line in child.stdout or ():
                    last.append(line.rstrip())
                    hear(line.rstrip())
            except BaseException:
                child.kill()
                raise
        return child.returncode, list(last)

    def _command(self, *arguments: str) -> list[str]:
        # Without --no-progress: into a pipe uv then prints a line for each large download.
        return [str(self._path), "--color", "never", *arguments]


def uv_environment(environ: Mapping[str, str]) -> dict[str, str]:
    env = {name: value for name, value in environ.items() if name not in _NOT_PASSED_ON}
    for ours, pips in _FROM_PIP.items():
        if environ.get(pips):
            # pip takes spaces between folders, uv commas.
            env.setdefault(ours, ",".join(environ[pips].split()) if ours == "UV_FIND_LINKS" else environ[pips])
    env["UV_PYTHON_DOWNLOADS"] = "never"
    # The same sources give the same wheel, byte for byte, whenever it is built.
    env.setdefault("SOURCE_DATE_EPOCH", "315532800")
    pyenv = environ.get("PYENV_ROOT") or os.path.join(environ.get("HOME", "/nonexistent"), ".pyenv")
    pythons = sorted(glob.glob(os.path.join(pyenv, "versions/3.*/bin")))
    if pythons:
        # Of pyenv's shims only the one runs that is switched on; the Pythons behind them all do.
        rest = [folder for folder in env.get("PATH", os.defpath).split(os.pathsep) if folder != f"{pyenv}/shims"]
        env["PATH"] = os.pathsep.join([*rest, *pythons])
    return env


def told(lines: list[str]) -> str:
    """The reason in our words, and the tool's own in brackets."""
    lost = [line for line in _own_words(lines) if _NO_NETWORK.search(line)]
    if lost:
        return (
            f"the package index cannot be reached ({shortened(lost[0])}). "
            "Check the network, or name a folder of wheels in PIP_FIND_LINKS"
        )
    words, text = shortened("; ".join(_own_words(lines))), "\n".join(_complaint(lines))
    for pattern, meaning in _TOLD:
        if pattern.search(text):
            return f"{meaning} ({shortened(backend_error(lines)) or words})"
    return words or "uv failed without a word"


def shortened(words: str) -> str:
    """Enough to know what it is about; the user sees the last of uv's lines above it."""
    return words if len(words) <= _MOST_WORDS else f"{words[: _MOST_WORDS - 1].rstrip()}…"


def backend_error(lines: list[str]) -> str:
    """What a build backend failed of, in its own words; empty when no build failed."""
    start = next((number for number, line in enumerate(lines) if _BUILD_FAILED.search(line)), None)
    if start is None:
        return ""
    # `uv pip install` quotes the backend below its own complaint, `uv build` lets it speak before.
    marks = [number for number, line in enumerate(lines) if line.strip() == "[stderr]"]
    spoken = lines[marks[-1] + 1 :] if marks else lines[:start]
    spoken = [line.strip() for line in spoken if line.strip() and not _ROUTINE.match(line)]
    errors = [line for line in spoken if _EXCEPTION.match(line)]
    return next(iter([*errors[-1:], *spoken[-1:]]), "")


def _complaint(lines: list[str]) -> list[str]:
    """From uv's cross or `error:` on; all of it when there is neither."""
    starts = [number for number, line in enumerate(lines) if re.match(r"\s*(×|error:)", line, re.I)]
    return [line for line in lines[starts[0] if starts else 0 :] if line.strip()]


def _own_words(lines: list[str]) -> list[str]:
    """uv's complaint without its frame, its hints and what it quotes of a build backend."""
    own = takewhile(lambda line: line.strip() not in ("[stdout]", "[stderr]"), _complaint(lines))
    said = [line for line in own if not line.startswith("hint:")]
    return [re.sub(r"^([\s×╰─▶│├·]|error:|cause:)+", "", line).rstrip(". ") for line in said]
