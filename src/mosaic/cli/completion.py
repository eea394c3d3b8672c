"""`mosaic completion`: print or install the scripts by which a shell completes this command."""

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from mosaic.cli.completion_scripts import SCRIPTS
from mosaic.cli.verb import BadUsage, add_verb
from mosaic.model.errors import MosaicError

if TYPE_CHECKING:
    from mosaic.cli.verb import Verbs

EXAMPLES = """
mosaic completion install                      for the shell you use
mosaic completion install --shell zsh
mosaic completion bash > /etc/bash_completion.d/mosaic      for every user
"""
MARK = "# mosaic completion"
# Where bash-completion lies, which loads our file when it is needed; without it .bashrc must.
LOADERS = ("/usr/share/bash-completion/bash_completion", "/etc/bash_completion")


def add_verbs(verbs: "Verbs") -> None:
    parser = add_verb(verbs, "completion", print_script, "complete this command in bash, zsh or fish", EXAMPLES)
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    summary = "write the script where your shell finds it"
    parser = add_verb(actions, "install", install, summary, "mosaic completion install --shell fish")
    parser.add_argument("--shell", choices=tuple(SCRIPTS), help="another one than $SHELL")
    for shell in SCRIPTS:
        example = f"mosaic completion {shell}"
        add_verb(actions, shell, print_script, f"print the script for {shell}", example).set_defaults(shell=shell)


def print_script(args: argparse.Namespace) -> int:
    print(SCRIPTS[args.shell], end="")
    return 0


def install(args: argparse.Namespace) -> int:
    shell = args.shell or os.path.basename(os.environ.get("SHELL", ""))
    if shell not in SCRIPTS:
        raise BadUsage(f"$SHELL is {shell or 'not set'}. Name one with --shell: {', '.join(SCRIPTS)}")
    script = script_place(shell)
    told = [_write(script, SCRIPTS[shell])]
    startup = startup_place(shell)
    if startup:
        told.append(_append(startup, f'[ -f "{script}" ] && . "{script}"  {MARK}\n'))
    print("\n".join([*told, f"Open a new shell to use it, or type: source {script}"]))
    return 0


def script_place(shell: str) -> Path:
    data, config = _xdg("XDG_DATA_HOME", ".local/share"), _xdg("XDG_CONFIG_HOME", ".config")
    return {
        "bash": data / "bash-completion" / "completions" / "mosaic",
        "zsh": data / "zsh" / "site-functions" / "_mosaic",
        "fish": config / "fish" / "completions" / "mosaic.fish",
    }[shell]


def startup_place(shell: str) -> Path | None:
    """The file that must name the script; None where the shell finds it by itself."""
    if shell == "zsh":
        return Path(os.environ.get("ZDOTDIR") or Path.home()) / ".zshrc"
    if shell == "bash" and not any(os.path.exists(loader) for loader in LOADERS):
        return Path.home() / ".bashrc"
    return None


def _xdg(name: str, default: str) -> Path:
    return Path(os.environ.get(name) or Path.home() / default)


def _write(path: Path, text: str) -> str:
    if _read(path) == text:
        return f"{path} is up to date."
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    except OSError as error:
        raise MosaicError(f"{path} cannot be written: {error.strerror}") from None
    return f"Wrote {path}."


def _append(path: Path, line: str) -> str:
    """Once: a line that is there already is left as it is."""
    before = _read(path)
    if line.strip() in before:
        return f"{path} names it already."
    try:
        with path.open("a") as file:
            file.write(line if not before or before.endswith("\n") else f"\n{line}")
    except OSError as error:
        raise MosaicError(f"{path} cannot be written: {error.strerror}. Add to it: {line.strip()}") from None
    return f"Added a line to {path}."


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError):
        return ""
