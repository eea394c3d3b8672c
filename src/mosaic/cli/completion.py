"""`mosaic completion`: print or install the completion script of a shell."""

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from mosaic.cli.completion_scripts import SCRIPTS
from mosaic.cli.verb import BadUsage, add_verb
from mosaic.model.errors import MosaicError
from mosaic.model.xdg import xdg_folder

if TYPE_CHECKING:
    from mosaic.cli.verb import Verbs

EXAMPLES = """
mosaic completion install                      for your shell, from $SHELL
mosaic completion install --shell zsh
mosaic completion bash > /etc/bash_completion.d/mosaic      for every user
"""
MARK = "# mosaic completion"
# The bash-completion package loads our script on demand; without it, .bashrc has to.
LOADERS = ("/usr/share/bash-completion/bash_completion", "/etc/bash_completion")


def add_verbs(verbs: "Verbs") -> None:
    parser = add_verb(verbs, "completion", print_script, "set up tab completion for bash, zsh or fish", EXAMPLES)
    actions = parser.add_subparsers(metavar="ACTION", title="actions", required=True)
    summary = "install the completion script for your shell"
    parser = add_verb(actions, "install", install, summary, "mosaic completion install --shell fish")
    parser.add_argument("--shell", choices=tuple(SCRIPTS), help="the shell (default: from $SHELL)")
    for shell in SCRIPTS:
        example = f"mosaic completion {shell}"
        add_verb(actions, shell, print_script, f"print the completion script for {shell}", example).set_defaults(
            shell=shell
        )


def print_script(args: argparse.Namespace) -> int:
    print(SCRIPTS[args.shell], end="")
    return 0


def install(args: argparse.Namespace) -> int:
    shell = args.shell or os.path.basename(os.environ.get("SHELL", ""))
    if shell not in SCRIPTS:
        raise BadUsage(f"$SHELL is {shell or 'not set'}. Choose a shell with --shell: {', '.join(SCRIPTS)}")
    script = script_path(shell)
    messages = [_write(script, SCRIPTS[shell])]
    startup = startup_file(shell)
    if startup:
        messages.append(_append(startup, f'[ -f "{script}" ] && . "{script}"  {MARK}\n'))
    print("\n".join([*messages, f"Open a new shell to use it, or run: source {script}"]))
    return 0


def script_path(shell: str) -> Path:
    data, config = xdg_folder("XDG_DATA_HOME", ".local/share"), xdg_folder("XDG_CONFIG_HOME", ".config")
    return {
        "bash": data / "bash-completion" / "completions" / "mosaic",
        "zsh": data / "zsh" / "site-functions" / "_mosaic",
        "fish": config / "fish" / "completions" / "mosaic.fish",
    }[shell]


def startup_file(shell: str) -> Path | None:
    """The startup file that must load the script; None if the shell finds the script automatically."""
    if shell == "zsh":
        return Path(os.environ.get("ZDOTDIR") or Path.home()) / ".zshrc"
    if shell == "bash" and not any(os.path.exists(loader) for loader in LOADERS):
        return Path.home() / ".bashrc"
    return None


def _write(path: Path, text: str) -> str:
    if _read(path) == text:
        return f"{path} is up to date."
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    except OSError as error:
        raise MosaicError(f"Cannot write {path}: {error.strerror}.") from None
    return f"Wrote {path}."


def _append(path: Path, line: str) -> str:
    """Append a line unless the file has it already."""
    before = _read(path)
    if line.strip() in before:
        return f"{path} loads it already."
    try:
        with path.open("a") as file:
            file.write(line if not before or before.endswith("\n") else f"\n{line}")
    except OSError as error:
        raise MosaicError(f"Cannot write {path}: {error.strerror}. Add this line to it: {line.strip()}") from None
    return f"Added a line to {path}."


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError):
        return ""
