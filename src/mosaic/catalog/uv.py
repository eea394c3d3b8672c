"""uv, which creates environments: where it is, how it is run, and what its error messages mean."""

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

# These would make uv install into MOSAIC's own environment, or import unrelated modules.
_NOT_PASSED_ON = ("VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONPATH", "PYTHONHOME", "UV_PYTHON", "UV_PROJECT_ENVIRONMENT")
# pip's settings are used for uv too.
_FROM_PIP = {
    "UV_FIND_LINKS": "PIP_FIND_LINKS",
    "UV_DEFAULT_INDEX": "PIP_INDEX_URL",
    "UV_EXTRA_INDEX_URL": "PIP_EXTRA_INDEX_URL",
    "SSL_CERT_FILE": "PIP_CERT",
}
_KEPT_LINES = 1000  # the plan of a dry run has one per package
_SHOWN_LINES = 25
# Lines that uv prints without an error, too.
_ROUTINE = re.compile(r"(Using Python|Resolved|Prepared|Installed|Checked|Audited|Building wheel)| [+~-] \S+==|hint:")
_WOULD_INSTALL = re.compile(r" \+ (\S+)==(\S+)")
# How `uv pip check` reports an unmet requirement.
_UNMET = re.compile(r"The package `([^`]+)` requires ")
_MOST_CHARACTERS = 320
_NO_NETWORK = re.compile(
    r"failed to fetch|error sending request|dns error|connection refused|could not connect|timed out|"
    r"network (is )?unreachable|network was disabled|temporary failure in name resolution",
    re.I,
)
_MEANINGS = (  # uv's message → what it means for the user
    (re.compile(r"no interpreter found|no virtual environment or system python", re.I), "that Python is not installed"),
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
    """An environment could not be created. The previous one is unchanged."""


class NoIndex(InstallFailed):
    """The package index is unreachable. The package itself may be fine."""


def find_uv() -> Path:
    """The one in the checkout, in the `uv` package, or on the PATH."""
    tools = Path(mosaic.__file__).parents[2] / ".tools" / "bin" / "uv"
    if os.access(tools, os.X_OK):
        return tools
    if importlib.util.find_spec("uv"):
        from uv import find_uv_bin  # type: ignore[import-not-found, unused-ignore]

        return Path(find_uv_bin())
    found = shutil.which("uv")
    if not found:
        raise InstallFailed("uv, which creates worker environments, is not installed. Install it with: pip install uv")
    return Path(found)


class Uv:
    """Runs uv. After an error, shows its last lines and raises an exception with one sentence."""

    def __init__(self, path: Path, progress: Progress, environ: Mapping[str, str] | None = None) -> None:
        self._path = path
        self.progress = progress
        self.environ = uv_environment(os.environ if environ is None else environ)

    def answer(self, *arguments: str) -> str:
        """The output of a query; empty if it fails."""
        done = subprocess.run(
            self._command(*arguments),
            cwd="/",
            env=self.environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
        )
        return done.stdout.strip() if done.returncode == 0 else ""

    def run(self, *arguments: str) -> None:
        self._run_checked(*arguments, read=lambda line: None)

    def install(self, *arguments: str, subject: str) -> None:
        """`uv pip install`, with a report of its phases. `subject` describes the packages."""
        self.progress.phase(f"Resolving the packages {subject}")
        self._run_checked("pip", "install", *arguments, read=Narrator(self.progress, subject).read)

    def planned(self, *arguments: str) -> dict[str, str]:
        """Name → version of what `uv pip install` would choose; empty if it would fail. Downloads only metadata."""
        _, lines = self._follow("pip", "install", "--dry-run", *arguments)
        return {match[1]: match[2] for line in lines if (match := _WOULD_INSTALL.match(line))}

    def check(self, python: Path, stale: Collection[str]) -> None:
        """Check that every requirement of every package is met, except those of the `stale` packages."""
        code, lines = self._follow("pip", "check", "--python", str(python))
        unmet = [(match[1].lower(), line) for line in lines if (match := _UNMET.match(line))]
        missed = [line for name, line in unmet if name not in stale]
        if missed or (code and not unmet):
            self._show(missed or lines)
            raise InstallFailed(explain(missed or lines))

    def _run_checked(self, *arguments: str, read: Callable[[str], None]) -> None:
        code, lines = self._follow(*arguments, read=read)
        if code:
            self._show(lines)
            raise (NoIndex if any(map(_NO_NETWORK.search, _own_message(lines))) else InstallFailed)(explain(lines))

    def _show(self, lines: list[str]) -> None:
        for line in [line for line in lines if line.strip() and not _ROUTINE.match(line)][-_SHOWN_LINES:]:
            self.progress.note(line)

    def _follow(self, *arguments: str, read: Callable[[str], None] = lambda line: None) -> tuple[int, list[str]]:
        """The exit code and the last lines. `read` receives each line as it appears."""
        last: deque[str] = deque(maxlen=_KEPT_LINES)
        # From /, so that no uv.toml or .python-version of the working folder is used.
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
                    read(line.rstrip())
            except BaseException:
                child.kill()
                raise
        return child.returncode, list(last)

    def _command(self, *arguments: str) -> list[str]:
        # Without --no-progress: uv then prints a line for each large download into a pipe.
        return [str(self._path), "--color", "never", *arguments]


def uv_environment(environ: Mapping[str, str]) -> dict[str, str]:
    env = {name: value for name, value in environ.items() if name not in _NOT_PASSED_ON}
    for ours, pips in _FROM_PIP.items():
        if environ.get(pips):
            # pip separates folders by spaces, uv by commas.
            env.setdefault(ours, ",".join(environ[pips].split()) if ours == "UV_FIND_LINKS" else environ[pips])
    env["UV_PYTHON_DOWNLOADS"] = "never"
    # The same sources give the same wheel, byte for byte, whenever it is built.
    env.setdefault("SOURCE_DATE_EPOCH", "315532800")
    pyenv = environ.get("PYENV_ROOT") or os.path.join(environ.get("HOME", "/nonexistent"), ".pyenv")
    pythons = sorted(glob.glob(os.path.join(pyenv, "versions/3.*/bin")))
    if pythons:
        # Of pyenv's shims only the selected one works; the Pythons behind them all do.
        rest = [folder for folder in env.get("PATH", os.defpath).split(os.pathsep) if folder != f"{pyenv}/shims"]
        env["PATH"] = os.pathsep.join([*rest, *pythons])
    return env


def explain(lines: list[str]) -> str:
    """The reason, followed by uv's own message in parentheses."""
    lost = [line for line in _own_message(lines) if _NO_NETWORK.search(line)]
    if lost:
        return (
            f"the package index cannot be reached ({shortened(lost[0])}). "
            "Check the network, or name a folder of wheels in PIP_FIND_LINKS"
        )
    message, text = shortened("; ".join(_own_message(lines))), "\n".join(_error_lines(lines))
    for pattern, meaning in _MEANINGS:
        if pattern.search(text):
            return f"{meaning} ({shortened(backend_error(lines)) or message})"
    return message or "uv failed without a message"


def shortened(text: str) -> str:
    """The beginning of a long message; the user sees uv's last lines above it."""
    return text if len(text) <= _MOST_CHARACTERS else f"{text[: _MOST_CHARACTERS - 1].rstrip()}…"


def backend_error(lines: list[str]) -> str:
    """The error message of a build backend; empty if no build failed."""
    start = next((number for number, line in enumerate(lines) if _BUILD_FAILED.search(line)), None)
    if start is None:
        return ""
    # `uv pip install` prints the backend's output after its own error, `uv build` before it.
    marks = [number for number, line in enumerate(lines) if line.strip() == "[stderr]"]
    output = lines[marks[-1] + 1 :] if marks else lines[:start]
    output = [line.strip() for line in output if line.strip() and not _ROUTINE.match(line)]
    errors = [line for line in output if _EXCEPTION.match(line)]
    return next(iter([*errors[-1:], *output[-1:]]), "")


def _error_lines(lines: list[str]) -> list[str]:
    """The lines from uv's cross or `error:` on; all lines if there is neither."""
    starts = [number for number, line in enumerate(lines) if re.match(r"\s*(×|error:)", line, re.I)]
    return [line for line in lines[starts[0] if starts else 0 :] if line.strip()]


def _own_message(lines: list[str]) -> list[str]:
    """uv's error message without decoration, hints and the output of a build backend."""
    own = takewhile(lambda line: line.strip() not in ("[stdout]", "[stderr]"), _error_lines(lines))
    kept = [line for line in own if not line.startswith("hint:")]
    return [re.sub(r"^([\s×╰─▶│├·]|error:|cause:)+", "", line).rstrip(". ") for line in kept]
