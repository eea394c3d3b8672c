"""The fenced blocks of a how-to page: commands, programs, files, and text that is only shown.

    ```bash               commands, executed in order; a comment may say how (below)
    ```python             a whole program, executed
    ```python fragment    a part of a program, not executed
    ```toml some/path     a file, written relative to the reader's working folder
    ```text               output and drawings

A comment behind a command, or on the line above it, may contain `not run in tests: REASON`, `exit code N` or
`exit code N or M`. Where the reason holds for a whole block it stands behind ```bash, where readers do not see it.
"""

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

FENCE = re.compile(r"^```(.*)$")
NOT_RUN = re.compile(r"not run in tests: ([^;.]+)")
EXIT_CODE = re.compile(r"exit code (\d+)(?: or (\d+))?")
FRAGMENT = "fragment"


class BadPage(Exception):
    """A block or a command that cannot be parsed."""


@dataclass(frozen=True)
class Block:
    language: str
    name: str  # FRAGMENT, the path of a file, or why no command of it is run
    text: str
    line: int

    @property
    def is_file(self) -> bool:
        return self.name not in ("", FRAGMENT) and not self.is_shell

    @property
    def is_program(self) -> bool:
        return self.language == "python" and not self.name

    @property
    def is_shell(self) -> bool:
        return self.language == "bash" and (not self.name or bool(NOT_RUN.fullmatch(self.name)))


@dataclass(frozen=True)
class Command:
    text: str
    comment: str
    line: int

    @property
    def words(self) -> list[str]:
        return shlex.split(self.text.replace("\\\n", ""), comments=True)

    @property
    def not_run(self) -> str:
        """Why a test cannot run it; empty if it can."""
        found = NOT_RUN.search(self.comment)
        return found[1].strip() if found else ""

    @property
    def exit_codes(self) -> set[int]:
        found = EXIT_CODE.search(self.comment)
        return {int(code) for code in found.groups() if code} if found else {0}


def blocks_of(page: Path) -> list[Block]:
    blocks, info, begun, lines = [], None, 0, []
    for number, line in enumerate(page.read_text().splitlines(), 1):
        fence = FENCE.match(line)
        if fence and info is None:
            info, begun, lines = fence[1], number, []
        elif fence:
            language, _, name = info.partition(" ")
            blocks.append(Block(language, name, "\n".join(lines) + "\n", begun))
            info = None
        else:
            lines.append(line)
    if info is not None:
        raise BadPage(f"{page.name}:{begun}: the block is not closed")
    return blocks


def commands_of(block: Block) -> list[Command]:
    commands, above, pending = [], "", ""
    for number, line in enumerate(block.text.splitlines(), block.line + 1):
        if not pending and line.startswith("#"):
            above += line.lstrip("# ") + "; "
            continue
        if not pending and not line.strip():
            continue
        pending += line + "\n"
        if is_whole(pending):
            commands.append(Command(pending, f"{above}{comment_of(pending)}; {block.name}".strip("; "), number))
            above, pending = "", ""
    if pending:
        raise BadPage(f"line {block.line}: this command does not end: {pending}")
    return commands


def is_whole(text: str) -> bool:
    """Whether a shell would execute it: no open quotation, no continued line."""
    if text.endswith("\\\n"):
        return False
    try:
        shlex.split(text, comments=True)
    except ValueError:
        return False
    return True


def comment_of(text: str) -> str:
    """The comment behind the command. A # inside a quotation does not start one."""
    for found in re.finditer(r"(?:^|\s)#\s", text):
        if is_whole(text[: found.start()] + "\n"):
            return text[found.end() :].strip()
    return ""
